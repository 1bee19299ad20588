"""Fetched chunks that are not fully read.

Owns their order, and what happens to chunks of partitions that are paused, revoked or sought. The
event loop appends, the polling thread takes; the ends of a deque are safe to use from two threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from ottla.client.consumer.fetch.chunk import Chunk, ChunkReader
from ottla.client.consumer.position.partition_position import AssignedPartition
from ottla.client.consumer.record import AnyRecord


class Buffer:
    """The buffer between fetches and polls."""

    def __init__(
        self, reading: ChunkReader, drained: Callable[[], None], broken: Callable[[Chunk], None]
    ) -> None:
        self._reading = reading
        self.drained = drained  # there is room for another fetch
        self.broken = broken  # it cannot be decoded
        self._ready: deque[Chunk] = deque()
        self._parked: list[Chunk] = []

    def add(self, chunk: Chunk) -> None:
        chunk.part.arrived += 1
        self._ready.append(chunk)

    def resume(self, part: AssignedPartition) -> None:
        """Chunks that were fetched before a pause come first."""
        resumed = [chunk for chunk in self._parked if chunk.part is part]
        self._parked = [chunk for chunk in self._parked if chunk.part is not part]
        self._ready.extendleft(reversed(resumed))

    @property
    def has_some(self) -> bool:
        """Whether there is a chunk to read; it may contain no record."""
        return next(self._current(), None) is not None

    def take(self, most: int) -> list[AnyRecord]:
        """Up to `most` records, from several chunks if needed; positions move past them.

        A record that cannot be decoded ends the list; if it is the first, its error is raised.
        """
        result: list[AnyRecord] = []
        for chunk in self._current():
            part = chunk.part
            try:
                records, is_last = chunk.take(most - len(result), self._reading)
            except Exception:
                if result:
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
            result = result + records if result else records
            if len(result) >= most or not is_last:
                break
        return result

    def take_chunks(self) -> list[Chunk]:
        """All chunks, undecoded; the part of the first that was read is skipped by its offset."""
        chunks: list[Chunk] = []
        for chunk in self._current():
            self._ready.popleft()
            chunks.append(chunk)
        return chunks

    def done(self, chunk: Chunk) -> None:
        """The user has all of a chunk from `take_chunks`; the caller of that calls `drained`."""
        part = chunk.part
        part.offset, part.epoch = chunk.end, chunk.end_epoch
        part.finished += 1

    def put_back(self, chunks: list[Chunk]) -> None:
        self._ready.extendleft(reversed(chunks))

    def _current(self) -> Iterator[Chunk]:
        """The first readable chunk, repeatedly until there is none."""
        while self._ready:
            chunk = self._ready[0]
            if not chunk.is_current:
                self._ready.popleft()
            elif chunk.part.paused:
                self._parked.append(self._ready.popleft())
            else:
                yield chunk
