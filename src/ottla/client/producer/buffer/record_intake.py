"""The callers' side of the queues: serializes a record, chooses its partition, appends it.

Owns: steps 3 to 7 of sending (PRD-08 to PRD-12). Called from any thread; never waits: without
memory it returns None, and a caller that wants to wait makes a claim.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from ottla.client.cluster_view import TopicView
from ottla.client.errors import RecordTooLarge, UserError
from ottla.client.interceptors import ProducerChain, ProducerRecord
from ottla.client.partitioners import Partitioner, Sticky
from ottla.client.producer.buffer.batch import NS_PER_MS, Batch, PreparedRecord
from ottla.client.producer.buffer.buffer_memory import MemoryClaim
from ottla.client.producer.buffer.queues import Queues
from ottla.client.producer.delivery import Delivery
from ottla.client.producer.transactions.state import Transaction
from ottla.client.serializers import Serializer, to_bytes
from ottla.config.client import ProducerConfig
from ottla.model.clock import Clock
from ottla.model.ids import TopicPartition
from ottla.protocol.records.header import HEADER_SIZE

IMPROVEMENT: Final = 0.05
SAFETY: Final = 1.05
BEST: Final = 0.1


class CompressionRatios:
    """The compression ratio (compressed to uncompressed bytes) of each topic."""

    def __init__(self, codec: str) -> None:
        self._compresses = codec != "none"
        self._ratios: dict[str, float] = {}

    def room(self, topic: str, batch_bytes: int) -> int:
        """Uncompressed bytes that fill a batch of this size."""
        if not self._compresses:
            return batch_bytes
        return int(batch_bytes / min(1.0, self._ratios.get(topic, 1.0) * SAFETY))

    def learn(self, topic: str, plain_bytes: int, compressed_bytes: int) -> None:
        if not self._compresses or plain_bytes <= 0:
            return
        ratio = max(BEST, compressed_bytes / plain_bytes)
        before = self._ratios.get(topic, 1.0)
        self._ratios[topic] = ratio if ratio > before else max(before - IMPROVEMENT, ratio)


FIRST_BYTES: Final = 16_384
"""Initial memory of a batch; it grows to `batch.size` as records are added."""
STAY_BYTES: Final = 16_384
"""Records without a key switch to another partition with the first batch after this many bytes.
Kafka's producer uses `batch.size`, which has this value by default: with large batches a topic with
few records would stay with one partition for minutes."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """The user's serializers, partitioner and interceptors."""

    key_serializer: Serializer | None = None
    value_serializer: Serializer | None = None
    partitioner: Partitioner | None = None
    interceptors: ProducerChain = ProducerChain(())  # noqa: RUF009 - it has no state

    @property
    def is_default(self) -> bool:
        """Whether none is set."""
        return not (
            self.key_serializer or self.value_serializer or self.partitioner or self.interceptors
        )


@dataclass(frozen=True, slots=True)
class IntakeContext:
    """Clock, randomness, and the function that wakes the sender."""

    clock: Clock
    dice: Random
    stamp_ns: Callable[[], int]
    wake: Callable[[], object]


class RecordIntake:
    """Buffers the records of one producer."""

    def __init__(
        self,
        config: ProducerConfig,
        hooks: Hooks,
        context: IntakeContext,
        queues: Queues,
        transaction: Transaction | None,
    ) -> None:
        self.hooks = hooks
        self.context = context
        self.queues = queues
        self.is_closed = False
        self.ratios = CompressionRatios(config.compression_type)
        self._config = config
        self._transaction = transaction
        self._is_plain = hooks.is_default

    def prepare(self, view: TopicView, record: ProducerRecord) -> PreparedRecord:
        """Serialize a record and choose its partition."""
        _, raw_value, raw_key, headers, partition, timestamp_ms = record
        hooks = self.hooks
        key = value = None
        if raw_key is not None:
            key = to_bytes((hooks.key_serializer or to_bytes)(raw_key))
        if raw_value is not None:
            value = to_bytes((hooks.value_serializer or to_bytes)(raw_value))
        stamp_ns = self.context.stamp_ns() if timestamp_ms is None else timestamp_ms * NS_PER_MS
        sticky = False
        if partition is None:
            if hooks.partitioner is not None:
                partition = self._choose_partition(hooks.partitioner, view, key)
            elif key is not None and not self._config.partitioner_ignore_keys:
                partition = self.queues.route(view.name, len(view.partitions)).hash(key)
            else:
                partition, sticky = self._sticky_partition(view), self._is_plain
        tp = TopicPartition(view.name, partition)
        return PreparedRecord(tp, key, value, headers, stamp_ns, sticky)

    def _choose_partition(
        self, partitioner: Partitioner, view: TopicView, key: bytes | None
    ) -> int:
        all_partitions = range(len(view.partitions))
        chosen = partitioner(view.name, key, all_partitions, view.available)
        if chosen not in all_partitions:
            raise UserError(
                f"partitioner: got {chosen!r} for topic {view.name}, expected one of "
                f"{all_partitions}"
            )
        return chosen

    def _sticky_partition(self, view: TopicView) -> int:
        queues = self.queues
        sticky = queues.sticky.get(view.name)
        if sticky is None:
            sticky = queues.sticky.setdefault(view.name, Sticky(self.context.dice))
        choice = view.available or tuple(range(len(view.partitions)))
        waiting: list[int] = []
        if self._config.partitioner_adaptive_partitioning_enable and len(choice) > 1:
            waiting = [queues.waiting(TopicPartition(view.name, partition)) for partition in choice]
        return sticky.choose(choice, waiting, min(self._config.batch_size, STAY_BYTES))

    def next_sticky_partition(self, view: TopicView, size: int) -> int:
        """A partition for records without a key, of `size` bytes."""
        with self.queues.lock:
            chosen = self._sticky_partition(view)
            self.queues.sticky[view.name].count(size)
        return chosen

    def append(self, record: PreparedRecord, claim: MemoryClaim | None = None) -> Delivery | None:
        """Append a record; None if it needs a new batch and there is no memory for one.

        `claim` is memory that was waited for; it is freed if another thread has created a batch
        meanwhile. Raises if the record is not allowed.
        """
        tp, key, value, headers, stamp_ns, sticky = record
        size = record.size
        self._check_allowed(tp)
        if claim is None:
            self._check_size(size + HEADER_SIZE)
        queues = self.queues
        with queues.lock:
            queue = queues.at(tp)
            batch = queue.open
            if batch is not None and (
                batch.room >= size or not batch.values or self._grow(batch, size, claim)
            ):
                if claim is not None:
                    queues.memory.give_back(claim.size)
                return Delivery.of(batch, batch.append(key, value, headers, stamp_ns))
            if batch is not None:
                queues.close(batch)
            needed = claim.size if claim is not None else self.needed_bytes(record)
            if claim is None and not queues.memory.take(needed):
                self.context.wake()  # closed batches can be sent, which frees memory
                return None
            room = min(self._room(tp.topic), needed)
            batch = Batch(tp, room, needed, self.context.clock.mono_ms(), queues.lock)
            batch.transactional = self._transaction is not None
            queues.begin(queue, batch)
            if sticky:
                queues.open[tp.topic] = batch
            route = queues.routes.get(tp.topic)
            if self._is_plain and route is not None and tp.partition < len(route.open):
                route.open[tp.partition] = batch
            delivery = Delivery.of(batch, batch.append(key, value, headers, stamp_ns))
        self.context.wake()
        return delivery

    def add(self, *batches: Batch) -> None:
        """Queue encoded batches, whose memory was claimed: all of them, or none."""
        for batch in batches:
            self._check_allowed(batch.tp)
            batch.transactional = self._transaction is not None
        queues = self.queues
        needs_wake = False
        with queues.lock:
            for batch in batches:
                queue = queues.at(batch.tp)
                # Behind a batch that can be sent the sender finds it without a wake.
                needs_wake = needs_wake or not queue.batches or queue.open is not None
                if queue.open is not None:
                    queues.close(queue.open)
                queues.begin(queue, batch)
        if needs_wake:
            self.context.wake()

    def needed_bytes(self, record: PreparedRecord) -> int:
        """Memory for a new batch with this record."""
        begins = min(self._room(record.tp.topic), FIRST_BYTES, self._config.buffer_memory)
        return max(begins, record.size + HEADER_SIZE)

    def _grow(self, batch: Batch, size: int, claim: MemoryClaim | None) -> bool:
        """Double the size limit of a batch, for a record of this size; whether it could.

        Memory is reserved as records come: thousands of partitions with a few records each need no
        more than a few busy ones with batches of a megabyte.
        """
        more = min(max(batch.limit, size), self._room(batch.tp.topic) - batch.limit)
        if claim is not None or batch.room + more < size or not self.queues.memory.take(more):
            return False
        batch.grow(more)
        return True

    def claim(self, size: int, wake: Callable[[], object]) -> MemoryClaim:
        """Queue for memory; `wake` is called when it is granted, maybe at once."""
        with self.queues.lock:
            claim = self.queues.memory.wait(size, wake)
            if not claim.granted:
                claim.queued_ns = self.context.clock.mono_ns()
            lingers = not claim.granted and any(queue.open is not None for queue in self.queues)
        if lingers:
            self.context.wake()  # sending open batches frees memory
        return claim

    def give_up(self, claim: MemoryClaim) -> None:
        with self.queues.lock:
            self.queues.memory.give_up(claim)

    def end_wait(self, claim: MemoryClaim, *, timed_out: bool) -> None:
        """Count the time that the owner of a claim has waited."""
        if claim.queued_ns is not None:
            with self.queues.lock:
                memory = self.queues.memory
                memory.waited_ns += self.context.clock.mono_ns() - claim.queued_ns
                memory.timeouts += timed_out

    def close_open_batches(self) -> None:
        """Close open batches, so that records take the slow path with its checks."""
        with self.queues.lock:
            groups = [
                self.queues.open.values(),
                *(route.open for route in self.queues.routes.values()),
            ]
            for batch in [batch for group in groups for batch in group if batch is not None]:
                self.queues.close(batch)

    def _room(self, topic: str) -> int:
        """Uncompressed bytes of a new batch of this topic."""
        return min(self.ratios.room(topic, self._config.batch_size), self._config.max_request_size)

    def check(self) -> None:
        """Raise if no record may be sent now: it is closed, or there is no transaction."""
        if self.is_closed:
            raise UserError("send: the producer is closed; create a new one")
        if self._transaction is not None:
            self._transaction.check_open("send")

    def _check_allowed(self, tp: TopicPartition) -> None:
        self.check()
        if self._transaction is not None:
            self._transaction.touch(tp)

    def _check_size(self, size: int) -> None:
        for name, limit in (
            ("max.request.size", self._config.max_request_size),
            ("buffer.memory", self._config.buffer_memory),
        ):
            if size > limit:
                raise RecordTooLarge(f"record of {size} bytes is larger than {name} ({limit})")
