"""A cluster that gets logins and encryption by rolling restarts, under the eyes of its clients."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

import ottla
from ottla.client.admin.scram_users import ScramUpsertion
from ottla.testing.history import check
from tests.cluster.java_load import JavaLoad
from tests.cluster.load import Load, wait_for_progress
from tests.cluster.own_load import OwnGroup, OwnLoad
from tests.cluster.process import wait_for
from tests.cluster.secure_cluster import MECHANISM, PASSWORDS, ClusterSecurity
from tests.cluster.three_brokers import IDS, ThreeBrokers, host_of
from tests.store.zookeeper_server import Ensemble
from tools.nodes import free_ports

PARTITIONS = 3


@pytest.mark.slow
@pytest.mark.spec("SEC-01", "CTL-76")
def test_a_cluster_goes_from_plaintext_to_sasl_ssl_without_an_error_to_its_clients(
    ensemble: Ensemble, tmp_path: Path
) -> None:
    """In three rounds: a second listener, then brokers use it, then the first one goes."""
    security = ClusterSecurity(tmp_path / "security", [host_of(id) for id in IDS])
    with ThreeBrokers(ensemble, tmp_path) as cluster, ExitStack() as stack:
        for topic in ("plain", "secure", "own", "java"):
            cluster.create_topic(topic, PARTITIONS)
        add_users(cluster)
        secure = open_second_listeners(cluster, security)
        bootstrap = security.bootstrap(secure)
        with cluster.load("plain", PARTITIONS, producers=1) as plain:
            wait_for_progress(plain)
            cluster.roll(lambda: wait_for_progress(plain))

            load = Load(bootstrap, "secure", PARTITIONS, producers=1)
            own = OwnLoad(bootstrap, "own", PARTITIONS, config=security.of_kafka)
            java = stack.enter_context(JavaLoad(bootstrap, "java", tmp_path, security.of_kafka))
            group = stack.enter_context(OwnGroup(bootstrap, "own", config=security.of_kafka))
            writers = stack.enter_context(ExitStack())
            writers.enter_context(load)
            writers.enter_context(own)
            wait_for(lambda: group.read > 100, 60, "records")
            for broker in cluster.brokers.values():
                broker.settings["security.inter.broker.protocol"] = "SASL_SSL"
            cluster.roll(lambda: wait_for_both(plain, load))
        assert plain.failures == []
        assert check(plain.finish()) == []

        for broker, address in zip(cluster.brokers.values(), secure, strict=True):
            broker.listeners = [f"SASL_SSL://{address}"]
            broker.settings |= security.in_force
        cluster.roll(lambda: wait_for_progress(load))
        writers.close()
        java.verify()
        wait_for(lambda: group.read >= own.acknowledged, 60, "our group to read everything")
        assert (load.failures, own.failures, group.failures) == ([], [], [])
        assert group.read == own.acknowledged
        cluster.assert_nothing_lost(load)


def wait_for_both(one: Load, other: Load) -> None:
    wait_for_progress(one)
    wait_for_progress(other)


def add_users(cluster: ThreeBrokers) -> None:
    with ottla.Admin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.alter_user_scram_credentials(
            [ScramUpsertion(name, password, MECHANISM) for name, password in PASSWORDS.items()]
        ).all()


def open_second_listeners(cluster: ThreeBrokers, security: ClusterSecurity) -> list[str]:
    """At the next start of each broker; their addresses."""
    addresses = []
    for id, broker in cluster.brokers.items():
        address = f"{host_of(id)}:{free_ports(1, host_of(id))[0]}"
        broker.listeners.append(f"SASL_SSL://{address}")
        broker.settings |= security.of_listener | security.as_open_as_before
        addresses.append(address)
    return addresses
