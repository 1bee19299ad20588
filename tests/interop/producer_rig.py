"""What the tests of our producer need besides it: topics, and somebody else's eyes on them.

Owns: topics with names of their own, and reading them whole with librdkafka. Never: uses a client
of ours, which is what is judged.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

WAIT_S: Final = 60.0
_numbers: Final = itertools.count()


class Seen(NamedTuple):
    """One record, as librdkafka gives it."""

    partition: int
    offset: int
    timestamp: tuple[int, int]
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def new_topic(
    bootstrap: str, partitions: int = 1, settings: Mapping[str, str] | None = None
) -> str:
    """A topic of its own for one test."""
    name = f"produced-{next(_numbers)}"
    config = dict(settings or {})
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(name, partitions, 1, config=config)]).values():
        made.result(WAIT_S)
    return name


def read(bootstrap: str, topic: str, *, isolation: str = "read_committed") -> list[Seen]:
    """Every record of a topic, partition by partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 20,
        }
    )
    try:
        known = consumer.list_topics(topic, timeout=WAIT_S).topics[topic].partitions
        waiting = set(known)
        consumer.assign([TopicPartition(topic, number, 0) for number in known])
        seen: list[Seen] = []
        deadline = time.monotonic() + WAIT_S
        while waiting:
            assert time.monotonic() < deadline, f"{topic} was not read to its end"
            for message in consumer.consume(1000, timeout=1.0):
                number = message.partition()
                assert number is not None
                if message.error() is not None:
                    waiting.discard(number)
                    continue
                waiting.add(number)
                offset = message.offset()
                assert offset is not None
                headers: Any = tuple(message.headers() or ())
                key, value = message.key(), message.value()
                assert not isinstance(key, str)
                assert not isinstance(value, str)
                seen.append(Seen(number, offset, message.timestamp(), key, value, headers))
        return sorted(seen)
    finally:
        consumer.close()


def wait_for_end(bootstrap: str, topic: str, offset: int) -> None:
    """Wait until partition 0 ends here."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    deadline = time.monotonic() + WAIT_S
    try:
        while consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=WAIT_S)[1] != offset:
            assert time.monotonic() < deadline, f"{topic} does not end at {offset}"
            time.sleep(0.02)
    finally:
        consumer.close()


def committed(bootstrap: str, group: str, topic: str, partition: int = 0) -> int:
    """The offset a group has committed; -1001 when it has none."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        [found] = consumer.committed([TopicPartition(topic, partition)], timeout=WAIT_S)
        offset: int = found.offset
        return offset
    finally:
        consumer.close()
