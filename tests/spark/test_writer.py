"""Topics written by Spark: rows, errors, and every race of an exactly-once sink."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from ottla.client.admin.sync import Admin
from ottla.client.producer.sync import Producer
from ottla.config.client import ProducerConfig
from ottla.model.clock import SystemClock
from ottla.model.errors import KafkaError
from ottla.spark import exactly_once, options, rows, sink_steps
from ottla.spark.commit_decisions import JobEnded, Sink, Superseded
from ottla.spark.commit_log import StoredCommitLog
from ottla.spark.connection import shared_connection
from ottla.spark.exactly_once import NoStepListener
from ottla.spark.sink_steps import BatchIdentity, TaskIdentity, begin_job, settle
from ottla.spark.writer import BatchWriter, Work
from tests.spark.committed_reader import committed
from tests.spark.spark_cluster import Cluster

NOW_MS = SystemClock().wall_ms()
HEADERS = "array(named_struct('key', 'h', 'value', cast('x' as binary)))"


def open_transactions(cluster: Cluster) -> list[str]:
    with Admin(bootstrap_servers=cluster.servers) as admin:
        return [each.id for each in admin.list_transactions(states=["Ongoing"])]


# rows


def test_a_batch_is_written_with_all_its_columns(cluster: Cluster, spark: SparkSession) -> None:
    topic = cluster.topic(3)
    rows = spark.range(6).selectExpr(
        "concat('key ', id) key",
        "if(id = 5, null, concat('value ', id)) value",
        "if(id % 2 = 0, null, 2) partition",
        f"timestamp_millis({NOW_MS} + id) timestamp",
        f"if(id = 3, null, {HEADERS}) headers",
        "'ignored' other",
    )
    cluster.write(rows, topic)
    found = cluster.read(topic, includeHeaders="true").orderBy("timestamp").collect()
    assert [row.key.decode() for row in found] == [f"key {at}" for at in range(6)]
    assert [row.value for row in found][5] is None
    assert {row.partition for row in found[1::2]} == {2}
    assert round(found[0].timestamp.timestamp() * 1_000) == NOW_MS
    assert found[0].headers == [Row(key="h", value=b"x")]
    assert not found[3].headers


def test_rows_without_a_partition_go_where_javas_producer_would_send_them(
    cluster: Cluster, spark: SparkSession
) -> None:
    topic = cluster.topic(5)
    cluster.write(spark.range(50).selectExpr("concat('k', id) key", "'v' value"), topic)
    written = {key: partition for partition, key, _ in committed(cluster.servers, topic)}
    again = cluster.topic(5)
    cluster.fill(again, [f"k{at}" for at in range(50)])
    assert written == {key: partition for partition, key, _ in committed(cluster.servers, again)}


def test_rows_choose_their_topic(cluster: Cluster, spark: SparkSession) -> None:
    first, second = cluster.topic(1), cluster.topic(1)
    rows = spark.range(4).selectExpr(
        f"if(id < 3, '{first}', '{second}') topic", "cast(id as string) value"
    )
    cluster.write(rows, None)
    assert (cluster.values(first), cluster.values(second)) == (["0", "1", "2"], ["3"])
    cluster.write(rows, second, **{"ottla.exactly.once": "false"})  # the option comes first
    assert cluster.values(second) == ["0", "1", "2", "3", "3"]


@pytest.mark.parametrize(
    ("columns", "given", "said"),
    [
        (["'v' value"], {}, "topic: expected the option topic, or a column named topic"),
        (["cast(null as string) topic", "'v' value"], {}, "a row has no topic"),
        (["'k' key"], {"topic": "t"}, "no column named value"),
        (["id value"], {"topic": "t"}, "the column value is of type bigint"),
        (["'v' value"], {"topic": "t", "kafka.transactional.id": "x"}, "kafka.transactional.id is"),
        (["'v' value"], {"topic": "t", "ottla.exactly.once": "x"}, "ottla.exactly.once='x'"),
        (["'v' value"], {"topic": "t", "ottla.sink": "s"}, "ottla.sink: only for writes inside"),
    ],
)
def test_a_batch_that_cannot_be_written_says_why(
    cluster: Cluster, spark: SparkSession, columns: list[str], given: dict[str, str], said: str
) -> None:
    rows = spark.range(1).selectExpr(*columns)
    with pytest.raises(PySparkException, match=said):
        cluster.write(rows, given.pop("topic", None), **given)


def test_a_topic_cannot_be_overwritten(cluster: Cluster, spark: SparkSession) -> None:
    writer = spark.range(1).selectExpr("'v' value").write.format("ottla").mode("overwrite")
    writer = writer.option("kafka.bootstrap.servers", cluster.servers).option("topic", "t")
    with pytest.raises(PySparkException, match="a topic can only be appended to"):
        writer.save()


def test_a_batch_is_written_whole_or_not_at_all(cluster: Cluster, spark: SparkSession) -> None:
    topic = cluster.topic(1)
    before = set(open_transactions(cluster))  # of other tests
    rows = spark.range(0, 100, 1, 2).selectExpr(
        "if(id = 99, assert_true(false), null) is null ok", "cast(id as string) value"
    )
    with pytest.raises(PySparkException, match=r"assert_true|is not true"):
        cluster.write(rows.select("value", "ok"), topic)
    assert cluster.values(topic) == []
    cluster.write(spark.range(100).selectExpr("cast(id as string) value"), topic)
    # The failed job's other task may be at work yet, or be killed at it: the next job sees to it.
    deadline = time.monotonic() + 60
    while left := set(open_transactions(cluster)) - before:
        assert time.monotonic() < deadline, left
        cluster.write(spark.range(1).selectExpr("'x' value"), cluster.topic(1))
    assert len(cluster.values(topic)) == 100


@pytest.mark.parametrize("opened_first", [False, True])
def test_a_task_that_outlives_its_failed_job_leaves_nothing_open(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, opened_first: bool
) -> None:
    topic = cluster.topic(1)
    given = options.sink({"kafka.bootstrap.servers": cluster.servers, "topic": topic})
    columns = rows.written_columns(StructType([StructField("value", StringType())]), topic)
    job = begin_job(given)
    writer = BatchWriter(given, columns, job)
    monkeypatch.setattr(sink_steps, "current_task", lambda: TaskIdentity(0, "0", None))

    def batches() -> Iterator[pa.RecordBatch]:
        batch = pa.record_batch({"value": ["never"]})
        if opened_first:
            yield batch
        writer.abort([])  # another task has failed; Spark does not wait for this one
        yield batch

    with pytest.raises((JobEnded, KafkaError)):
        writer.write(batches())
    assert not [id for id in open_transactions(cluster) if id.startswith(f"{job}-")]
    assert cluster.values(topic) == []


# streams


def test_order_is_kept_per_partition_where_nothing_is_split(cluster: Cluster) -> None:
    source, target = cluster.topic(2), cluster.topic(2)
    cluster.fill(source, [f"{at:04}" for at in range(400)])
    rows = cluster.stream(source, maxOffsetsPerTrigger="150")
    cluster.pour(rows.select("key", "value", "partition"), target, cluster.checkpoint())
    assert sorted(committed(cluster.servers, target)) == sorted(committed(cluster.servers, source))
    for partition in (0, 1):
        values = [value for at, _, value in committed(cluster.servers, target) if at == partition]
        assert values == sorted(value for value in values if value is not None)


def test_a_stream_can_be_at_least_once(cluster: Cluster) -> None:
    source, target = cluster.topic(1), cluster.topic(1)
    cluster.fill(source, ["a", "b"])
    rows = cluster.stream(source).select("value")
    cluster.pour(rows, target, cluster.checkpoint(), **{"ottla.exactly.once": "false"})
    assert cluster.values(target) == ["a", "b"]


def test_writes_in_foreach_batch_are_exactly_once_under_a_name(
    cluster: Cluster, spark: SparkSession
) -> None:
    source, target = cluster.topic(1), cluster.topic(1)
    cluster.fill(source, ["a", "b"])
    turns = []

    def twice(rows: DataFrame, batch: int) -> None:
        """Spark may call it again for the same batch, as after a crash."""
        turns.append(batch)
        for name in ("first", "second"):
            cluster.write(rows, target, **{"ottla.sink": name})
        if len(turns) == 1:
            raise RuntimeError("killed")

    for _ in range(2):
        checkpoint = str(Path(cluster.checkpoint()).parent / "foreach")
        writer = cluster.stream(source).select("value").writeStream.foreachBatch(twice)
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        if not turns:
            with pytest.raises(PySparkException, match="killed"):
                query.awaitTermination()
        else:
            query.awaitTermination()
    assert turns == [0, 0]
    assert cluster.values(target) == ["a", "a", "b", "b"]


# races


class Tasks:
    """Tasks and drivers of one query, called as Spark calls them."""

    def __init__(self, cluster: Cluster, query: str) -> None:
        self.cluster = cluster
        self.sink = Sink(query)
        self.options = options.sink({"kafka.bootstrap.servers": cluster.servers})
        self.connection = shared_connection(ProducerConfig, self.options.client)
        self.ledger = StoredCommitLog(self.sink, self.connection, self.options.client)

    def prepared(self, topic: str, turn: BatchIdentity, value: str, attempt: str = "0") -> Work:
        entry = self.connection.run(exactly_once.take_over(self.ledger, turn.run))
        with Producer(
            bootstrap_servers=self.cluster.servers,
            transactional_id=self.sink.transactional_id(entry.run_epoch, 0, attempt),
            transaction_two_phase_commit_enable=True,
        ) as producer:
            producer.init_transactions(keep_prepared=True)
            producer.begin()
            producer.send(topic, value.encode())
            made = producer.prepare_transaction()
        return Work(1, made, self.sink, turn.run, turn.batch)

    def commit(self, *works: Work) -> None:
        settle(self.options, works, NoStepListener())


def test_a_late_attempt_changes_nothing(cluster: Cluster) -> None:
    topic, tasks = cluster.topic(1), Tasks(cluster, "late-attempt")
    turn = BatchIdentity("late-attempt", "run", 0)
    authorised = tasks.prepared(topic, turn, "once")
    tasks.prepared(topic, turn, "once", attempt="1")  # while the first waits to be committed
    tasks.commit(authorised)
    assert cluster.values(topic) == ["once"]
    late = tasks.prepared(topic, turn, "once", attempt="2")  # after it was
    tasks.commit(tasks.prepared(topic, turn._replace(batch=1), "next"))
    assert cluster.values(topic) == ["next", "once"]
    assert late.prepared is not None
    assert late.prepared.transactional_id not in open_transactions(cluster)


def test_a_zombie_driver_is_told_that_another_run_is_active(cluster: Cluster) -> None:
    topic, tasks = cluster.topic(1), Tasks(cluster, "zombie")
    zombies = tasks.prepared(topic, BatchIdentity("zombie", "old", 0), "once")
    successors = tasks.prepared(topic, BatchIdentity("zombie", "new", 0), "once")
    with pytest.raises(Superseded, match="another run of this query is active"):
        tasks.commit(zombies)
    tasks.commit(successors)
    assert cluster.values(topic) == ["once"]


def test_a_second_query_on_one_checkpoint_fences_the_first(
    cluster: Cluster, spark: SparkSession
) -> None:
    """Two sessions of one JVM do not know of each other's checkpoints; the sink does."""
    source, target, checkpoint = cluster.topic(1), cluster.topic(1), cluster.checkpoint()
    cluster.fill(source, ["a"])
    cluster.pour(cluster.stream(source).select("value"), target, checkpoint)
    query = str(Path(checkpoint, "metadata").read_text()).split('"')[3]
    tasks = Tasks(cluster, query)
    tasks.connection.run(exactly_once.take_over(tasks.ledger, "a run elsewhere"))
    cluster.fill(source, ["b"])
    cluster.pour(cluster.stream(source).select("value"), target, checkpoint)  # the newest, now
    with pytest.raises(Superseded):
        tasks.commit(Work(0, None, tasks.sink, "a run elsewhere", 7))
    assert cluster.values(target) == ["a", "b"]
