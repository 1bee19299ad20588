"""The two indexes of one segment, which are opened, extended, cut and written together.

Owns the `.index` and `.timeindex` of a segment. Never reads the log: what entries must say comes
from the segment, and so does the verdict that they are wrong.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from pathlib import Path
from typing import Final

from ottla.log.files import Disk
from ottla.log.index.sparse_index import OffsetIndex, TimeIndex
from ottla.model.ids import Offset

RECENT_BATCHES: Final = 128


class RecentBatches:
    """The last batches appended, at most `RECENT_BATCHES` of them."""

    __slots__ = ("_offsets", "_positions")

    def __init__(self) -> None:
        self._offsets = array("q")
        self._positions = array("q")

    def add(self, first_offset: Offset, position: int) -> None:
        offsets = self._offsets
        offsets.append(first_offset)
        self._positions.append(position)
        if len(offsets) > RECENT_BATCHES:
            del offsets[: RECENT_BATCHES // 2]
            del self._positions[: RECENT_BATCHES // 2]

    def floor(self, offset: Offset) -> tuple[Offset, int] | None:
        """The last batch known that begins at or below an offset."""
        at = bisect_right(self._offsets, offset) - 1
        return (self._offsets[at], self._positions[at]) if at >= 0 else None


INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"


class SegmentIndexes:
    """Entries relative to the segment's base offset."""

    __slots__ = ("offsets", "times")

    def __init__(self, disk: Disk, offsets_path: Path, times_path: Path) -> None:
        self.offsets = OffsetIndex(disk, offsets_path)
        self.times = TimeIndex(disk, times_path)

    def load(self) -> None:
        """Read the index files; CorruptIndex if they are invalid."""
        self.offsets.load()
        self.times.load()

    def add(self, relative: int, position: int, newest: tuple[int, int]) -> None:
        """One entry in each: a batch, and the newest (timestamp, relative offset) so far."""
        self.offsets.append(relative, position)
        self.times.append_if_larger(*newest)

    @property
    def largest_bytes(self) -> int:
        """What `segment.index.bytes` bounds; the time index needs room for one more at closing."""
        return max(self.offsets.size_bytes, self.times.size_bytes + self.times.ENTRY.size)

    def truncate_from(self, relative: int) -> None:
        """Remove entries for this offset and later ones."""
        self.offsets.truncate_from(relative)
        self.times.truncate_from(relative)

    def write(self) -> None:
        self.offsets.write()
        self.times.write()

    def create(self) -> None:
        self.offsets.create()
        self.times.create()

    def sync(self) -> None:
        self.offsets.sync()
        self.times.sync()

    def close(self) -> None:
        """Close the files, without writing."""
        self.offsets.close()
        self.times.close()
