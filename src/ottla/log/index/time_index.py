"""Which offset a time lies at: the `.timeindex` file.

Owns entries of 12 bytes: the largest timestamp of the segment so far, and the offset (relative to
the base) of the batch that brought it. Record timestamps need not rise, the largest so far does:
an entry says that nothing before its offset is newer than its timestamp.
"""

from __future__ import annotations

from struct import Struct

from ottla.log.index.sparse_index import SparseIndex


class TimeIndex(SparseIndex):
    """(timestamp, relative offset)."""

    ENTRY = Struct(">qi")
    CODES = ("q", "i")

    __slots__ = ()

    def append_risen(self, timestamp: int, relative_offset: int) -> None:
        """Add an entry if the largest timestamp has risen since the last one."""
        last = self.last
        if timestamp >= 0 and (last is None or timestamp > last[0]):
            self.append(timestamp, relative_offset)

    def cut_from(self, relative_offset: int) -> None:
        """Drop entries whose batch is at or above an offset."""
        pairs = self.pairs()
        self.cut(sum(offset < relative_offset for _, offset in pairs))
