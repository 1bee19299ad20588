"""A span of a partition as Arrow batches, without Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ottla.client.admin.sync import Admin
from ottla.client.admin.topics import NewTopic
from ottla.client.producer.sync import Producer
from ottla.model.ids import TopicPartition as TP
from ottla.spark import reader
from ottla.spark.offsets import DataLost
from ottla.spark.options import SourceOptions, batch_source
from ottla.spark.plan import Span
from ottla.testing import Broker

SCHEMA = pa.schema([("value", pa.binary()), ("offset", pa.int64()), ("partition", pa.int32())])
TOPIC = "read"
COUNT = 3_000


@pytest.fixture(scope="module")
def source(broker: Broker) -> SourceOptions:
    with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(TOPIC, 1), NewTopic("old", 1)]).all()
    with Producer(bootstrap_servers=broker.bootstrap_servers, batch_size=4_096) as producer:
        for at in range(COUNT):
            producer.send(TOPIC, b"%05d" % at, timestamp_ms=1_794_000_000_000 + at)
    return options_of(broker)


def options_of(broker: Broker, topic: str = TOPIC, **more: str) -> SourceOptions:
    return batch_source(
        {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": topic, **more}
    )


def offsets(options: SourceOptions, wanted: reader.ReadRequest) -> list[int]:
    found = list(reader.read(options, wanted, SCHEMA))
    assert all(batch.schema == SCHEMA for batch in found)
    return [offset for batch in found for offset in batch.column("offset").to_pylist()]


def test_a_span_is_read_from_its_start_to_its_end(source: SourceOptions) -> None:
    whole = reader.ReadRequest(Span(TP(TOPIC, 0), 0, COUNT))
    assert offsets(source, whole) == list(range(COUNT))
    assert offsets(source, reader.ReadRequest(Span(TP(TOPIC, 0), 7, 1_234))) == list(
        range(7, 1_234)
    )
    assert offsets(source, reader.ReadRequest(Span(TP(TOPIC, 0), 9, 9))) == []


def test_small_fetches_add_up(broker: Broker, source: SourceOptions) -> None:
    small = options_of(broker, **{"kafka.max.partition.fetch.bytes": "10000"})
    wanted = reader.ReadRequest(Span(TP(TOPIC, 0), 5, COUNT - 5))
    assert offsets(small, wanted) == list(range(5, COUNT - 5))


def test_times_narrow_a_span(source: SourceOptions) -> None:
    start = 1_794_000_000_000
    wanted = reader.ReadRequest(Span(TP(TOPIC, 0), 0, COUNT), start + 10, start + 12)
    assert offsets(source, wanted) == [10, 11]


def test_rows_have_their_values_and_their_place(source: SourceOptions) -> None:
    [batch] = reader.read(source, reader.ReadRequest(Span(TP(TOPIC, 0), 41, 43)), SCHEMA)
    assert batch.to_pylist() == [
        {"value": b"00041", "offset": 41, "partition": 0},
        {"value": b"00042", "offset": 42, "partition": 0},
    ]


def test_a_reader_that_is_not_read_to_its_end_leaves_nothing_behind(source: SourceOptions) -> None:
    found = reader.read(source, reader.ReadRequest(Span(TP(TOPIC, 0), 0, COUNT)), SCHEMA)
    next(found)
    found.close()  # type: ignore[attr-defined]  # a generator, to Spark an iterator


def test_records_below_the_log_are_lost_or_left_out(broker: Broker, source: SourceOptions) -> None:
    with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for at in range(30):
            producer.send("old", b"%d" % at)
    with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.delete_records({TP("old", 0): 20}).all()
    wanted = reader.ReadRequest(Span(TP("old", 0), 5, 25))
    with pytest.raises(DataLost, match="old-0: offset 5 is below the log start offset 20"):
        offsets(options_of(broker, "old"), wanted)
    lenient = options_of(broker, "old", failOnDataLoss="false")
    assert offsets(lenient, wanted) == list(range(20, 25))
    assert offsets(lenient, reader.ReadRequest(Span(TP("old", 0), 5, 10))) == []


def test_records_beyond_the_log_are_lost_or_left_out(broker: Broker, source: SourceOptions) -> None:
    wanted = reader.ReadRequest(Span(TP(TOPIC, 0), COUNT + 10, COUNT + 20))
    with pytest.raises(DataLost, match="beyond the end of the log"):
        offsets(source, wanted)
    assert offsets(options_of(broker, failOnDataLoss="false"), wanted) == []


def test_a_topic_that_is_gone_is_lost_or_left_out(broker: Broker, source: SourceOptions) -> None:
    wanted = reader.ReadRequest(Span(TP("never-was", 0), 0, 5))
    with pytest.raises(DataLost, match="the partition no longer exists"):
        offsets(options_of(broker, "never-was"), wanted)
    assert offsets(options_of(broker, "never-was", failOnDataLoss="false"), wanted) == []


def test_records_that_do_not_come_are_waited_for_no_longer_than_told(
    broker: Broker, source: SourceOptions
) -> None:
    impatient = options_of(broker, **{"kafkaConsumer.pollTimeoutMs": "300"})
    with pytest.raises(TimeoutError, match=r"kafkaConsumer.pollTimeoutMs"):
        offsets(impatient, reader.ReadRequest(Span(TP(TOPIC, 0), COUNT, COUNT + 1)))
