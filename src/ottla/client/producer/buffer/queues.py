"""The queued batches, by partition: the state shared by callers of `send` and the sender.

Owns: the queues, their memory, and the lock of both, which is held only briefly. `record_intake` is
the callers' side, `accumulator` the sender's.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator

from ottla.client.partitioners import KeyHash, Sticky
from ottla.client.producer.buffer.batch import Batch
from ottla.client.producer.buffer.buffer_memory import BufferMemory
from ottla.model.clock import MonoMs
from ottla.model.ids import TopicPartition


class Queue:
    """One partition's batches, the oldest first; records go into the last while it is open."""

    __slots__ = ("batches", "is_muted", "tp", "used_ms")

    def __init__(self, tp: TopicPartition) -> None:
        self.tp = tp
        self.batches: deque[Batch] = deque()
        self.is_muted = False  # one is in flight, and order requires that it is the only one
        self.used_ms = MonoMs(0)  # when its last batch was created

    @property
    def open(self) -> Batch | None:
        last = self.batches[-1] if self.batches else None
        return None if last is None or last.is_closed else last


class Route:
    """The fast path for records with keys: their partitions, and the open batches there."""

    __slots__ = ("hash", "open")

    def __init__(self, partitions: int) -> None:
        self.hash = KeyHash(partitions)
        self.open: list[Batch | None] = [None] * partitions


class Queues:
    """All batches without an outcome. Everything but reading `backlog` needs `lock`."""

    def __init__(self, buffer_memory: int) -> None:
        self.lock = threading.Lock()
        self.memory = BufferMemory(buffer_memory)
        self.open: dict[str, Batch] = {}
        """By topic, the open batch for records without a key: the fast path."""
        self.routes: dict[str, Route] = {}
        self.sticky: dict[str, Sticky] = {}
        self.incomplete: dict[Batch, None] = {}  # in the order they were created
        self.backlog = 0
        """Closed batches that are not drained: how far the sender is behind."""
        self._queues: dict[TopicPartition, Queue] = {}
        self._ordinal = 0

    def __iter__(self) -> Iterator[Queue]:
        return iter(self._queues.values())

    def at(self, tp: TopicPartition) -> Queue:
        queue = self._queues.get(tp)
        if queue is None:
            queue = self._queues[tp] = Queue(tp)
        return queue

    def waiting(self, tp: TopicPartition) -> int:
        """The number of queued batches of a partition."""
        queue = self._queues.get(tp)
        return 0 if queue is None else len(queue.batches)

    def used_since(self, when_ms: MonoMs) -> set[str]:
        """Topics for which a batch was created since then, or is still queued."""
        return {queue.tp.topic for queue in self if queue.batches or queue.used_ms >= when_ms}

    def route(self, topic: str, partitions: int) -> Route:
        """The route of a topic; a new one if its number of partitions changed."""
        route = self.routes.get(topic)
        if route is None or route.hash.partitions != partitions:
            route = self.routes[topic] = Route(partitions)
        return route

    def begin(self, queue: Queue, batch: Batch) -> None:
        """Put a new batch at the end of its queue."""
        self._ordinal += 1
        batch.ordinal = (self._ordinal,)
        queue.used_ms = batch.created_ms
        queue.batches.append(batch)
        self.incomplete[batch] = None
        self.backlog += batch.is_closed

    def insert(self, batch: Batch) -> None:
        """Queue a batch again, in the order they were created."""
        batches = self.at(batch.tp).batches
        later = (index for index, queued in enumerate(batches) if queued.ordinal > batch.ordinal)
        batches.insert(next(later, len(batches)), batch)
        self.backlog += 1

    def take(self, queue: Queue) -> Batch:
        """Close and remove the first batch of a queue."""
        batch = queue.batches[0]
        self.close(batch)
        queue.batches.popleft()
        self.backlog -= 1
        return batch

    def close(self, batch: Batch) -> None:
        """Close a batch for further records."""
        if batch.is_closed:
            return
        batch.close()
        self.backlog += 1
        topic, partition = batch.tp
        route = self.routes.get(topic)
        if route is not None and partition < len(route.open) and route.open[partition] is batch:
            route.open[partition] = None
        if self.open.get(topic) is batch:
            del self.open[topic]
            self.sticky[topic].count(batch.size)

    def remove(self, batch: Batch) -> None:
        """Remove a batch from its queue, if it is there: it may be in flight."""
        self.close(batch)
        batches = self.at(batch.tp).batches
        if batch in batches:
            batches.remove(batch)
            self.backlog -= 1
