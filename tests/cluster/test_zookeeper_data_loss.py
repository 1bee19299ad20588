"""Three brokers whose ZooKeeper lost its data: what they do without it, and after an import."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka import Consumer, TopicPartition
from kazoo.client import KazooClient

from ottla.cli import main
from tests.cluster.administration import orphans, topic_id
from tests.cluster.load import connection, produce, values
from tests.cluster.process import wait_for
from tests.cluster.three_brokers import IDS, ThreeBrokers
from tests.store.zookeeper_server import Ensemble, Server, zookeeper_server

TOPIC = "orders"
INTERNAL = "__consumer_offsets"
GROUPS = [f"group-{number}" for number in range(8)]
"""Enough for every partition of the internal topic to be likely to have one."""
NAMES = [f"n-{number}" for number in range(100)]
LOST = "ZooKeeper lost its data: /cluster/id of this cluster is missing"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with zookeeper_server(tmp_path) as running:
        running.wait_until_it_serves()
        yield running


def group_of(cluster: ThreeBrokers, name: str) -> Consumer:
    return Consumer(
        {**connection(cluster.bootstrap), "group.id": name, "enable.auto.commit": False}
    )


def commit(cluster: ThreeBrokers, offset: int) -> None:
    for name in GROUPS:
        consumer = group_of(cluster, name)
        at = [TopicPartition(TOPIC, 0, offset)]
        done: Any = consumer.commit(offsets=at, asynchronous=False)
        assert done[0].error is None
        consumer.close()


def committed_offsets(cluster: ThreeBrokers) -> list[int]:
    offsets = []
    for name in GROUPS:
        consumer = group_of(cluster, name)
        offsets += [one.offset for one in consumer.committed([TopicPartition(TOPIC, 0)], 30)]
        consumer.close()
    return offsets


def topic_ids(cluster: ThreeBrokers) -> list[UUID]:
    return [topic_id(cluster, topic) for topic in (TOPIC, INTERNAL)]


def export(cluster: ThreeBrokers, folder: Path) -> Path:
    file = folder / "backup.jsonl"
    assert main.run(["metadata", "export", str(file), "--from", place_of(cluster)]) == 0
    return file


def place_of(cluster: ThreeBrokers) -> str:
    return f"zookeeper://{cluster.ensemble.address}{cluster.path}"


def replica_directories(cluster: ThreeBrokers) -> dict[int, list[str]]:
    return {
        id: sorted(path.name for path in cluster.brokers[id].dirs[0].iterdir() if path.is_dir())
        for id in IDS
    }


@pytest.mark.timeout(180)
def test_a_cluster_goes_on_from_an_export_after_zookeeper_lost_its_data(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ThreeBrokers(Ensemble([server]), tmp_path) as cluster:
        cluster.create_topic(TOPIC, 3)
        produce(cluster.bootstrap, TOPIC, NAMES)
        commit(cluster, 40)
        cluster.wait_until_all_in_sync()
        ids, backup = topic_ids(cluster), export(cluster, tmp_path)
        produce(cluster.bootstrap, TOPIC, ["after the export"])
        commit(cluster, 41)
        for id in IDS:
            cluster.stop(id)
        kept = replica_directories(cluster)
        server.lose_data()
        for id in IDS:  # none of them makes a new cluster of an empty store
            cluster.brokers[id].launch()
        for id in IDS:
            assert cluster.brokers[id].ends() == 2
            said = cluster.brokers[id].said
            assert "has no metadata of that cluster: it lost its data" in said
            assert f"ottla metadata import FILE --to {place_of(cluster)}" in said
        assert replica_directories(cluster) == kept
        assert main.run(["metadata", "import", str(backup), "--to", place_of(cluster)]) == 0
        cluster.look_again()
        for id in IDS:
            cluster.brokers[id].launch()
        cluster.wait_until_ready(*IDS)
        cluster.wait_until_all_in_sync()
        assert topic_ids(cluster) == ids
        assert values(cluster.bootstrap, TOPIC, 3) == [*NAMES, "after the export"]
        assert committed_offsets(cluster) == [41] * len(GROUPS)
        produce(cluster.bootstrap, TOPIC, ["after the import"])
        commit(cluster, 102)
        assert values(cluster.bootstrap, TOPIC, 3)[-1] == "after the import"
        assert committed_offsets(cluster) == [102] * len(GROUPS)
        cluster.assert_replicas_equal()
        assert orphans(cluster) == []
        cluster.assert_no_tracebacks()


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_brokers_that_run_when_zookeeper_loses_its_data_serve_on_until_it_is_restored(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ThreeBrokers(Ensemble([server]), tmp_path) as cluster:
        cluster.create_topic(TOPIC, 3)
        produce(cluster.bootstrap, TOPIC, NAMES)
        commit(cluster, 40)
        cluster.wait_until_all_in_sync()
        ids, backup = topic_ids(cluster), export(cluster, tmp_path)
        held = replica_directories(cluster)
        server.lose_data()
        overtake_lost_transactions(server)
        wait_for(
            lambda: all(LOST in broker.said for broker in cluster.brokers.values()),
            60,
            "every broker to notice the loss",
        )
        cluster.look_again()
        assert cluster.registered == []
        produce(cluster.bootstrap, TOPIC, ["without metadata"])
        commit(cluster, 41)
        assert values(cluster.bootstrap, TOPIC, 3) == [*NAMES, "without metadata"]
        assert replica_directories(cluster) == held
        assert main.run(["metadata", "import", str(backup), "--to", place_of(cluster)]) == 0
        cluster.wait_until_all_in_sync()
        produce(cluster.bootstrap, TOPIC, ["after the import"])
        assert topic_ids(cluster) == ids
        expected = [*NAMES, "without metadata", "after the import"]
        assert values(cluster.bootstrap, TOPIC, 3) == expected
        assert committed_offsets(cluster) == [41] * len(GROUPS)
        assert {broker.lives for broker in cluster.brokers.values()} == {1}
        cluster.assert_replicas_equal()
        cluster.assert_no_tracebacks()


def overtake_lost_transactions(server: Server) -> None:
    """ZooKeeper refuses clients that have seen later transactions than it has."""
    client = KazooClient(hosts=server.address)
    client.start(30)
    created = [client.create_async(f"/filler-{number}") for number in range(2000)]
    deleted = [client.delete_async(call.get(30)) for call in created]
    for call in deleted:
        call.get(30)
    client.stop()
    client.close()
