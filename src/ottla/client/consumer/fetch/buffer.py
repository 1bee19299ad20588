"""Chunks that have arrived and were not read through.

Owns their order and what becomes of chunks of partitions that are paused, revoked or sought. The
event loop appends, whoever polls takes; one deque, whose ends are safe to use from two threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from ottla.client.consumer.fetch.chunk import Chunk, ChunkReader
from ottla.client.consumer.position.partition_position import AssignedPartition
from ottla.client.consumer.record import Record


class Buffer:
    """Where fetches end and polls begin."""

    def __init__(
        self, reading: ChunkReader, drained: Callable[[], None], broken: Callable[[Chunk], None]
    ) -> None:
        self._reading = reading
        self.drained = drained  # there is room for another fetch
        self.broken = broken  # it does not read
        self._ready: deque[Chunk] = deque()
        self._parked: list[Chunk] = []

    def add(self, chunk: Chunk) -> None:
        chunk.part.arrived += 1
        self._ready.append(chunk)

    def resume(self, part: AssignedPartition) -> None:
        """What was fetched before a pause comes first."""
        mine = [chunk for chunk in self._parked if chunk.part is part]
        self._parked = [chunk for chunk in self._parked if chunk.part is not part]
        self._ready.extendleft(reversed(mine))

    @property
    def has_some(self) -> bool:
        """Whether there is a chunk that may be read; it may turn out to hold no record."""
        return next(self._current(), None) is not None

    def take(self, most: int) -> list[Record[Any, Any]]:
        """Up to so many records, positions moved past them; from several chunks if need be.

        A record that cannot be read ends the list; when it is the first, its error is raised.
        """
        taken: list[Record[Any, Any]] = []
        for chunk in self._current():
            part = chunk.part
            try:
                records, is_last = chunk.take(most - len(taken), self._reading)
            except Exception:
                if taken:
                    break
                self.broken(chunk)
                raise
            if is_last:
                self._ready.popleft()
                part.offset, part.epoch = chunk.end, chunk.end_epoch
                part.finished += 1
                self.drained()
            elif records:
                part.offset, part.epoch = records[-1].offset + 1, records[-1].leader_epoch
            taken = taken + records if taken else records
            if len(taken) >= most or not is_last:
                break
        return taken

    def take_chunks(self) -> list[Chunk]:
        """Everything there is, undecoded; what was read of the first is left out by its offset."""
        found: list[Chunk] = []
        for chunk in self._current():
            self._ready.popleft()
            found.append(chunk)
        return found

    def done(self, chunk: Chunk) -> None:
        """The user has all of a chunk from `take_chunks`; whoever took them says `drained`."""
        part = chunk.part
        part.offset, part.epoch = chunk.end, chunk.end_epoch
        part.finished += 1

    def put_back(self, chunks: list[Chunk]) -> None:
        self._ready.extendleft(reversed(chunks))

    def _current(self) -> Iterator[Chunk]:
        """The first chunk that may be read, again and again until there is none."""
        while self._ready:
            chunk = self._ready[0]
            if not chunk.is_current:
                self._ready.popleft()
            elif chunk.part.paused:
                self._parked.append(self._ready.popleft())
            else:
                yield chunk
