"""A cluster to read from, for the suites of our consumer: a hand that writes, and ways to wait."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # exported, not declared so
    AdminClient,
    NewTopic,
)

import ottla
from ottla import Record, TopicPartition
from tools import nodes

WAIT_S: Final = 60.0
PARTITIONS: Final = 3
numbers: Final = itertools.count(1)
Bytes = Record[bytes, bytes]


class Site:
    """A cluster, and a hand that writes to it."""

    def __init__(self, node: nodes.Node) -> None:
        self.bootstrap = node.bootstrap
        self.admin = AdminClient({"bootstrap.servers": node.bootstrap})
        self.producer = Producer({"bootstrap.servers": node.bootstrap, "linger.ms": 1})

    def topic(self, partitions: int = PARTITIONS, records: int = 0, **settings: str) -> str:
        name = f"read-{next(numbers)}"
        named = {key.replace("_", "."): value for key, value in settings.items()}
        new = NewTopic(name, partitions, 1, config=named)
        self.admin.create_topics([new])[name].result(WAIT_S)
        self.write(name, range(records), partitions)
        return name

    def write(self, topic: str, values: Any, partitions: int = PARTITIONS, **more: Any) -> None:
        for value in values:
            self.producer.produce(topic, str(value), partition=value % partitions, **more)
        assert self.producer.flush(WAIT_S) == 0

    def consumer(self, *topics: str, **options: Any) -> ottla.Consumer[bytes, bytes]:
        settings = {"auto_offset_reset": "earliest", **options}
        if options.get("group_protocol") != "consumer":  # where the broker names the pace
            settings.setdefault("heartbeat_interval_ms", 200)
        return ottla.Consumer(*topics, bootstrap_servers=self.bootstrap, **settings)


def values(records: list[Bytes]) -> list[int]:
    return [int(record.value or b"") for record in records]


def read(consumer: ottla.Consumer[bytes, bytes], count: int) -> list[Bytes]:
    """Exactly so many records, or a complaint."""
    got: list[Bytes] = []
    end = time.monotonic() + WAIT_S
    while len(got) < count:
        assert time.monotonic() < end, f"{len(got)} of {count} records came"
        got += consumer.poll(0.5, max_records=count - len(got))
    return got


def until(done: Callable[[], bool], *consumers: ottla.Consumer[bytes, bytes]) -> list[Bytes]:
    """Poll them all until something is so."""
    got: list[Bytes] = []
    end = time.monotonic() + WAIT_S
    while not done():
        assert time.monotonic() < end, "it took too long"
        for consumer in consumers:
            got += consumer.poll(0.05)
    return got


def partitions(topic: str, count: int = PARTITIONS) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic, index) for index in range(count))
