"""The fast path of `send`, and what both producers need for the slow path.

Owns: the fast path, which most records of a busy producer take: bytes go straight into the open
batch of their topic, or of the partition of their key (benchmarks/clients_producer.py). The slow
path calls interceptors, serializers and the partitioner, needs metadata, and may have to wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias

from ottla.client.errors import KafkaError, UserError
from ottla.client.interceptors import ProducerRecord
from ottla.client.producer.buffer.batch import RECORD_OVERHEAD, Headers
from ottla.client.producer.buffer.buffer_memory import MemoryClaim
from ottla.client.producer.core import ProducerCore
from ottla.client.producer.delivery import Delivery, failed_delivery
from ottla.model.ids import TopicPartition

GivenHeaders: TypeAlias = Mapping[str, bytes | None] | Iterable[tuple[str, bytes | None]] | None


class SendPath:
    """The parts of `send` that both producers share."""

    def __init__(self, core: ProducerCore) -> None:
        self._core = core
        self._intake = core.intake
        queues = core.intake.queues
        self._open = queues.open
        self._routes = queues.routes
        self._acquire = queues.lock.acquire
        self._release = queues.lock.release
        self._stamp_ns = core.intake.context.stamp_ns

    def _append_fast(self, topic: str, value: bytes) -> Delivery | None:
        """Append to the open batch of this topic; None if there is none with room."""
        delivery = Delivery()
        stamp_ns = self._stamp_ns()
        self._acquire()
        try:
            batch = self._open.get(topic)
            if batch is not None:
                room = batch.room - len(value) - RECORD_OVERHEAD
                if room >= 0:
                    batch.room = room
                    values = batch.values
                    delivery.batch = batch
                    delivery.index = len(values)
                    values.append(value)
                    batch.timestamps.append(stamp_ns)
                    if batch.keys is not None:
                        batch.keys.append(None)
                    return delivery
        finally:
            self._release()
        return None

    def _append_fast_keyed(self, topic: str, value: bytes, key: bytes) -> Delivery | None:
        """The same for a record with a key."""
        route = self._routes.get(topic)
        if route is None:
            return None
        partition = route.hash.cache.get(key)
        if partition is None:
            partition = route.hash(key)
        size = len(value) + len(key) + RECORD_OVERHEAD
        delivery = Delivery()
        stamp_ns = self._stamp_ns()
        self._acquire()
        try:
            batch = route.open[partition]
            if batch is not None:
                room, keys = batch.room - size, batch.keys
                if room >= 0 and keys is not None:
                    batch.room = room
                    delivery.batch = batch
                    delivery.index = len(keys)
                    keys.append(key)
                    batch.values.append(value)
                    batch.timestamps.append(stamp_ns)
                    return delivery
        finally:
            self._release()
        return None

    def _intercept(self, record: ProducerRecord) -> ProducerRecord:
        """The record as returned by the interceptors."""
        return self._intake.hooks.interceptors.on_send(record)

    def _with_interceptors(self, delivery: Delivery) -> Delivery:
        """Register the interceptors for the outcome, before any callback."""
        chain = self._intake.hooks.interceptors
        if chain:

            def tell(outcome: Delivery) -> None:
                error = outcome.exception(0)
                chain.on_acknowledgement(None if error else outcome.result(0), error)

            delivery.add_done_callback(tell)
        return delivery

    @contextmanager
    def _waiting(self, size: int, wake: Callable[[], object]) -> Iterator[MemoryClaim]:
        """A claim for memory; the block waits until `wake` is called, or raises TimeoutError."""
        claim = self._intake.claim(size, wake)
        timed_out = False
        try:
            yield claim
        except BaseException as error:
            self._intake.give_up(claim)
            timed_out = isinstance(error, TimeoutError)
            if timed_out:
                raise self._no_memory() from None
            raise
        finally:
            self._intake.end_wait(claim, timed_out=timed_out)

    def _no_memory(self) -> TimeoutError:
        config = self._core.config
        return TimeoutError(
            f"buffer.memory ({config.buffer_memory}) is full: no memory within max.block.ms "
            f"({config.max_block_ms})"
        )

    def _fail(self, record: ProducerRecord, error: KafkaError | OSError) -> Delivery:
        """The outcome of a record that could not be buffered (PRD-13)."""
        partition = -1 if record.partition is None else record.partition
        return self._with_interceptors(
            failed_delivery(TopicPartition(record.topic, partition), error)
        )


def checked_record(
    topic: str,
    value: object,
    key: object,
    *,
    headers: GivenHeaders,
    partition: int | None,
    timestamp_ms: int | None,
) -> ProducerRecord:
    """A record from checked arguments, with immutable headers."""
    if not isinstance(topic, str) or not topic:
        raise UserError(f"topic={topic!r}: expected a topic name")
    if partition is not None and (not isinstance(partition, int) or partition < 0):
        raise UserError(f"partition={partition!r}: expected a number of 0 or more")
    if timestamp_ms is not None and (not isinstance(timestamp_ms, int) or timestamp_ms < 0):
        raise UserError(f"timestamp_ms={timestamp_ms!r}: expected milliseconds since 1970")
    return ProducerRecord(topic, value, key, _headers(headers), partition, timestamp_ms)


def _headers(pairs: GivenHeaders) -> Headers:
    if not pairs:
        return ()
    items = pairs.items() if isinstance(pairs, Mapping) else pairs
    try:
        headers = tuple((name, value) for name, value in items)
    except (TypeError, ValueError):
        raise UserError("headers: expected pairs of a name and bytes") from None
    for name, value in headers:
        if not isinstance(name, str) or not (value is None or isinstance(value, bytes)):
            raise UserError(f"headers: expected text and bytes, got {name!r}: {value!r}")
    return headers
