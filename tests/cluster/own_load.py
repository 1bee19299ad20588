"""Our own producer at work while brokers are mistreated, and when each record was acknowledged.

`load` is the same with librdkafka, and writes a history.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import ottla
from ottla.client.producer.delivery import Delivery
from tests.cluster.load import PAUSE_S


class OwnLoad:
    """One idempotent producer, which sends to the partitions of a topic in turn while in its block.

    It waits for everything it sent when the block ends.
    """

    def __init__(self, address: str, topic: str, partitions: int, **options: Any) -> None:
        self.failures: list[str] = []
        self._acknowledged: list[list[int]] = [[] for _ in range(partitions)]
        self._address = address
        self._topic = topic
        self._options = {"linger_ms": 1, **options}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._produce)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def acknowledged(self) -> int:
        return sum(map(len, self._acknowledged))

    def acknowledgements(self, partition: int, since_ns: int = 0) -> list[int]:
        """When records of a partition were acknowledged, in order of time."""
        return sorted(time_ns for time_ns in self._acknowledged[partition] if time_ns > since_ns)

    def _produce(self) -> None:
        with ottla.Producer(bootstrap_servers=self._address, **self._options) as producer:
            for number in itertools.count():
                if self._stop.wait(PAUSE_S):
                    break
                partition = number % len(self._acknowledged)
                delivery = producer.send(self._topic, b"own %d" % number, partition=partition)
                delivery.add_done_callback(self._on_delivery(partition))

    def _on_delivery(self, partition: int) -> Callable[[Delivery], None]:
        def on_delivery(delivery: Delivery) -> None:
            try:
                delivery.result(0)
            except Exception as error:
                self.failures.append(str(error))
            else:
                self._acknowledged[partition].append(time.monotonic_ns())

        return on_delivery


class OwnGroup:
    """One member of a group of our own consumer, which reads and commits while in its block."""

    def __init__(self, address: str, topic: str, **options: Any) -> None:
        self.failures: list[str] = []
        self.read = 0
        self._address = address
        self._topic = topic
        self._options = options
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._consume)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _consume(self) -> None:
        try:
            with ottla.Consumer(
                self._topic,
                bootstrap_servers=self._address,
                group_id=f"own-{self._topic}",
                auto_offset_reset="earliest",
                **self._options,
            ) as consumer:
                while not self._stop.is_set():
                    records = consumer.poll(0.2)
                    self.read += len(records)
                    if records:
                        consumer.commit()
        except Exception as error:
            self.failures.append(repr(error))
