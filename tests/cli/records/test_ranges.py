from __future__ import annotations

from collections.abc import Iterable

import pytest

import ottla
from ottla.cli.records.ranges import Batch, ReadRange, read_group, read_span, span
from ottla.client.admin import OffsetSpec
from ottla.model.ids import TopicPartition
from ottla.testing import Broker

T0 = 1_700_000_000_000


@pytest.fixture
def filled(cli_broker: Broker, topic: str) -> list[TopicPartition]:
    """Ten records, a second apart, in turn in two partitions."""
    with ottla.Producer(bootstrap_servers=cli_broker.bootstrap_servers) as producer:
        for at in range(10):
            producer.send(topic, str(at).encode(), partition=at % 2, timestamp_ms=T0 + at * 1000)
        producer.flush()
    return [TopicPartition(topic, 0), TopicPartition(topic, 1)]


@pytest.fixture
def consumer(cli_broker: Broker) -> Iterable[ottla.Consumer[bytes, bytes]]:
    with reader(cli_broker) as consumer:
        yield consumer


def reader(broker: Broker, **options: str) -> ottla.Consumer[bytes, bytes]:
    settings = {key.replace("_", "."): value for key, value in options.items()}
    settings |= {"auto.offset.reset": "earliest", "enable.auto.commit": "false"}
    at = {"bootstrap.servers": broker.bootstrap_servers}
    return ottla.Consumer[bytes, bytes](config={**settings, **at})


def values(batches: Iterable[Batch]) -> list[int]:
    return sorted(int(one.value or b"") for batch in batches for one in batch)


def test_a_span_is_read_from_its_starts_to_its_ends(
    admin: ottla.Admin, filled: list[TopicPartition], consumer: ottla.Consumer[bytes, bytes]
) -> None:
    everything = span(admin, filled, OffsetSpec.EARLIEST, end=OffsetSpec.LATEST)
    assert everything == ReadRange(dict.fromkeys(filled, 0), dict.fromkeys(filled, 5))
    assert everything.total == 10
    assert everything._replace(ends=None).total is None
    assert values(read_span(consumer, everything)) == list(range(10))
    middle = ReadRange(dict.fromkeys(filled, 1), dict.fromkeys(filled, 3))
    assert values(read_span(consumer, middle)) == [2, 3, 4, 5]


def test_a_span_may_be_of_times_and_after_the_last_there_is_nothing(
    admin: ottla.Admin, filled: list[TopicPartition], consumer: ottla.Consumer[bytes, bytes]
) -> None:
    times = span(admin, filled, T0 + 3000, end=T0 + 7000)
    assert values(read_span(consumer, times)) == [3, 4, 5, 6]
    later = span(admin, filled, T0 + 99_000, end=OffsetSpec.LATEST)
    assert values(read_span(consumer, later)) == []


def test_a_group_reads_what_it_has_not_read_yet(
    cli_broker: Broker, filled: list[TopicPartition]
) -> None:
    topic = filled[0].topic
    with reader(cli_broker, group_id=f"reads-{topic}") as consumer:
        assert values(read_group(consumer, [topic], follow=False)) == list(range(10))
        consumer.commit(dict.fromkeys(filled, 4))
    with reader(cli_broker, group_id=f"reads-{topic}") as consumer:
        assert values(read_group(consumer, [topic], follow=False)) == [8, 9]


def test_an_end_behind_the_markers_of_a_transaction_is_reached(
    cli_broker: Broker, admin: ottla.Admin, topic: str
) -> None:
    with ottla.Producer(
        bootstrap_servers=cli_broker.bootstrap_servers, transactional_id=f"ends-{topic}"
    ) as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send(topic, b"7", partition=0)
    where = span(admin, [TopicPartition(topic, 0)], -2, end=-1, read_committed=True)
    assert where.ends == {TopicPartition(topic, 0): 2}, "the record and the marker"
    with reader(cli_broker, isolation_level="read_committed") as consumer:
        assert values(read_span(consumer, where)) == [7]
