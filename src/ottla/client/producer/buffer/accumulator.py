"""The sender's side of the queues: which batches are ready, and how they are taken.

Owns: the rules of PRD-29 to PRD-37. Decides with the time it is told; never sends, encodes or
blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from ottla.client.cluster_view import NOBODY, ClusterView
from ottla.client.producer.buffer.batch import Batch
from ottla.client.producer.buffer.queues import Queue, Queues
from ottla.config.client import ProducerConfig
from ottla.model.ids import TopicPartition

FOREVER_MS: Final = 1 << 60


@dataclass(slots=True)
class Ready:
    """What could be sent now, and when to look again."""

    nodes: dict[int, list[Queue]] = field(default_factory=dict)
    leaderless: set[str] = field(default_factory=set)
    wait_ms: int = FOREVER_MS


class Accumulator:
    """Every record that is not with a broker yet, for the sender."""

    def __init__(self, config: ProducerConfig, queues: Queues) -> None:
        self.is_closing = False
        self._config = config
        self._queues = queues
        self._flushes = 0
        self._turn: dict[int, int] = {}

    @property
    def is_empty(self) -> bool:
        """Nothing waits, and nothing is under way."""
        return not self._queues.incomplete

    def ready(self, view: ClusterView, now_ms: int) -> Ready:
        """Which brokers have something to be sent to them."""
        found = Ready()
        queues = self._queues
        with queues.lock:
            hurry = self.is_closing or self._flushes > 0 or queues.memory.waiting > 0
            for queue in queues:
                if not queue.batches or queue.is_muted:
                    continue
                wait_ms = self._wait_ms(queue, now_ms, hurry=hurry)
                if wait_ms > 0:
                    found.wait_ms = min(found.wait_ms, wait_ms)
                    continue
                leader = view.leader(queue.tp)
                if leader == NOBODY:
                    found.leaderless.add(queue.tp.topic)
                else:
                    found.nodes.setdefault(leader, []).append(queue)
        return found

    def _wait_ms(self, queue: Queue, now_ms: int, *, hurry: bool) -> int:
        """How long the first batch of a queue has to wait yet."""
        head = queue.batches[0]
        if head.attempts:
            return head.retry_at_ms - now_ms
        if head.is_closed or hurry or len(queue.batches) > 1:
            return 0
        return head.created_ms + self._config.linger_ms - now_ms

    def drain(
        self, node: int, queues: list[Queue], may_drain: Callable[[TopicPartition, Batch], bool]
    ) -> list[Batch]:
        """At most one batch of each queue, for one request to a broker.

        Begins after the partition that it ended with the last time, so that none is forgotten
        when a request is full. A batch that is larger than a request goes alone.
        """
        drained: list[Batch] = []
        size = 0
        with self._queues.lock:
            start = self._turn.get(node, 0) % len(queues)
            for at in range(len(queues)):
                queue = queues[(start + at) % len(queues)]
                if not queue.batches or queue.is_muted:
                    continue
                head = queue.batches[0]
                if not may_drain(queue.tp, head):
                    continue
                if drained and size + head.size > self._config.max_request_size:
                    break
                self._turn[node] = start + at + 1
                size += head.size
                drained.append(self._queues.take(queue))
                queue.is_muted = self._config.max_in_flight_requests_per_connection == 1
        return drained

    def unmute(self, batches: Iterable[Batch]) -> None:
        """These are not under way any more: others of their partitions may go."""
        with self._queues.lock:
            for batch in batches:
                self._queues.at(batch.tp).is_muted = False

    def put_back(self, batches: Iterable[Batch]) -> None:
        """Batches to be sent again: each to its place in the order they were begun in."""
        with self._queues.lock:
            for batch in batches:
                self._queues.insert(batch)

    def replace(self, batch: Batch, parts: list[Batch]) -> None:
        """Count smaller batches, and send them, in the place of one that was too large."""
        queues = self._queues
        with queues.lock:
            queues.incomplete = {
                successor: None
                for each in queues.incomplete
                for successor in (parts if each is batch else (each,))
            }
        self.put_back(parts)

    def finished(self, batch: Batch) -> None:
        """A batch has its outcome: its memory is free."""
        with self._queues.lock:
            if self._queues.incomplete.pop(batch, 0) is None:
                self._queues.memory.give_back(batch.reserved)

    def expired(self, now_ms: int) -> list[Batch]:
        """Batches that have waited, or been under way, for `delivery.timeout.ms`; taken out."""
        oldest_ms = now_ms - self._config.delivery_ms
        late = []
        with self._queues.lock:
            for batch in self._queues.incomplete:
                if batch.created_ms > oldest_ms:
                    break
                late.append(batch)
            for batch in late:
                self._queues.remove(batch)
        return late

    def next_expiry_ms(self, now_ms: int) -> int:
        """How long until the oldest batch expires."""
        with self._queues.lock:
            oldest = next(iter(self._queues.incomplete), None)
        if oldest is None:
            return FOREVER_MS
        return max(oldest.created_ms + self._config.delivery_ms - now_ms, 0)

    def take_unsent(self, *, numbered: bool) -> list[Batch]:
        """Take out the batches that are in queues, those with numbers only if `numbered`."""
        with self._queues.lock:
            taken = [
                batch
                for queue in self._queues
                for batch in queue.batches
                if numbered or batch.stamp is None
            ]
            for batch in taken:
                self._queues.remove(batch)
        return taken

    def incomplete_batches(self) -> list[Batch]:
        """Batches without an outcome, when none is in a queue any more."""
        with self._queues.lock:
            return list(self._queues.incomplete)

    def begin_flush(self) -> list[Batch]:
        """Let nothing linger until `end_flush`; the batches there are to wait for."""
        with self._queues.lock:
            self._flushes += 1
            return list(self._queues.incomplete)

    def end_flush(self) -> None:
        with self._queues.lock:
            self._flushes -= 1
