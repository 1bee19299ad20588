"""Where a segment's newest batches begin, so that reading at the end of a log needs no index.

Owns a bounded number of (first offset, position) pairs, as they were appended. Readers that keep
up ask for offsets that were batch starts a moment ago, and high watermarks are batch starts too.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import Final

from ottla.model.ids import Offset

MOST: Final = 128


class RecentBatches:
    """The last batches appended, at most `MOST` of them."""

    __slots__ = ("_offsets", "_positions")

    def __init__(self) -> None:
        self._offsets = array("q")
        self._positions = array("q")

    def note(self, first_offset: Offset, position: int) -> None:
        offsets = self._offsets
        offsets.append(first_offset)
        self._positions.append(position)
        if len(offsets) > MOST:
            del offsets[: MOST // 2]
            del self._positions[: MOST // 2]

    def floor(self, offset: Offset) -> tuple[Offset, int] | None:
        """The last batch known that begins at or below an offset."""
        at = bisect_right(self._offsets, offset) - 1
        return (self._offsets[at], self._positions[at]) if at >= 0 else None
