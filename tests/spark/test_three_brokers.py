"""A streaming query on a cluster of three brokers whose leaders are killed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.cluster.process import wait_for
from tests.cluster.three_brokers import ThreeBrokers
from tests.spark.committed_reader import committed_values
from tests.spark.spark_cluster import Cluster
from tests.store.zookeeper_server import Ensemble, zookeeper_ensemble

PER_KILL = 200
PARTITIONS = 2


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[ThreeBrokers]:
    folder = tmp_path / "spark-brokers"
    folder.mkdir()
    with (
        zookeeper_ensemble(tmp_path / "zookeeper", 1) as servers,
        ThreeBrokers(Ensemble(servers), folder) as cluster,
    ):
        yield cluster


def run_query_through_kills(
    brokers: ThreeBrokers, spark: SparkSession, folder: Path, kills: int
) -> None:
    """Copy a topic exactly once while leaders of it and of its copy are killed in turn."""
    cluster = Cluster(brokers.bootstrap, spark, folder)
    source, target = cluster.topic(PARTITIONS), cluster.topic(PARTITIONS)
    rows = cluster.stream(source, maxOffsetsPerTrigger="50").select("key", "value")
    query = (
        rows.writeStream.format("ottla")
        .option("kafka.bootstrap.servers", cluster.servers)
        .option("topic", target)
        .option("checkpointLocation", cluster.checkpoint())
        .start()
    )
    sent = [f"before-{number}" for number in range(10)]
    cluster.fill(source, sent)
    wait_until_read(query, len(sent))  # also: internal topics are created, with three replicas
    brokers.wait_until_all_in_sync()
    for kill in range(kills):
        values = [f"{kill}-{number}" for number in range(PER_KILL)]
        cluster.fill(source, values[: PER_KILL // 2])
        topic = (target, source)[kill % 2]
        leader = brokers.leader(topic)
        brokers.kill(leader)
        cluster.fill(source, values[PER_KILL // 2 :])
        sent += values
        brokers.wait_for_leader(topic, other_than=leader)
        wait_until_read(query, len(sent))
        brokers.start(leader)
        brokers.wait_until_all_in_sync()
    query.processAllAvailable()
    query.stop()
    copied = Counter(value.decode() for value in committed_values(cluster.servers, target) if value)
    assert copied == Counter(sent)
    brokers.assert_no_tracebacks()


def wait_until_read(query: StreamingQuery, count: int) -> None:
    def has_read() -> bool:
        return count <= sum(int(batch["numInputRows"]) for batch in query.recentProgress)

    wait_for(lambda: not query.isActive or has_read(), 120, "the query")
    assert query.isActive, str(query.exception())


@pytest.mark.spec("APP-11")
@pytest.mark.timeout(300)
def test_scenario_30_a_query_writes_exactly_once_through_two_leader_kills(
    brokers: ThreeBrokers, spark: SparkSession, tmp_path: Path
) -> None:
    """The short form of the one below."""
    run_query_through_kills(brokers, spark, tmp_path, kills=2)


@pytest.mark.slow
def test_scenario_30_a_query_writes_exactly_once_through_ten_leader_kills(
    brokers: ThreeBrokers, spark: SparkSession, tmp_path: Path
) -> None:
    run_query_through_kills(brokers, spark, tmp_path, kills=10)
