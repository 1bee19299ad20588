"""Brokers by option, or looked up in a real ZooKeeper, as old notes have it."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Iterator

import pytest

from ottla.cli.kafka.main import run
from ottla.cli.kafka.servers import bootstrap, registered_brokers
from ottla.model.clock import WallMs
from ottla.model.errors import UserError
from ottla.store import paths
from ottla.store.nodes import BrokerNode, EndpointNode
from ottla.store.zookeeper import ZooKeeperStore
from ottla.testing import Broker
from tests.store.zookeeper_server import zookeeper_server


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with zookeeper_server(tmp_path_factory.mktemp("zookeeper")) as running:
        yield running.address


async def register(connect: str, *addresses: str) -> None:
    """What brokers leave in ZooKeeper when they start."""
    store = ZooKeeperStore(connect, session_timeout_ms=6_000, connection_timeout_ms=30_000)
    await store.start()
    for path in ("/brokers", paths.BROKER_IDS):
        await store.create(path)
    for id, address in enumerate(addresses):
        host, _, port = address.rpartition(":")
        endpoints = (
            EndpointNode("PLAINTEXT", host, int(port), "PLAINTEXT"),
            EndpointNode("SECURE", host, 1, "SSL"),
        )
        await store.create(f"{paths.BROKER_IDS}/{id}", BrokerNode(endpoints, WallMs(0)).encode())
    await store.close()


@pytest.mark.spec("TOOL-04", "TOOL-05", "TOOL-06")
def test_brokers_are_looked_up_where_zookeeper_is_named(
    zookeeper: str, cli_broker: Broker, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(register(zookeeper, cli_broker.bootstrap_servers))
    assert asyncio.run(registered_brokers(zookeeper)) == cli_broker.bootstrap_servers
    words = ["--zookeeper", zookeeper, "--topic"]
    made = ["--replication-factor", "1", "--partitions", "1"]
    assert run("kafka-topics.sh", ["--create", *words, "by-zookeeper", *made]) == 0
    assert run("kafka-topics.sh", ["--list", "--zookeeper", zookeeper]) == 0
    assert run("kafka-topics.sh", ["--describe", *words, "by-zookeeper"]) == 0
    shown = capsys.readouterr().out
    assert "Created topic by-zookeeper." in shown
    assert topic in shown.split()
    assert "\tTopic: by-zookeeper\tPartition: 0\tLeader: 0" in shown


def test_brokers_of_a_chroot_are_looked_up_below_it(zookeeper: str) -> None:
    asyncio.run(register(f"{zookeeper}/chroot", "there:9092", "elsewhere:9093"))
    assert asyncio.run(registered_brokers(f"{zookeeper}/chroot")) == "there:9092,elsewhere:9093"
    with pytest.raises(ConnectionError, match="no broker is registered"):
        asyncio.run(registered_brokers(f"{zookeeper}/empty"))


def test_one_way_to_the_brokers_is_given() -> None:
    both = Namespace(bootstrap_server="b:1", zookeeper="z:2", broker_list=None)
    with pytest.raises(UserError, match="--zookeeper and --bootstrap-server"):
        bootstrap(both)
    assert bootstrap(Namespace(bootstrap_server="b:1", zookeeper=None)) == "b:1"
    assert bootstrap(Namespace(bootstrap_server=None, zookeeper=None)) == "localhost:9092"
    old = Namespace(bootstrap_server=None, zookeeper=None, broker_list="l:3")
    assert bootstrap(old) == "l:3"


def test_a_zookeeper_out_of_reach_is_said() -> None:
    with pytest.raises(ConnectionError, match=r"cannot reach ZooKeeper at 127\.0\.0\.1:1"):
        asyncio.run(registered_brokers("127.0.0.1:1", patience_ms=300))
