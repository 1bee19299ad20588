"""When committed records of a topic arrive at somebody who waits for them."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any, NamedTuple, Self

import ottla
from ottla.model.clock import SystemClock
from tests.spark.pipelines.jobs import Record


class Arrival(NamedTuple):
    record: Record
    at_ms: int
    """The wall clock's time when the reader had it: later than the record's own timestamp, because
    a transaction is read when it has ended."""


class Arrivals:
    """Reads a topic of one partition on a thread of its own, for as long as the block lasts."""

    def __init__(self, servers: str, topic: str) -> None:
        self.those: list[Arrival] = []
        self._servers = servers
        self._partition = ottla.TopicPartition(topic, 0)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._read, name=f"reader of {topic}")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def _read(self) -> None:
        clock = SystemClock()
        consumer: ottla.Consumer[Any, Any] = ottla.Consumer(
            bootstrap_servers=self._servers,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
        )
        with consumer:
            consumer.assign([self._partition])
            while not self._over.is_set():
                found = consumer.poll(0.2)
                now_ms = clock.wall_ms()
                self.those += [Arrival(record, now_ms) for record in found]
