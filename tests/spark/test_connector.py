"""Spark's own Kafka connector against our broker, and ours with the same words."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, SparkSession

from ottla.client.producer.sync import Producer
from ottla.model.clock import SystemClock
from ottla.testing import Broker
from tests.spark.spark_cluster import Cluster

NOW_MS = SystemClock().wall_ms() - 500_000
FORMATS = ("kafka", "ottla")


@pytest.fixture(scope="module")
def filled(
    broker: Broker, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Cluster, str]:
    cluster = Cluster(broker.bootstrap_servers, spark, tmp_path_factory.mktemp("connector"))
    topic = cluster.topic(3)
    with Producer(bootstrap_servers=cluster.servers) as producer:
        for at in range(60):
            producer.send(
                topic,
                None if at == 7 else f"value {at}".encode(),
                key=None if at == 8 else f"key {at}".encode(),
                headers=[("at", str(at).encode()), ("empty", None)] if at % 2 else None,
                partition=at % 3,
                timestamp_ms=NOW_MS + 1_000 * at,
            )
    return cluster, topic


Job = Callable[[Cluster, str, str], DataFrame]

JOBS: dict[str, Job] = {
    "everything": lambda cluster, topic, format: cluster.read(topic, format),
    "with headers": lambda cluster, topic, format: cluster.read(
        topic, format, includeHeaders="true"
    ),
    "from a time to a time": lambda cluster, topic, format: cluster.read(
        topic, format, startingTimestamp=str(NOW_MS + 20_500), endingTimestamp=str(NOW_MS + 40_000)
    ),
    "from times by partition": lambda cluster, topic, format: cluster.read(
        topic,
        format,
        startingOffsetsByTimestamp=(
            f'{{"{topic}":{{"0":{NOW_MS},"1":{NOW_MS + 30_000},"2":{NOW_MS + 59_000}}}}}'
        ),
    ),
    "between offsets": lambda cluster, topic, format: cluster.read(
        topic,
        format,
        startingOffsets=f'{{"{topic}":{{"0":3,"1":-2,"2":19}}}}',
        endingOffsets=f'{{"{topic}":{{"0":5,"1":2,"2":-1}}}}',
    ),
    "a condition": lambda cluster, topic, format: cluster.read(topic, format).where(
        "partition = 1 and offset > 4 and cast(value as string) like '%1%'"
    ),
    "split": lambda cluster, topic, format: cluster.read(topic, format, minPartitions="7"),
    "one partition": lambda cluster, topic, format: cluster.read(
        topic, format, assign=f'{{"{topic}":[2]}}'
    ),
}


@pytest.mark.parametrize("name", JOBS)
def test_a_job_gives_the_same_rows_when_only_its_format_changes(
    filled: tuple[Cluster, str], name: str
) -> None:
    cluster, topic = filled
    theirs, ours = (JOBS[name](cluster, topic, format) for format in FORMATS)
    assert theirs.schema == ours.schema
    rows = [frame.orderBy("partition", "offset").collect() for frame in (theirs, ours)]
    assert rows[0] == rows[1]
    assert rows[0]


@pytest.mark.parametrize("reads", FORMATS)
@pytest.mark.parametrize("writes", FORMATS)
def test_what_one_connector_writes_the_other_reads(
    filled: tuple[Cluster, str], spark: SparkSession, writes: str, reads: str
) -> None:
    cluster, _ = filled
    topic = cluster.topic(2)
    rows = spark.range(40).selectExpr(
        "concat('k', id) key",
        "cast(id as string) value",
        "array(named_struct('key', 'h', 'value', cast(cast(id as string) as binary))) headers",
    )
    cluster.write(rows, topic, format=writes)
    found = cluster.read(topic, reads, includeHeaders="true")
    assert found.where("headers[0].value = value").count() == 40


@pytest.mark.parametrize(
    ("reads", "writes"), [("kafka", "kafka"), ("kafka", "ottla"), ("ottla", "kafka")]
)
def test_streams_go_from_topic_to_topic_with_either(
    filled: tuple[Cluster, str], reads: str, writes: str
) -> None:
    cluster, topic = filled
    target = cluster.topic(1)
    rows = cluster.stream(topic, reads, maxOffsetsPerTrigger="25").where("value is not null")
    cluster.pour(rows.select("key", "value"), target, cluster.checkpoint(), format=writes)
    assert cluster.values(target) == sorted(f"value {at}" for at in range(60) if at != 7)
