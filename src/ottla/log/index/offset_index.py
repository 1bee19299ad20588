"""Where in a segment's file an offset lies: the `.index` file.

Owns entries of 8 bytes: the last offset of a batch, relative to the segment's base, and the
position at which that batch begins. One entry for each `index.interval.bytes` of log, so a lookup
gives a place to scan from, at or before the offset asked for.
"""

from __future__ import annotations

from struct import Struct

from ottla.log.index.sparse_index import SparseIndex


class OffsetIndex(SparseIndex):
    """(relative offset, position)."""

    ENTRY = Struct(">ii")
    CODES = ("i", "i")

    __slots__ = ()

    def cut_from(self, relative_offset: int) -> None:
        """Drop entries at or above an offset."""
        pairs = self.pairs()
        self.cut(sum(offset < relative_offset for offset, _ in pairs))
