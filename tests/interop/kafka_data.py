"""Records, offsets and files of a data directory, as somebody else's client and tools see them.

Owns: a broker filled with everything that a data directory can hold, and how all of it is read.
Never: judges; the tests that compare two readings do.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from confluent_kafka import Consumer, IsolationLevel, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec  # type: ignore[attr-defined]

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
SMALL_SEGMENTS: Final = {"segment.bytes": "1048576", "index.interval.bytes": "1024"}
COMPACTED: Final = {
    **SMALL_SEGMENTS,
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "100",
}
TOPICS: Final[Mapping[str, tuple[int, Mapping[str, str]]]] = {  # partitions and settings
    **{f"codec-{codec}": (2, SMALL_SEGMENTS) for codec in CODECS},
    "compacted": (1, COMPACTED),
    "cut": (1, SMALL_SEGMENTS),
    "plain.with-odd_name": (1, {}),
    "txn": (1, {}),
}
EAGER: Final = {"log.cleaner.backoff.ms": "50", "log.segment.delete.delay.ms": "0"}
_TIMEOUT_S: Final = 30.0


class Entry(NamedTuple):
    """One record, whole."""

    offset: int
    timestamp: tuple[int, int]
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class Extent(NamedTuple):
    """A partition from its first offset to its last."""

    start: int
    end: int
    entries: list[Entry]


Everything: TypeAlias = dict[tuple[str, int], Extent]


def fill(bootstrap: str, *, transactions: bool = True) -> None:
    """A topic for each codec, a compacted one, one with transactions, one cut at its start."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [
        NewTopic(name, partitions, 1, config=dict(settings))
        for name, (partitions, settings) in TOPICS.items()
    ]
    for made in admin.create_topics(topics).values():
        made.result(_TIMEOUT_S)
    for codec in CODECS:
        _produce(bootstrap, f"codec-{codec}", 4_000, codec=codec, partitions=2)
    for _ in range(3):
        _produce(bootstrap, "compacted", 3_000, keys=53)
    _produce(bootstrap, "cut", 5_000)
    _produce(bootstrap, "plain.with-odd_name", 10)
    if transactions:
        _transactions(bootstrap)
    [cut] = admin.delete_records([TopicPartition("cut", 0, 1_234)]).values()
    cut.result(_TIMEOUT_S)


def until_compacted(data: Path) -> None:
    """Until the broker of this directory has written down that it compacted what it could."""
    checkpoint = data / "cleaner-offset-checkpoint"
    deadline = time.monotonic() + _TIMEOUT_S
    while not (checkpoint.exists() and "\ncompacted 0 " in checkpoint.read_text()):
        assert time.monotonic() < deadline, "nothing was compacted"
        time.sleep(0.05)


def read_everything(bootstrap: str, *, isolation: str = "read_uncommitted") -> Everything:
    """Every record that `fill` has left there."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 50,
        }
    )
    keys = [(name, number) for name, (count, _) in TOPICS.items() for number in range(count)]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    try:
        extents = {key: Extent(*_extent(admin, key, isolation), []) for key in keys}
        consumer.assign([TopicPartition(*key, extents[key].start) for key in keys])
        _read(consumer, extents)
        return extents
    finally:
        consumer.close()


def _extent(admin: AdminClient, key: tuple[str, int], isolation: str) -> tuple[int, int]:
    """A broker that has just started may not have elected itself everywhere. Consumer's
    get_watermark_offsets calls a partition empty if only one of its two requests was refused."""
    partition, level = TopicPartition(*key), IsolationLevel[isolation.upper()]
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        try:
            start, end = (
                admin.list_offsets({partition: spec}, isolation_level=level)[partition].result()
                for spec in (OffsetSpec.earliest(), OffsetSpec.latest())  # type: ignore[no-untyped-call]
            )
            return int(start.offset), int(end.offset)
        except KafkaException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _read(consumer: Consumer, extents: Everything) -> None:
    """Until the end of every partition that is assigned."""
    unfinished = set(extents)
    while unfinished:
        message = consumer.poll(_TIMEOUT_S)
        assert message is not None, "nothing came"
        error, key = message.error(), (str(message.topic()), message.partition() or 0)
        if error is None:
            extents[key].entries.append(_entry(message))
        elif error.name() == "_PARTITION_EOF":
            unfinished.discard(key)
        else:
            raise AssertionError(error)


def _entry(message: Any) -> Entry:
    headers = tuple(message.headers() or ())
    return Entry(message.offset(), message.timestamp(), message.key(), message.value(), headers)


def _produce(
    bootstrap: str,
    topic: str,
    count: int,
    *,
    codec: str = "none",
    partitions: int = 1,
    keys: int = 1_000_000,
) -> None:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "compression.type": codec,
            "linger.ms": 5,
            "batch.num.messages": 100,
            "enable.idempotence": True,
        }
    )
    for number in range(count):
        producer.produce(
            topic,
            key=b"key-%d" % (number * number % keys),
            value=None if number % 50 == 49 else b"value-%d-" % number * (number % 40),
            partition=number % partitions,
            headers=[("number", b"%d" % number), ("null", None)] if number % 3 == 0 else [],
        )
        producer.poll(0)
    assert producer.flush(_TIMEOUT_S) == 0


def _transactions(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "writer"})
    producer.init_transactions(_TIMEOUT_S)
    for number in range(6):
        producer.begin_transaction()
        for at in range(20):
            producer.produce("txn", key=b"%d" % at, value=b"%d" % number, partition=0)
        producer.flush(_TIMEOUT_S)
        if number % 3 == 2:
            producer.abort_transaction(_TIMEOUT_S)
        else:
            producer.commit_transaction(_TIMEOUT_S)
