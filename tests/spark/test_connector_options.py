"""The same options for Spark's own Kafka connector and for ours: the same rows, or both refuse.

Every case is read with both formats from the same topics of a broker with default settings.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ottla.client.admin.sync import Admin
from ottla.client.admin.topics import NewTopic
from ottla.client.producer.sync import Producer
from ottla.model.clock import SystemClock
from ottla.testing import Broker
from tests.spark.default_settings import DEFAULT_SETTINGS

NOW_MS = SystemClock().wall_ms() - 500_000
RECORDS = 60
LAST_MS = NOW_MS + 1_000 * (RECORDS - 1)
FORMATS = ("kafka", "ottla")
QUICK = {"kafkaConsumer.pollTimeoutMs": "3000"}
_names = itertools.count()

Options = Mapping[str, str]


def times(first: int, second: int, third: int) -> str:
    return f'{{"orders":{{"0":{first},"1":{second},"2":{third}}}}}'


READ: dict[str, Options] = {
    "nothing more": {},
    "subscribe to two topics": {"subscribe": "orders, payments"},
    "subscribe to a missing topic": {"subscribe": "orders,nothing"},
    "a pattern that is a part of the name": {"subscribePattern": "rder"},
    "a pattern with a beginning": {"subscribePattern": "^ord"},
    "a pattern with an end": {"subscribePattern": "ments$"},
    "a pattern of alternatives": {"subscribePattern": "orders|payments"},
    "a pattern without a match": {"subscribePattern": "nothing.+"},
    "a pattern that would match internal topics": {"subscribePattern": ".*"},
    "assign one": {"assign": '{"orders":[2]}'},
    "assign of two topics": {"assign": '{"orders":[0],"payments":[0]}'},
    "assign of a missing partition": {"assign": '{"orders":[0,7]}'},
    "assign of a missing topic": {"assign": '{"nothing":[0]}'},
    "assign that is no JSON": {"assign": "orders"},
    "two ways to subscribe": {"subscribe": "orders", "assign": '{"orders":[2]}'},
    "from offsets": {"startingOffsets": times(3, -2, 19)},
    "from offsets without one": {"startingOffsets": '{"orders":{"0":3}}'},
    "from offsets of a partition that is not read": {
        "assign": '{"orders":[0]}', "startingOffsets": times(3, 3, 3),
    },
    "from the latest": {"startingOffsets": "latest"},
    "from EARLIEST in capitals": {"startingOffsets": "EARLIEST"},
    "to offsets": {"endingOffsets": times(5, 2, -1)},
    "to the earliest": {"endingOffsets": "earliest"},
    "between offsets": {"startingOffsets": times(1, 2, 3), "endingOffsets": times(4, 5, 6)},
    "from after the end": {"startingOffsets": times(99, 0, 0)},
    "from after the end, losses allowed": {
        "startingOffsets": times(99, 0, 0), "failOnDataLoss": "false",
    },
    "to beyond the log": {"endingOffsets": times(99, 5, 5), **QUICK},
    "to beyond the log, losses allowed": {
        "endingOffsets": times(99, 5, 5), "failOnDataLoss": "false", **QUICK,
    },
    "from a time": {"startingTimestamp": str(NOW_MS + 20_500)},
    "from the time of the last record": {
        "startingTimestamp": str(LAST_MS), "startingOffsetsByTimestampStrategy": "latest",
    },
    "from a time after the last record": {"startingTimestamp": str(LAST_MS + 60_000)},
    "from a time after the last record, or the latest": {
        "startingTimestamp": str(LAST_MS + 60_000), "startingOffsetsByTimestampStrategy": "latest",
    },
    "from the time -1": {"startingTimestamp": "-1"},
    "from the time -2": {"startingTimestamp": "-2"},
    "from the time -3": {"startingTimestamp": "-3"},
    "to a time": {"endingTimestamp": str(NOW_MS + 20_500)},
    "to the time -1": {"endingTimestamp": "-1"},
    "to a time after the last record": {"endingTimestamp": str(LAST_MS + 60_000)},
    "times by partition": {
        "startingOffsetsByTimestamp": times(NOW_MS, NOW_MS + 30_000, LAST_MS - 2_000),
        "endingOffsetsByTimestamp": times(NOW_MS + 9_000, LAST_MS, LAST_MS + 60_000),
    },
    "times by partition with edges": {"startingOffsetsByTimestamp": times(-1, -2, NOW_MS)},
    "a time before times before offsets": {
        "startingTimestamp": str(NOW_MS + 30_000), "startingOffsets": "earliest",
        "startingOffsetsByTimestamp": times(-1, -1, -1),
    },
    "headers": {"includeHeaders": "true"},
    "cut into many tasks": {"minPartitions": "11"},
    "cut by records": {"maxRecordsPerPartition": "7"},
    "uncommitted records": {
        "subscribe": "orders,payments", "kafka.isolation.level": "read_uncommitted",
    },
    "committed records": {
        "subscribe": "orders,payments", "kafka.isolation.level": "read_committed",
    },
    "a reporter of metrics": {"kafka.metric.reporters": ""},
    "a type of trust store": {"kafka.ssl.truststore.type": "PKCS12"},
    "a setting of somebody else": {"kafka.my.reporter.url": "http://x"},
    "a setting of producers": {"kafka.acks": "1"},
    "a setting that the source owns": {"kafka.enable.auto.commit": "true"},
    "a deserializer": {"kafka.value.deserializer": "x"},
    "a group": {"kafka.group.id": "mine"},
    "a prefix of groups": {"groupIdPrefix": "mine"},
    "minPartitions that is no number": {"minPartitions": "some"},
}  # fmt: skip

STREAM: dict[str, Options] = {
    "a stream from the earliest": {"startingOffsets": "earliest"},
    "a stream from the latest": {"startingOffsets": "latest"},
    "a stream from offsets": {"startingOffsets": times(3, -2, -1)},
    "a stream from a time": {"startingTimestamp": str(NOW_MS + 20_500)},
    "a stream from the time -2": {"startingTimestamp": "-2"},
    "a stream with few offsets a batch": {
        "startingOffsets": "earliest", "maxOffsetsPerTrigger": "25",
    },
    "a stream of a pattern": {"startingOffsets": "earliest", "subscribePattern": "aym"},
    "a stream of a missing partition": {
        "startingOffsets": "earliest", "assign": '{"orders":[1,9]}',
    },
    "a stream with an end": {"endingOffsets": "latest"},
}  # fmt: skip


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker(DEFAULT_SETTINGS) as broker:
        servers = broker.bootstrap_servers
        with Admin(bootstrap_servers=servers) as admin:
            admin.create_topics([NewTopic("orders", 3), NewTopic("payments", 1)]).all()
        with Producer(bootstrap_servers=servers) as producer:
            for at in range(RECORDS):
                producer.send(
                    "orders", None if at == 7 else b"%d" % at, key=b"k%d" % at, partition=at % 3,
                    headers=[("at", b"%d" % at)] if at % 2 else None,
                    timestamp_ms=NOW_MS + 1_000 * at,
                )  # fmt: skip
        with Producer(bootstrap_servers=servers, transactional_id="t") as producer:
            producer.init_transactions()
            for at in range(4):
                producer.begin()
                producer.send("payments", b"%d" % at)
                producer.flush()  # one that is aborted is in the log, too
                (producer.abort if at % 2 else producer.commit)()
        yield servers


def outcome(spark: SparkSession, format: str, servers: str, options: Options) -> object:
    """The rows in order, or that it was refused."""
    reader = spark.read.format(format).option("kafka.bootstrap.servers", servers)
    try:
        frame = reader.options(**subscribed(options)).load()
        rows = frame.orderBy("topic", "partition", "offset").collect()
    except (PySparkException, Py4JError):
        return "refused"
    return frame.schema, rows


def streamed(spark: SparkSession, format: str, servers: str, options: Options) -> object:
    reader = spark.readStream.format(format).option("kafka.bootstrap.servers", servers)
    name = f"streamed_{next(_names)}"
    try:
        frame = reader.options(**subscribed(options)).load()
        writer = frame.writeStream.format("memory").queryName(name)
        writer.trigger(availableNow=True).start().awaitTermination()
    except (PySparkException, Py4JError):
        return "refused"
    return spark.table(name).orderBy("topic", "partition", "offset").collect()


def subscribed(options: Options) -> Options:
    """With a topic and an isolation level, whose default is another for the connector."""
    named = {"subscribe", "subscribePattern", "assign"} & options.keys()
    topic = {} if named else {"subscribe": "orders"}
    return {**topic, "kafka.isolation.level": "read_committed", **options}


@pytest.mark.parametrize("name", READ)
def test_a_batch_with_these_options_gives_the_rows_of_sparks_connector(
    spark: SparkSession, servers: str, name: str
) -> None:
    theirs, ours = (outcome(spark, format, servers, READ[name]) for format in FORMATS)
    assert ours == theirs


@pytest.mark.parametrize("name", STREAM)
def test_a_stream_with_these_options_gives_the_rows_of_sparks_connector(
    spark: SparkSession, servers: str, name: str
) -> None:
    theirs, ours = (streamed(spark, format, servers, STREAM[name]) for format in FORMATS)
    assert ours == theirs


def test_a_table_of_the_catalogue_is_read_and_inserted_into(
    spark: SparkSession, servers: str
) -> None:
    options = f"OPTIONS (kafka.bootstrap.servers '{servers}', subscribe 'orders')"
    counts = {}
    for format in FORMATS:
        spark.sql(f"CREATE TABLE t_{format} USING {format} {options} TBLPROPERTIES (kind 'x')")
        counts[format] = spark.sql(f"SELECT count(*), max(offset) FROM t_{format}").collect()
    assert counts["ottla"] == counts["kafka"]
    with Admin(bootstrap_servers=servers) as admin:
        admin.create_topic("inserted", partitions=1)
    other = spark.sql("SELECT count(*) FROM t_ottla WITH (subscribe 'inserted')")
    assert other.collect()[0][0] == 0
    spark.sql(
        "INSERT INTO t_ottla SELECT key, value, 'inserted', 0, offset, timestamp, timestampType "
        "FROM t_ottla WHERE partition = 1"
    )
    assert spark.sql("SELECT count(*) FROM t_ottla WITH (subscribe 'inserted')").collect()[0][0]
    assert len({*READ, *STREAM}) >= 40
