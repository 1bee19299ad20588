"""Clients of three makes write and read through a rolling restart of three brokers."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster.java_load import JavaLoad
from tests.cluster.load import GroupReader, wait_for_progress
from tests.cluster.own_load import OwnGroup, OwnLoad
from tests.cluster.process import wait_for
from tests.cluster.three_brokers import ThreeBrokers
from tests.store.zookeeper_server import Ensemble

TOPIC = "load"
PARTITIONS = 3


@pytest.mark.slow
@pytest.mark.spec("CTL-76")
def test_no_client_sees_an_error_in_a_rolling_restart(ensemble: Ensemble, tmp_path: Path) -> None:
    """Ours, librdkafka's and Java's: an idempotent producer and a member of a group of each."""
    with ThreeBrokers(ensemble, tmp_path) as cluster, ExitStack() as stack:
        for topic in (TOPIC, "own", "java"):
            cluster.create_topic(topic, PARTITIONS)
        java = stack.enter_context(JavaLoad(cluster.bootstrap, "java", tmp_path))
        group = stack.enter_context(OwnGroup(cluster.bootstrap, "own"))
        classic = stack.enter_context(GroupReader(cluster.bootstrap, TOPIC, "classic"))
        newer = stack.enter_context(GroupReader(cluster.bootstrap, TOPIC, "consumer"))
        own = OwnLoad(cluster.bootstrap, "own", PARTITIONS)
        with cluster.load(TOPIC, PARTITIONS, producers=1) as load, own:
            wait_for_progress(load)
            wait_for(lambda: min(group.read, len(classic.read), len(newer.read)) > 100, 60, "all")
            cluster.roll(lambda: wait_for_progress(load))
        java.verify()
        wait_for(lambda: group.read >= own.acknowledged, 60, "our group to read everything")
        for reader in (classic, newer):
            wait_for(lambda: len(reader.read) >= load.acknowledged, 60, reader.name)  # noqa: B023
            assert (reader.failures, reader.repeated) == ([], 0)
        assert load.failures == []
        assert own.failures == []
        assert group.failures == []
        assert group.read == own.acknowledged
        cluster.assert_nothing_lost(load)
