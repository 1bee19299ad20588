"""The same writes for Spark's own Kafka connector and for ours: the same records, or both refuse.

Every case is written with both formats to topics of its own, on a broker with default settings that
creates no topics. What is compared is what a reader of committed records finds.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

from ottla.client.admin.sync import Admin
from ottla.client.admin.topics import NewTopic
from ottla.client.producer.sync import Producer
from ottla.testing import Broker
from tests.spark.default_settings import DEFAULT_SETTINGS
from tests.spark.pipelines.jobs import read

FORMATS: Final = ("kafka", "ottla")
QUICK: Final = {"kafka.max.block.ms": "3000"}
REFUSED: Final = "refused"
ROUND_ROBIN: Final = "org.apache.kafka.clients.producer.RoundRobinPartitioner"
HEADERS: Final = (
    "array(named_struct('key', 'a', 'value', cast(cast(id as string) as binary)),"
    " named_struct('key', 'b', 'value', cast(null as binary))) headers"
)
VALUE: Final = "cast(id as string) value"
_names = itertools.count()


class Write(NamedTuple):
    """Rows 0 to 8 with these columns, and the options that they are written with."""

    columns: tuple[str, ...]
    options: Mapping[str, str] = {}
    partitions: int = 1
    """Of the topic: one where nothing says which a row goes to."""
    has_topic: bool = True
    """Whether the option topic names it."""


BATCH: Final[Mapping[str, Write]] = {
    "text": Write(("concat('k', id) key", VALUE), partitions=3),
    "bytes": Write(("cast(concat('k', id) as binary) key", "unhex('ff00fe') value"), partitions=3),
    "values alone": Write((VALUE,)),
    "keys that are null": Write(("cast(null as string) key", VALUE)),
    "some keys that are null": Write(("if(id % 2 = 0, null, concat('k', id)) key", VALUE)),
    "empty keys and values": Write(("'' key", "'' value"), partitions=3),
    "values that are null": Write(("concat('k', id) key", "cast(null as binary) value"), {}, 3),
    "headers": Write((VALUE, HEADERS)),
    "headers that are null": Write((VALUE, f"if(id > 4, null, {HEADERS[:-8]}) headers")),
    "a column with the topic": Write((VALUE, "'TOPIC' topic"), has_topic=False),
    "a column and the option topic": Write((VALUE, "'nothing' topic")),
    "a column with the partition": Write((VALUE, "cast(id % 3 as int) partition"), partitions=3),
    "a partition for some": Write(
        ("concat('k', id) key", VALUE, "if(id < 4, null, 2) partition"), partitions=3
    ),
    "more columns": Write((VALUE, "id", "'x' other")),
    "compressed": Write((VALUE,), {"kafka.compression.type": "gzip"}),
    "a setting of somebody else": Write((VALUE,), {"kafka.my.reporter.url": "http://x"}),
    "a partition that is not there": Write((VALUE, "9 partition"), QUICK),
    "a topic that is not there": Write((VALUE,), {"topic": "nothing", **QUICK}),
    "no topic": Write((VALUE,), has_topic=False),
    "a topic that is null": Write((VALUE, "cast(null as string) topic"), has_topic=False),
    "no value": Write(("'k' key",)),
    "a value of another type": Write(("id value",)),
    "a key of another type": Write(("id key", VALUE)),
    "headers of another type": Write((VALUE, "'h' headers")),
    "a partition of another type": Write((VALUE, "'0' partition")),
    "a serializer": Write((VALUE,), {"kafka.value.serializer": "x"}),
}

STREAM: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "append": ("append", ("key", "value")),
    "append with the topic of each row": ("append", ("key", "value", "'TOPIC' topic")),
    "append of what changes": ("append", ()),
    "complete": ("complete", ()),
    "complete of what does not change": ("complete", ("key", "value")),
}
"""An output mode, and columns; none: how many values each key has."""


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker({**DEFAULT_SETTINGS, "auto.create.topics.enable": "false"}) as broker:
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.create_topic("input", partitions=1)
        with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
            for at in range(8):
                producer.send("input", b"v%d" % at, key=b"k%d" % (at % 3))
        yield broker.bootstrap_servers


def new_topic(servers: str, partitions: int = 1) -> str:
    name = f"written-{next(_names)}"
    with Admin(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic(name, partitions)]).all()
    return name


def records(servers: str, topic: str) -> list[tuple[object, ...]]:
    found = read(servers, topic)
    return sorted(((r.partition, r.key, r.value, tuple(r.headers)) for r in found), key=repr)


def written(spark: SparkSession, format: str, servers: str, case: Write) -> object:
    topic = new_topic(servers, case.partitions)
    rows = spark.range(9).coalesce(1)
    frame = rows.selectExpr(*(column.replace("TOPIC", topic) for column in case.columns))
    options = {"topic": topic} if case.has_topic else {}
    writer = frame.write.format(format).mode("append").options(**{**options, **case.options})
    try:
        writer.option("kafka.bootstrap.servers", servers).save()
    except (PySparkException, Py4JError):
        assert records(servers, topic) == []
        return REFUSED
    return records(servers, topic)


def input_stream(spark: SparkSession, servers: str, columns: tuple[str, ...]) -> DataFrame:
    """The records of the input in two batches."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    reader = reader.option("subscribe", "input").option("startingOffsets", "earliest")
    frame = reader.option("maxOffsetsPerTrigger", "5").load()
    if columns:
        return frame.selectExpr(*columns)
    return frame.groupBy("key").count().selectExpr("key", "cast(count as string) value")


def poured(
    spark: SparkSession, format: str, servers: str, case: tuple[str, tuple[str, ...]], folder: Path
) -> object:
    mode, columns = case
    topic = new_topic(servers)
    named = tuple(column.replace("TOPIC", topic) for column in columns)
    frame = input_stream(spark, servers, named)
    writer = frame.writeStream.format(format).outputMode(mode)
    writer = writer.option("kafka.bootstrap.servers", servers)
    if not any(column.endswith(" topic") for column in columns):
        writer = writer.option("topic", topic)
    writer = writer.option("checkpointLocation", str(folder / format))
    try:
        writer.trigger(availableNow=True).start().awaitTermination()
    except (PySparkException, Py4JError):
        return REFUSED
    return records(servers, topic)


@pytest.mark.parametrize("name", BATCH)
def test_a_batch_is_written_as_by_sparks_connector(
    spark: SparkSession, servers: str, name: str
) -> None:
    theirs, ours = (written(spark, format, servers, BATCH[name]) for format in FORMATS)
    assert ours == theirs
    assert ours == REFUSED or len(ours) == 9  # type: ignore[arg-type]


@pytest.mark.parametrize("name", STREAM)
def test_a_stream_is_written_as_by_sparks_connector(
    spark: SparkSession, servers: str, tmp_path: Path, name: str
) -> None:
    theirs, ours = (poured(spark, format, servers, STREAM[name], tmp_path) for format in FORMATS)
    assert ours == theirs
    assert ours


def test_keys_choose_no_partition_where_they_are_to_be_ignored(
    spark: SparkSession, servers: str
) -> None:
    columns = ("concat('k', id) key", VALUE)
    by_key = Write(columns, partitions=3)
    ignored = by_key._replace(options={"kafka.partitioner.ignore.keys": "true"})
    for format in FORMATS:
        for case, partitions in ((by_key, 3), (ignored, 1)):
            found = written(spark, format, servers, case)
            assert isinstance(found, list)
            assert len({record[0] for record in found}) == partitions, format


# What Spark 4.3 does not let a sink in Python do, or Python cannot: the error says what to write.


def test_a_partitioner_of_java_is_refused_with_what_to_write_instead(
    spark: SparkSession, servers: str
) -> None:
    case = Write((VALUE,), {"kafka.partitioner.class": ROUND_ROBIN}, partitions=3)
    theirs = written(spark, "kafka", servers, case)
    assert len({record[0] for record in theirs}) == 3  # type: ignore[attr-defined]
    assert written(spark, "ottla", servers, case) == REFUSED
    with pytest.raises(PySparkException, match=r"partitioner\.class .* in the column partition"):
        write_of(spark, servers).option("kafka.partitioner.class", ROUND_ROBIN).save()


def test_a_write_without_a_mode_is_refused_with_what_to_write_instead(
    spark: SparkSession, servers: str
) -> None:
    with pytest.raises(
        PySparkException, match=r'the "ErrorIfExists" mode\. Please use .* "Append"'
    ):
        write_of(spark, servers, mode=None).save()


def test_the_output_mode_update_is_refused_and_foreach_batch_writes_the_same(
    spark: SparkSession, servers: str, tmp_path: Path
) -> None:
    theirs = poured(spark, "kafka", servers, ("update", ()), tmp_path)
    frame, topic = input_stream(spark, servers, ()), new_topic(servers)
    given = {"kafka.bootstrap.servers": servers, "topic": topic}
    writer = frame.writeStream.outputMode("update").trigger(availableNow=True)
    refused = writer.format("ottla").options(**given)
    refused = refused.option("checkpointLocation", str(tmp_path / "refused"))
    with pytest.raises(PySparkException, match="ottla does not support Update mode"):
        refused.start().awaitTermination()

    def write(batch: DataFrame, _: int) -> None:
        options = {**given, "ottla.sink": "updates"}
        batch.write.format("ottla").mode("append").options(**options).save()

    writer = frame.writeStream.outputMode("update").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(tmp_path / "ottla"))
    writer.foreachBatch(write).start().awaitTermination()
    assert records(servers, topic) == theirs
    assert len(records(servers, topic)) == 6


def write_of(spark: SparkSession, servers: str, mode: str | None = "append") -> DataFrameWriter:
    writer = spark.range(1).selectExpr(VALUE).write.format("ottla")
    writer = writer if mode is None else writer.mode(mode)
    return writer.option("kafka.bootstrap.servers", servers).option("topic", new_topic(servers))
