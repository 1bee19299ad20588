"""The producer itself: what `sync` and `aio` share.

Owns: the parts and how they are connected, and everything that waits. Runs on one event loop; only
`intake` and `wake` may be used from other threads.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from random import Random
from typing import Final

from ottla.client.cluster import Cluster
from ottla.client.cluster_view import TopicView
from ottla.client.producer.buffer.accumulator import Accumulator
from ottla.client.producer.buffer.queues import Queues
from ottla.client.producer.buffer.record_intake import Hooks, IntakeContext, RecordIntake
from ottla.client.producer.delivery import wait_until_done
from ottla.client.producer.sender.batch_numbering import BatchNumbering
from ottla.client.producer.sender.sender import Sender
from ottla.client.producer.sender.sequences import Sequences
from ottla.client.producer.transactions.coordinator_requests import CoordinatorRequests
from ottla.client.producer.transactions.state import Transaction
from ottla.client.producer.transactions.user_operations import Transactions
from ottla.client.retry import Deadline
from ottla.config.client import ProducerConfig
from ottla.model.clock import Clock

CLOSED: Final = "the producer was closed before the record was acknowledged"


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
        self.clock = clock
        self.cluster = Cluster(config, clock, dice, auto_create=True)
        transaction, coordination = None, None
        sequences = Sequences() if config.is_idempotent else None
        if config.transactional_id is not None:
            assert sequences is not None
            transaction = Transaction(config.transactional_id)
            coordination = CoordinatorRequests(config, self.cluster, transaction, sequences)
        self._queues = Queues(config.buffer_memory)
        self._accumulator = Accumulator(config, self._queues)
        context = IntakeContext(clock, dice, stamp_ns, self.wake)
        self.intake = RecordIntake(config, hooks, context, self._queues, transaction)
        numbering = BatchNumbering(self.cluster, sequences, transaction, coordination)
        self.sender = Sender(config, self.cluster, self._accumulator, numbering, self.intake)
        self.transactions = Transactions(
            self._deadline, numbering, self.sender.outcomes, self.intake, self.flush
        )
        self.stepped = threading.Event()
        """Set whenever the sender has checked the queues after `wake`."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_waking = False
        self._is_stopped = False

    async def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self.sender.background_tasks.open()

    def wake(self) -> None:
        """Have the sender check the queues; from any thread."""
        if not self._is_waking and self._loop is not None:
            self._is_waking = True
            self._loop.call_soon_threadsafe(self._on_wake)

    def _on_wake(self) -> None:
        self._is_waking = False
        self.sender.step()
        self.stepped.set()

    async def topic(self, name: str, partition: int | None, timeout_ms: int) -> TopicView:
        """A topic that has this partition."""
        deadline = Deadline(self.clock, timeout_ms)
        while True:
            view = await self.cluster.topic(name, timeout_ms=max(deadline.left_ms, 1))
            if partition is None or partition < len(view.partitions):
                return view
            if deadline.is_over:
                raise TimeoutError(
                    f"unknown topic-partition {name}-{partition}: the topic still has "
                    f"{len(view.partitions)} partitions after {timeout_ms} ms"
                )
            await self.cluster.refresh([name])

    async def flush(self) -> None:
        """Wait until everything sent so far has its outcome."""
        batches = self._accumulator.begin_flush()
        self.wake()
        try:
            await wait_until_done(batches)
        finally:
            self._accumulator.end_flush()

    async def close(self, timeout_ms: int | None) -> None:
        """Send buffered records until the timeout, then close."""
        self.intake.is_closed = True
        self.intake.close_open_batches()
        self._accumulator.is_closing = True
        try:
            if timeout_ms != 0 and not self._accumulator.is_empty:
                async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1e3):
                    await self.flush()
        except TimeoutError:
            pass  # the remaining batches fail below
        finally:
            self.stop()
            await self.sender.background_tasks.close()

    def stop(self) -> None:
        """Send nothing more; buffered records fail. A second call does nothing."""
        if self._is_stopped:
            return
        self._is_stopped = True
        self.intake.is_closed = True
        self.intake.close_open_batches()
        self.sender.close()
        self.sender.outcomes.abandon_all(ConnectionAbortedError(CLOSED))
        self.cluster.close()
        self.intake.hooks.interceptors.close()

    def metrics(self) -> Mapping[str, float]:
        """Metrics under the names of Kafka's producer."""
        counts, memory = self.sender.outcomes.counts, self._queues.memory
        requests = self.sender.requests
        latency = requests.latency(self.clock.mono_ns())
        return {
            "record-send-total": counts.records,
            "record-error-total": counts.failures,
            "record-retry-total": counts.retries,
            "batch-split-total": counts.splits,
            "batch-expired-total": counts.expired_batches,
            "byte-total": counts.sent_bytes,
            "batch-size-avg": counts.average_batch_bytes,
            "compression-rate-avg": counts.compression_rate,
            "records-per-request-avg": requests.average_records,
            "request-total": requests.count,
            "request-latency-avg": latency.average_ms,
            "request-latency-max": latency.max_ms,
            "requests-in-flight": self.sender.in_flight,
            "buffer-total-bytes": memory.total,
            "buffer-available-bytes": memory.free,
            "waiting-threads": memory.waiting,
            "bufferpool-wait-time-ns-total": memory.waited_ns,
            "buffer-exhausted-total": memory.timeouts,
        }

    def _deadline(self) -> Deadline:
        return Deadline(self.clock, self.config.max_block_ms)
