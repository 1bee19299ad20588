"""Records that wait to be sent, gathered into batches by partition.

Owns: a queue of batches for each partition, the memory they take, and the rules by which a batch
is ready and is drained. Decides with the time it is told; never sends, encodes or blocks.

Appending happens on the callers' threads and draining on the sender's, so all of it is done under
one lock, held for a moment at a time. `open` is for the quickest way in: the batch that records
without a key go to at present, by topic.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from ottla.client.partitioners import Sticky
from ottla.client.producer.batch import Batch, Prepared, size_of
from ottla.client.producer.compression import Ratios
from ottla.client.producer.delivery import Delivery
from ottla.client.producer.memory import Claim, Memory
from ottla.client.view import NOBODY, ClusterView
from ottla.config.client import ProducerConfig
from ottla.model.ids import TopicPartition
from ottla.protocol.records.header import HEADER_SIZE

FOREVER_MS: Final = 1 << 60


class Queue:
    """One partition's batches, the oldest first; records go into the last while it is open."""

    __slots__ = ("batches", "is_muted", "tp")

    def __init__(self, tp: TopicPartition) -> None:
        self.tp = tp
        self.batches: deque[Batch] = deque()
        self.is_muted = False  # one is under way and order demands that it is the only one

    @property
    def open(self) -> Batch | None:
        last = self.batches[-1] if self.batches else None
        return None if last is None or last.is_closed else last


@dataclass(slots=True)
class Ready:
    """What could be sent now, and when to look again."""

    nodes: dict[int, list[Queue]] = field(default_factory=dict)
    leaderless: set[str] = field(default_factory=set)
    wait_ms: int = FOREVER_MS


class Accumulator:
    """Every record that is not with a broker yet."""

    def __init__(self, config: ProducerConfig, wake: Callable[[], object]) -> None:
        self.lock = threading.Lock()
        self.open: dict[str, Batch] = {}
        self.sticky: dict[str, Sticky] = {}
        self.memory = Memory(config.buffer_memory)
        self.ratios = Ratios(config.compression_type)
        self.incomplete: dict[Batch, None] = {}  # in the order they were begun
        self.backlog = 0
        """Batches that are closed and not drained: how far the sender is behind."""
        self.is_closing = False
        self.transactional = config.transactional_id is not None
        self._flushes = 0
        self._config = config
        self._wake = wake
        self._queues: dict[TopicPartition, Queue] = {}
        self._turn: dict[int, int] = {}
        self._ordinal = 0

    # the callers' side

    def room(self, topic: str) -> int:
        """Bytes of records that a new batch of this topic takes before they are compressed."""
        return min(self.ratios.room(topic, self._config.batch_size), self._config.max_request_size)

    def needed(self, topic: str, record_bytes: int) -> int:
        """Memory for the batch that a record of this size would begin."""
        return max(self.room(topic), record_bytes + HEADER_SIZE)

    def append(self, record: Prepared, now_ms: int, claim: Claim | None = None) -> Delivery | None:
        """Take a record; None when a new batch is needed and there is no memory for it.

        `claim` is memory that was waited for; it goes back if another thread has begun a batch
        meanwhile.
        """
        tp, key, value, headers, timestamp_ns, sticky = record
        size = size_of(key, value, headers)
        with self.lock:
            queue = self._queue(tp)
            batch = queue.open
            if batch is not None and (batch.room >= size or not batch.values):
                if claim is not None:
                    self.memory.give_back(claim.size)
                return Delivery(batch, batch.append(key, value, headers, timestamp_ns))
            if batch is not None:
                self._close(batch)
            needed = claim.size if claim is not None else self.needed(tp.topic, size)
            if claim is None and not self.memory.take(needed):
                self._wake()  # what was closed can go, and make room
                return None
            batch = self._begin(queue, needed, now_ms)
            if sticky:
                self.open[tp.topic] = batch
            delivery = Delivery(batch, batch.append(key, value, headers, timestamp_ns))
        self._wake()
        return delivery

    def add(self, batch: Batch) -> None:
        """Take a batch that is encoded already; its memory has been taken."""
        with self.lock:
            queue = self._queue(batch.tp)
            if queue.open is not None:
                self._close(queue.batches[-1])
            self._number(batch)
            queue.batches.append(batch)
            self.incomplete[batch] = None
            self.backlog += 1
        self._wake()

    def waiting(self, tp: TopicPartition) -> int:
        """How many batches of a partition wait here."""
        queue = self._queues.get(tp)
        return 0 if queue is None else len(queue.batches)

    def _begin(self, queue: Queue, reserved: int, now_ms: int) -> Batch:
        room = self.room(queue.tp.topic)
        batch = Batch(queue.tp, room, reserved, now_ms, self.lock)
        batch.transactional = self.transactional
        self._number(batch)
        queue.batches.append(batch)
        self.incomplete[batch] = None
        return batch

    def _number(self, batch: Batch) -> None:
        self._ordinal += 1
        batch.ordinal = (self._ordinal,)

    def _close(self, batch: Batch) -> None:
        if not batch.is_closed:
            batch.close()
            self.backlog += 1
        topic = batch.tp.topic
        if self.open.get(topic) is batch:
            del self.open[topic]
            self.sticky[topic].count(batch.size)

    def _queue(self, tp: TopicPartition) -> Queue:
        queue = self._queues.get(tp)
        if queue is None:
            queue = self._queues[tp] = Queue(tp)
        return queue

    # the sender's side

    def ready(self, view: ClusterView, now_ms: int) -> Ready:
        """Which brokers have something to be sent to them."""
        found = Ready()
        with self.lock:
            hurry = self.is_closing or self._flushes > 0 or self.memory.waiting > 0
            for queue in self._queues.values():
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
        with self.lock:
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
                queue.batches.popleft()
                self._close(head)
                self.backlog -= 1
                size += head.size
                drained.append(head)
                if self._config.max_in_flight_requests_per_connection == 1:
                    queue.is_muted = True
        return drained

    def put_back(self, batches: Iterable[Batch]) -> None:
        """Batches to be sent again: each to its place in the order they were begun in."""
        with self.lock:
            for batch in batches:
                queue = self._queue(batch.tp)
                later = (
                    at for at, each in enumerate(queue.batches) if each.ordinal > batch.ordinal
                )
                queue.batches.insert(next(later, len(queue.batches)), batch)
                self.backlog += 1

    def unmute(self, tp: TopicPartition) -> None:
        self._queue(tp).is_muted = False

    def split(self, batch: Batch, parts: list[Batch]) -> None:
        """Count smaller batches in the place of one that was too large."""
        with self.lock:
            self.incomplete = {
                heir: None
                for each in self.incomplete
                for heir in (parts if each is batch else (each,))
            }

    def finished(self, batch: Batch) -> None:
        """A batch has its outcome: its memory is free."""
        with self.lock:
            if self.incomplete.pop(batch, 0) is None:
                self.memory.give_back(batch.reserved)

    def expired(self, now_ms: int) -> list[Batch]:
        """Batches that have waited, or been under way, for `delivery.timeout.ms`."""
        oldest_ms = now_ms - self._config.delivery_ms
        with self.lock:
            late = []
            for batch in self.incomplete:
                if batch.created_ms > oldest_ms:
                    break
                late.append(batch)
            self._remove(late)
        return late

    def next_expiry_ms(self, now_ms: int) -> int:
        """How long until the oldest batch expires."""
        with self.lock:
            oldest = next(iter(self.incomplete), None)
        return (
            FOREVER_MS
            if oldest is None
            else (oldest.created_ms + self._config.delivery_ms - now_ms)
        )

    def take_unsent(self, *, numbered: bool) -> list[Batch]:
        """Remove the batches that are in queues, those with numbers only if `numbered`."""
        with self.lock:
            taken = [batch for batch in self._queued() if numbered or batch.stamp is None]
            self._remove(taken)
        return taken

    def close_open(self) -> None:
        """Let records come by the long way, where it is asked whether they may."""
        with self.lock:
            for batch in list(self.open.values()):
                self._close(batch)

    def flush_begun(self) -> list[Batch]:
        """Let nothing linger until `flush_ended`; the batches there are to wait for."""
        with self.lock:
            self._flushes += 1
            batches = list(self.incomplete)
        self._wake()
        return batches

    def flush_ended(self) -> None:
        with self.lock:
            self._flushes -= 1

    def _queued(self) -> Iterator[Batch]:
        for queue in self._queues.values():
            yield from queue.batches

    def _remove(self, batches: list[Batch]) -> None:
        for batch in batches:
            self._close(batch)
            queue = self._queues.get(batch.tp)
            if queue is not None and batch in queue.batches:
                queue.batches.remove(batch)
                self.backlog -= 1
