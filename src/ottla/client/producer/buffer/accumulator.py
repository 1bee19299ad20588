"""The sender's side of the queues: which batches are ready, and draining them.

Owns: the rules of PRD-29 to PRD-37. The time is an argument; never sends, encodes or blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from ottla.client.cluster_view import NOBODY, ClusterView
from ottla.client.producer.buffer.batch import Batch
from ottla.client.producer.buffer.queues import Queue, Queues
from ottla.config.client import ProducerConfig
from ottla.model.clock import MonoMs
from ottla.model.ids import TopicPartition

FOREVER_MS: Final = 1 << 60


@dataclass(slots=True)
class Ready:
    """What can be sent now, and when to check again."""

    nodes: dict[int, list[Queue]] = field(default_factory=dict)
    leaderless: set[str] = field(default_factory=set)
    wait_ms: int = FOREVER_MS


class Accumulator:
    """All batches without an outcome, for the sender."""

    def __init__(self, config: ProducerConfig, queues: Queues) -> None:
        self.is_closing = False
        self._config = config
        self._queues = queues
        self._flushes = 0
        self._turn: dict[int, int] = {}

    @property
    def is_empty(self) -> bool:
        """No batch is queued or in flight."""
        return not self._queues.incomplete

    def ready(self, view: ClusterView, now_ms: MonoMs) -> Ready:
        """The brokers for which batches are ready."""
        ready = Ready()
        queues = self._queues
        with queues.lock:
            hurry = self.is_closing or self._flushes > 0 or queues.memory.waiting > 0
            for queue in queues:
                if not queue.batches or queue.is_muted:
                    continue
                wait_ms = self._wait_ms(queue, view, now_ms, hurry=hurry)
                if wait_ms > 0:
                    ready.wait_ms = min(ready.wait_ms, wait_ms)
                    continue
                leader = view.leader(queue.tp)
                if leader == NOBODY:
                    ready.leaderless.add(queue.tp.topic)
                else:
                    ready.nodes.setdefault(leader, []).append(queue)
        return ready

    def _wait_ms(self, queue: Queue, view: ClusterView, now_ms: MonoMs, *, hurry: bool) -> int:
        """How much longer the first batch of a queue has to wait.

        A retry has its back-off for the sake of the broker that failed: a new leader has none.
        """
        head = queue.batches[0]
        if head.attempts:
            has_new_leader = view.leader_epoch(queue.tp) > head.leader_epoch
            return 0 if has_new_leader else head.retry_at_ms - now_ms
        if head.is_closed or hurry or len(queue.batches) > 1:
            return 0
        return head.created_ms + self._config.linger_ms - now_ms

    def drain(
        self, node: int, queues: list[Queue], may_drain: Callable[[TopicPartition, Batch], bool]
    ) -> list[Batch]:
        """At most one batch of each queue, for one request to a broker.

        Starts after the last partition of the previous request, so that no partition starves when
        requests are full. A batch that is larger than a request is sent alone.
        """
        drained: list[Batch] = []
        size = 0
        with self._queues.lock:
            start = self._turn.get(node, 0) % len(queues)
            for step in range(len(queues)):
                queue = queues[(start + step) % len(queues)]
                if not queue.batches or queue.is_muted:
                    continue
                head = queue.batches[0]
                if not may_drain(queue.tp, head):
                    continue
                if drained and size + head.size > self._config.max_request_size:
                    break
                self._turn[node] = start + step + 1
                size += head.size
                drained.append(self._queues.take(queue))
                queue.is_muted = self._config.max_in_flight_requests_per_connection == 1
        return drained

    def unmute(self, batches: Iterable[Batch]) -> None:
        """Batches are no longer in flight: others of their partitions may be sent."""
        with self._queues.lock:
            for batch in batches:
                self._queues.at(batch.tp).is_muted = False

    def put_back(self, batches: Iterable[Batch]) -> None:
        """Queue batches for a retry, in the order they were created."""
        with self._queues.lock:
            for batch in batches:
                self._queues.insert(batch)

    def replace(self, batch: Batch, parts: list[Batch]) -> None:
        """Queue the parts of a batch that was too large in its place."""
        queues = self._queues
        with queues.lock:
            queues.incomplete = {
                successor: None
                for incomplete in queues.incomplete
                for successor in (parts if incomplete is batch else (incomplete,))
            }
        self.put_back(parts)

    def release(self, batch: Batch) -> None:
        """Free the memory of a batch that has its outcome."""
        with self._queues.lock:
            if self._queues.incomplete.pop(batch, 0) is None:
                self._queues.memory.give_back(batch.reserved)

    def remove_expired(self, now_ms: MonoMs) -> list[Batch]:
        """Remove and return the batches that are older than `delivery.timeout.ms`."""
        oldest_ms = now_ms - self._config.delivery_ms
        expired = []
        with self._queues.lock:
            for batch in self._queues.incomplete:
                if batch.created_ms > oldest_ms:
                    break
                expired.append(batch)
            for batch in expired:
                self._queues.remove(batch)
        return expired

    def next_expiry_ms(self, now_ms: MonoMs) -> int:
        """How long until the oldest batch expires."""
        with self._queues.lock:
            oldest = next(iter(self._queues.incomplete), None)
        if oldest is None:
            return FOREVER_MS
        return max(oldest.created_ms + self._config.delivery_ms - now_ms, 0)

    def take_unsent(self, *, numbered: bool) -> list[Batch]:
        """Remove and return queued batches; those with sequence numbers only if `numbered`."""
        with self._queues.lock:
            unsent = [
                batch
                for queue in self._queues
                for batch in queue.batches
                if numbered or batch.stamp is None
            ]
            for batch in unsent:
                self._queues.remove(batch)
        return unsent

    def incomplete_batches(self) -> list[Batch]:
        """All batches without an outcome."""
        with self._queues.lock:
            return list(self._queues.incomplete)

    def begin_flush(self) -> list[Batch]:
        """Ignore `linger.ms` until `end_flush`; returns the batches to wait for."""
        with self._queues.lock:
            self._flushes += 1
            return list(self._queues.incomplete)

    def end_flush(self) -> None:
        with self._queues.lock:
            self._flushes -= 1
