"""`format("ottla")` read by Spark: rows, schema, options and errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from ottla.client.admin.sync import Admin
from ottla.client.producer.sync import Producer
from ottla.model.ids import TopicPartition as TP
from ottla.spark import PUSH_FILTERS
from ottla.testing import Broker
from tests.spark.spark_cluster import Cluster


@pytest.fixture(scope="module")
def hundred(
    broker: Broker, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Cluster, str]:
    cluster = Cluster(broker.bootstrap_servers, spark, tmp_path_factory.mktemp("hundred"))
    topic = cluster.topic(2)
    with Producer(bootstrap_servers=cluster.servers) as producer:
        for at in range(100):
            producer.send(
                topic,
                f"value {at}".encode(),
                key=f"key {at}".encode(),
                headers=[("at", str(at).encode()), ("none", None)],
                partition=at % 2,
                timestamp_ms=START_MS + 1_000 * at,
            )
        producer.send(topic, None, key=b"tombstone", partition=0)
    return cluster, topic


def _start_ms() -> int:
    from ottla.model.clock import SystemClock

    return SystemClock().wall_ms() // 1_000 * 1_000 - 1_000_000


START_MS = _start_ms()


@contextmanager
def pushed_filters(spark: SparkSession) -> Iterator[None]:
    """As `register(spark, push_filters=True)` has it."""
    spark.conf.set(PUSH_FILTERS, "true")
    try:
        yield
    finally:
        spark.conf.unset(PUSH_FILTERS)


def test_a_batch_has_every_record_and_every_column(hundred: tuple[Cluster, str]) -> None:
    cluster, topic = hundred
    rows = cluster.read(topic, includeHeaders="true").orderBy("partition", "offset").collect()
    assert len(rows) == 101
    seventh = rows[3]
    assert seventh.asDict() == {
        "key": b"key 6",
        "value": b"value 6",
        "topic": topic,
        "partition": 0,
        "offset": 3,
        "timestamp": seventh.timestamp,
        "timestampType": 0,
        "headers": [Row(key="at", value=b"6"), Row(key="none", value=None)],
    }
    assert seventh.timestamp.timestamp() * 1_000 == START_MS + 6_000
    assert [row.key for row in rows if row.value is None] == [b"tombstone"]


def test_columns_can_be_chosen(hundred: tuple[Cluster, str]) -> None:
    cluster, topic = hundred
    chosen = cluster.read(topic, columns="offset,headers,topic")
    assert chosen.columns == ["offset", "headers", "topic"]
    assert chosen.where("offset = 2").first() is not None
    assert cluster.read(topic, columns="topic,partition").distinct().count() == 2


def test_offsets_bound_a_batch(hundred: tuple[Cluster, str]) -> None:
    cluster, topic = hundred
    bounded = cluster.read(
        topic,
        startingOffsets=f'{{"{topic}":{{"0":45,"1":-2}}}}',
        endingOffsets=f'{{"{topic}":{{"0":-1,"1":10}}}}',
    )
    assert bounded.groupBy("partition").count().orderBy("partition").collect() == [
        Row(partition=0, count=6),
        Row(partition=1, count=10),
    ]


def test_times_bound_a_batch(hundred: tuple[Cluster, str]) -> None:
    cluster, topic = hundred
    by_time = cluster.read(
        topic, startingTimestamp=str(START_MS + 20_000), endingTimestamp=str(START_MS + 30_000)
    )
    assert by_time.count() == 10
    per_partition = cluster.read(
        topic,
        startingOffsetsByTimestamp=(
            f'{{"{topic}":{{"0":{START_MS + 90_000},"1":{START_MS + 98_000}}}}}'
        ),
    )
    assert per_partition.where("value is not null").count() == 5 + 1


def test_a_time_in_the_future_is_an_error_or_the_end(hundred: tuple[Cluster, str]) -> None:
    cluster, topic = hundred
    future = str(START_MS + 10**9)
    with pytest.raises(
        PySparkException, match="startingTimestamp: no record at or after this time"
    ):
        cluster.read(topic, startingTimestamp=future).count()
    assert (
        cluster.read(
            topic, startingTimestamp=future, startingOffsetsByTimestampStrategy="latest"
        ).count()
        == 0
    )


def test_partitions_can_be_assigned_or_matched(hundred: tuple[Cluster, str]) -> None:
    cluster, topic = hundred
    assert cluster.read(topic, assign=f'{{"{topic}":[1]}}').count() == 50
    assert cluster.read(topic, subscribePattern=topic.replace("-", ".")).count() == 101
    assert cluster.read(topic, subscribePattern="no such topic.*").count() == 0


def test_large_partitions_are_split(hundred: tuple[Cluster, str]) -> None:
    cluster, topic = hundred
    assert cluster.read(topic).rdd.getNumPartitions() == 2
    few = cluster.read(topic, minPartitions="6")
    assert few.rdd.getNumPartitions() == 6
    small = cluster.read(topic, maxRecordsPerPartition="10")
    assert small.rdd.getNumPartitions() == 11
    assert small.select("partition", "offset").distinct().count() == 101


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("partition = 1", 50),
        ("partition = 1 and offset >= 40", 10),
        ("offset in (3, 4)", 4),
        ("offset < 5 and value like 'value 1%'", 1),
        ("topic = 'another'", 0),
        ("partition = 0 or offset = 1", 52),
    ],
)
def test_conditions_give_the_same_rows_pushed_down_or_not(
    hundred: tuple[Cluster, str], spark: SparkSession, condition: str, count: int
) -> None:
    cluster, topic = hundred
    assert cluster.read(topic).where(condition).count() == count
    with pushed_filters(spark):
        assert cluster.read(topic).where(condition).count() == count


def test_the_filter_of_one_query_does_not_stay_in_the_frame(hundred: tuple[Cluster, str]) -> None:
    """Spark 4.3 keeps what it has pushed down for every later query of the same frame."""
    cluster, topic = hundred
    rows = cluster.read(topic)
    assert rows.where("partition = 1").count() == 50
    assert rows.count() == 101


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_conditions_on_time_hold_in_every_zone(
    hundred: tuple[Cluster, str], spark: SparkSession, zone: str
) -> None:
    cluster, topic = hundred
    moment = F.timestamp_millis(F.lit(START_MS + 20_000))
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        with pushed_filters(spark):
            rows = cluster.read(topic)
            time, place = F.col("timestamp"), F.col("partition")
            assert rows.where(time < moment).count() == 20
            assert rows.where(time == moment).count() == 1
            assert rows.where((time >= moment) & (place == 0)).count() == 41
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_a_filter_on_the_place_leaves_partitions_unread(
    hundred: tuple[Cluster, str], spark: SparkSession
) -> None:
    cluster, topic = hundred
    with pushed_filters(spark):
        assert cluster.read(topic).where("partition = 1").rdd.getNumPartitions() == 1


def test_only_committed_records_are_read_unless_told_otherwise(cluster: Cluster) -> None:
    topic = cluster.topic(1)
    with Producer(bootstrap_servers=cluster.servers, transactional_id=topic) as producer:
        producer.init_transactions()
        for commit, value in ((True, b"yes"), (False, b"no"), (True, b"again")):
            producer.begin()
            producer.send(topic, value)
            producer.flush()
            producer.commit() if commit else producer.abort()
        producer.begin()
        producer.send(topic, b"open")
        producer.flush()
        seen = [row.value for row in cluster.read(topic).orderBy("offset").collect()]
        every = cluster.read(topic, **{"kafka.isolation.level": "read_uncommitted"}).count()
        producer.abort()
    assert seen == [b"yes", b"again"]
    assert every == 4


def test_records_that_are_gone_fail_the_query_unless_that_is_allowed(cluster: Cluster) -> None:
    topic = cluster.topic(1)
    cluster.fill(topic, [f"{at:03}" for at in range(50)])
    with Admin(bootstrap_servers=cluster.servers) as admin:
        admin.delete_records({TP(topic, 0): 20}).all()
    wanted = {"startingOffsets": f'{{"{topic}":{{"0":5}}}}'}
    with pytest.raises(PySparkException, match="offset 5 is below the log start offset 20"):
        cluster.read(topic, **wanted).count()
    assert cluster.read(topic, failOnDataLoss="false", **wanted).count() == 30


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"assign": "x"}, "assign='x'"),
        ({"startingOffsets": "latest"}, "startingOffsets=latest"),
        ({"startingOffsets": '{"t":{"0":1}}'}, "startingOffsets: expected every partition"),
        ({"kafka.enable.auto.commit": "true"}, "kafka.enable.auto.commit is set by the source"),
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger='0'"),
        ({"subscribe": "no-such-topic"}, "subscribe: there is no topic no-such-topic"),
        ({"assign": '{"no-such-topic":[7]}'}, "assign: there is no topic no-such-topic"),
    ],
)
def test_a_bad_option_of_a_batch_is_an_error_that_names_it_without_a_traceback(
    hundred: tuple[Cluster, str], options: dict[str, str], said: str
) -> None:
    cluster, topic = hundred
    with pytest.raises(PySparkException, match=said) as raised:
        cluster.read(topic, **options).count()
    assert "Traceback" not in str(raised.value)


def test_spark_finds_the_format_by_itself(
    hundred: tuple[Cluster, str], spark: SparkSession
) -> None:
    cluster, topic = hundred
    other = spark.newSession()  # nothing was registered here
    reader = other.read.format("ottla").option("kafka.bootstrap.servers", cluster.servers)
    assert reader.option("subscribe", topic).load().count() == 101
