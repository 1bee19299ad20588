"""The producer itself, without a face: what `sync` and `aio` share.

Owns: the parts, how they are put together, and everything that waits. Lives on one event loop;
`append` and what it needs may be called from any thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

from ottla.client.cluster import Cluster
from ottla.client.errors import RecordTooLarge, UserError
from ottla.client.interceptors import ProducerChain, ProducerRecord
from ottla.client.partitioners import KeyHash, Partitioner, Sticky
from ottla.client.producer.accumulator import Accumulator
from ottla.client.producer.batch import NS_PER_MS, Batch, Prepared
from ottla.client.producer.coordination import Coordination
from ottla.client.producer.delivery import Delivery
from ottla.client.producer.memory import Claim
from ottla.client.producer.numbering import Numbering
from ottla.client.producer.sender import Sender
from ottla.client.producer.sequences import Sequences
from ottla.client.producer.transaction import Transaction
from ottla.client.producer.transactions import Transactions
from ottla.client.producer.waiting import finished
from ottla.client.retry import Deadline
from ottla.client.serializers import Serializer, to_bytes
from ottla.client.view import TopicView
from ottla.config.client import ProducerConfig
from ottla.model.clock import Clock
from ottla.model.ids import TopicPartition
from ottla.protocol.records.header import HEADER_SIZE

CLOSED: Final = "the producer was closed before the record was acknowledged"


@dataclass(frozen=True, slots=True)
class Hooks:
    """What a user brings along."""

    key_serializer: Serializer | None = None
    value_serializer: Serializer | None = None
    partitioner: Partitioner | None = None
    interceptors: ProducerChain = ProducerChain(())  # noqa: RUF009 - it has no state

    @property
    def are_none(self) -> bool:
        """Bytes go as they are, where the default sends them."""
        return not (
            self.key_serializer or self.value_serializer or self.partitioner or self.interceptors
        )


class ProducerCore:
    """One producer."""

    def __init__(
        self,
        config: ProducerConfig,
        hooks: Hooks,
        clock: Clock,
        dice: Random,
        stamp_ns: Callable[[], int],
    ) -> None:
        self.config = config
        self.hooks = hooks
        self.clock = clock
        self.stamp_ns = stamp_ns
        self.cluster = Cluster(config, clock, dice, auto_create=True)
        self.accumulator = Accumulator(config, self.wake)
        name = config.transactional_id
        sequences = Sequences() if config.is_idempotent else None
        self.transaction = None if name is None else Transaction(name)
        coordination = None
        if self.transaction is not None:
            assert sequences is not None
            coordination = Coordination(config, self.cluster, self.transaction, sequences)
        numbering = Numbering(self.cluster, sequences, self.transaction, coordination)
        self.sender = Sender(config, self.cluster, self.accumulator, numbering)
        self.transactions = Transactions(config, numbering, self.sender.outcomes, self.flush)
        self._dice = dice
        self._hash = KeyHash()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_waking = False
        self.is_closed = False
        self.stepped = threading.Event()
        """Set whenever the sender has looked at the queues because somebody asked for it."""

    async def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self.sender.chores.open()

    def wake(self) -> None:
        """Have the sender look at the queues; from any thread."""
        if not self._is_waking and self._loop is not None:
            self._is_waking = True
            self._loop.call_soon_threadsafe(self._woken)

    def _woken(self) -> None:
        self._is_waking = False
        self.sender.step()
        self.stepped.set()

    # a record on its way in; from any thread

    def prepared(self, view: TopicView, record: ProducerRecord) -> Prepared:
        """The record serialized, with its partition."""
        _, raw_value, raw_key, headers, partition, timestamp_ms = record
        hooks = self.hooks
        key = value = None
        if raw_key is not None:
            key = to_bytes((hooks.key_serializer or to_bytes)(raw_key))
        if raw_value is not None:
            value = to_bytes((hooks.value_serializer or to_bytes)(raw_value))
        stamp_ns = self.stamp_ns() if timestamp_ms is None else timestamp_ms * NS_PER_MS
        if partition is not None:
            return Prepared(
                TopicPartition(view.name, partition), key, value, headers, stamp_ns, False
            )
        if hooks.partitioner is not None:
            everywhere = range(len(view.partitions))
            chosen = hooks.partitioner(view.name, key, everywhere, view.available)
            if chosen not in everywhere:
                raise UserError(
                    f"partitioner: it chose {chosen!r} for {view.name}, not one of {everywhere}"
                )
        elif key is not None and not self.config.partitioner_ignore_keys:
            chosen = self._hash(key, len(view.partitions))
        else:
            tp = TopicPartition(view.name, self._sticky(view))
            return Prepared(tp, key, value, headers, stamp_ns, hooks.are_none)
        return Prepared(TopicPartition(view.name, chosen), key, value, headers, stamp_ns, False)

    def _sticky(self, view: TopicView) -> int:
        accumulator = self.accumulator
        sticky = accumulator.sticky.get(view.name)
        if sticky is None:
            sticky = accumulator.sticky.setdefault(view.name, Sticky(self._dice))
        choice = view.available or tuple(range(len(view.partitions)))
        waiting: list[int] = []
        if self.config.partitioner_adaptive_partitioning_enable and len(choice) > 1:
            waiting = [accumulator.waiting(TopicPartition(view.name, each)) for each in choice]
        return sticky.choose(choice, waiting, self.config.batch_size)

    def spread(self, view: TopicView, size: int) -> int:
        """A partition for records without a key, which take `size` bytes."""
        with self.accumulator.lock:
            chosen = self._sticky(view)
            self.accumulator.sticky[view.name].count(size)
        return chosen

    def add(self, batch: Batch) -> None:
        """Take a batch that is encoded, and that memory was claimed for."""
        self._check_may_send(batch.tp)
        self.accumulator.add(batch)

    def append(self, record: Prepared, claim: Claim | None = None) -> Delivery | None:
        """Take the record; None: claim memory for it first. Raises what forbids it."""
        self._check_may_send(record.tp)
        if claim is None:
            self._check_size(record)
        return self.accumulator.append(record, self.clock.mono_ms(), claim)

    def _check_may_send(self, tp: TopicPartition) -> None:
        if self.is_closed:
            raise UserError("send: the producer is closed")
        if self.transaction is not None:
            self.transaction.touch(tp)

    def _check_size(self, record: Prepared) -> None:
        size = record.size + HEADER_SIZE
        for name, limit in (
            ("max.request.size", self.config.max_request_size),
            ("buffer.memory", self.config.buffer_memory),
        ):
            if size > limit:
                raise RecordTooLarge(f"a record of {size} bytes, more than {name} ({limit})")

    def needed(self, record: Prepared) -> int:
        """Memory for the batch that this record would begin."""
        return self.accumulator.needed(record.tp.topic, record.size)

    def claim(self, size: int, wake: Callable[[], object]) -> Claim:
        """Queue for memory; `wake` is called when it is there."""
        with self.accumulator.lock:
            claim = self.accumulator.memory.wait(size, wake)
        self.wake()  # what lingers is worth sending now
        return claim

    def give_up(self, claim: Claim) -> None:
        with self.accumulator.lock:
            self.accumulator.memory.give_up(claim)

    def no_memory(self, deadline: Deadline) -> TimeoutError:
        return TimeoutError(
            f"buffer.memory ({self.config.buffer_memory}) is full of records, and stayed so for "
            f"max.block.ms ({deadline.allowed_ms})"
        )

    # what waits; on the loop

    async def topic(self, name: str, partition: int | None, timeout_ms: int) -> TopicView:
        """A topic that has this partition."""
        deadline = Deadline(self.clock, timeout_ms)
        while True:
            view = await self.cluster.topic(name, timeout_ms=max(deadline.left_ms, 1))
            if partition is None or partition < len(view.partitions):
                return view
            if deadline.is_over:
                raise TimeoutError(
                    f"partition {partition} of {name}, which has {len(view.partitions)}, did not "
                    f"come to be in {timeout_ms} ms"
                )
            await self.cluster.refresh([name])

    async def flush(self) -> None:
        """Until everything sent so far has its outcome."""
        batches = self.accumulator.flush_begun()
        try:
            await finished(batches)
        finally:
            self.accumulator.flush_ended()

    async def close(self, timeout_ms: int | None) -> None:
        """Send what waits, as long as there is time, and end."""
        if self.is_closed:
            return
        self.is_closed = True
        accumulator = self.accumulator
        accumulator.is_closing = True
        accumulator.close_open()
        try:
            if timeout_ms != 0:
                self.wake()
                async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1e3):
                    await finished(list(accumulator.incomplete))
        except TimeoutError:
            pass  # what is left is given up, and those who wait for it are told
        finally:
            self.stop()
            await self.sender.chores.close()
            self.cluster.close()
            self.hooks.interceptors.close()

    def stop(self) -> None:
        """Send nothing more, whatever waits: those who wait for it are told."""
        self.is_closed = True
        self.accumulator.close_open()
        self.sender.close()
        self.sender.outcomes.abandon_all(ConnectionAbortedError(CLOSED))

    def metrics(self) -> Mapping[str, float]:
        """Numbers under the names of Kafka's producer metrics."""
        counts, memory = self.sender.outcomes.counts, self.accumulator.memory
        return {
            "record-send-total": counts.records,
            "record-error-total": counts.failures,
            "record-retry-total": counts.retries,
            "byte-total": counts.sent_bytes,
            "batch-size-avg": counts.sent_bytes / max(counts.batches, 1),
            "records-per-request-avg": counts.records / max(counts.batches, 1),
            "requests-in-flight": self.sender.in_flight,
            "buffer-total-bytes": memory.total,
            "buffer-available-bytes": memory.free,
            "waiting-threads": memory.waiting,
        }
