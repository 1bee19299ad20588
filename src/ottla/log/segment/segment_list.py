"""The segments of one log, in order of offset; the last one is active.

Owns which segments there are. Never decides which are added or removed. Finding the one that holds
an offset is a binary search over base offsets.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import overload

from ottla.log.segment.search import position_of
from ottla.log.segment.segment import Segment
from ottla.model.ids import Offset


class SegmentList:
    """A sorted collection of segments; a log that is open has at least one."""

    __slots__ = ("_bases", "_segments", "active", "generation")

    def __init__(self, segments: Iterable[Segment] = ()) -> None:
        self.generation = 0  # changes whenever written bytes are removed, except from the start
        self._assign(segments)

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(tuple(self._segments))

    @overload
    def __getitem__(self, index: int) -> Segment: ...

    @overload
    def __getitem__(self, index: slice) -> list[Segment]: ...

    def __getitem__(self, index: int | slice) -> Segment | list[Segment]:
        return self._segments[index]

    @property
    def first(self) -> Segment:
        return self._segments[0]

    def index_of(self, offset: Offset) -> int:
        """The index of the segment that holds an offset: the last that begins at or below it."""
        return max(0, bisect_right(self._bases, offset) - 1)

    def floor(self, offset: Offset) -> Segment:
        return self._segments[self.index_of(offset)]

    def starting_from(self, offset: Offset) -> list[Segment]:
        """The segment that holds an offset, and all after it."""
        return self._segments[self.index_of(offset) :]

    def end_of(self, index: int, log_end: Offset) -> Offset:
        """The first offset that is not in the segment at an index."""
        return self._bases[index + 1] if index + 1 < len(self._bases) else log_end

    def add(self, segment: Segment) -> None:
        index = bisect_left(self._bases, segment.base_offset)
        assert index == len(self._bases) or self._bases[index] != segment.base_offset, (
            f"two segments at {segment.base_offset}"
        )
        self._bases.insert(index, segment.base_offset)
        self._segments.insert(index, segment)
        self._refresh()

    def remove(self, segment: Segment) -> None:
        index = self._segments.index(segment)
        del self._segments[index], self._bases[index]
        self._refresh()

    def replace(self, old: Sequence[Segment], new: Segment) -> None:
        """Put one segment in the place of others."""
        self.generation += 1
        self._assign([*(segment for segment in self._segments if segment not in old), new])

    def truncation_steps(self, offset: Offset) -> Iterator[tuple[Offset, Callable[[], None]]]:
        """Remove everything from the batch that holds `offset` on: the end after each step, and
        what must be synced before the next.

        Later segments are removed before earlier ones, so that a crash leaves no gap in the log.
        """
        self.generation += 1
        removed: Segment | None = None
        for segment in reversed(list(self)):
            if segment.base_offset <= offset:
                break
            self.remove(segment)
            segment.delete()
            removed = segment
        active = self.active
        if removed is not None:
            yield removed.base_offset, partial(active.files.disk.sync_dir, active.files.dir)
        position = position_of(active, offset)
        if position < active.size:  # an offset inside a batch: all of that batch is removed
            offset = min(offset, active.batch_at(position).base_offset)
        active.truncate_to(offset)
        yield offset, active.file().source().sync

    def clear(self) -> None:
        """Delete all segments, the last first. The log needs a new one then."""
        self.generation += 1
        for segment in reversed(self._segments):
            segment.delete()
        self._assign(())

    def total_size(self) -> int:
        return sum(segment.size for segment in self._segments)

    def _assign(self, segments: Iterable[Segment]) -> None:
        self._segments = sorted(segments, key=lambda segment: segment.base_offset)
        self._bases = [segment.base_offset for segment in self._segments]
        self._refresh()

    def _refresh(self) -> None:
        if self._segments:
            self.active = self._segments[-1]
