"""Where a segment ends and which of its batches is the newest, read from its files.

Owns what a segment must know of batches it has not appended itself: at startup and after
truncation. Index entries are checked against the batches; wrong ones have the indexes rebuilt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.log.segment.index_rebuild import rebuild_indexes
from ottla.log.segment.search import position_of_entry
from ottla.model.ids import Offset
from ottla.protocol.records.batch import CorruptBatch

if TYPE_CHECKING:
    from ottla.log.segment.segment import Segment


class SegmentEnd(NamedTuple):
    """The offset after a segment's last batch, and the leader epoch of that batch (-1: none)."""

    offset: Offset
    leader_epoch: int


def load_end(segment: Segment) -> SegmentEnd:
    """Where it ends, found from the last index entry on (a clean start)."""
    last = segment.indexes().offsets.last
    start, expected = (0, None) if last is None else (last[1], segment.base_offset + last[0])
    end, is_valid = SegmentEnd(segment.base_offset, -1), expected is None
    try:
        for batch in segment.headers(start):
            end = SegmentEnd(batch.last_offset + 1, batch.leader_epoch)
            is_valid = is_valid or batch.last_offset == expected
    except CorruptBatch:
        if expected is None:
            raise
        is_valid = False
    if is_valid:
        segment.unindexed_bytes = segment.size - start
        return end
    rebuild_indexes(segment, "last offset index entry does not match its batch")
    return load_end(segment)


def load_newest(segment: Segment) -> tuple[int, Offset]:
    """The largest timestamp and the last offset of its batch, from the last time index entry.

    Every closed segment has one.
    """
    last = segment.indexes().times.last
    if last is None:
        return scan_newest(segment)
    if position_of_entry(segment, last) is None:
        rebuild_indexes(segment, "last time index entry does not match its batch")
        return segment.max_timestamp, segment.known_max_offset
    return last[0], segment.base_offset + last[1]


def check_newest(segment: Segment) -> None:
    """Make sure that the time index reaches the end: without a sync its last entry may be lost."""
    last = segment.indexes().times.last
    start = 0 if last is None else position_of_entry(segment, last)
    newest = -1 if last is None else last[0]
    if start is None or any(batch.max_timestamp > newest for batch in segment.headers(start)):
        rebuild_indexes(segment, "time index has no entry for the newest batch")


def scan_newest(segment: Segment) -> tuple[int, Offset]:
    """The largest timestamp and the last offset of its batch, from every batch."""
    newest, last_offset = -1, segment.base_offset
    for batch in segment.headers():
        if batch.max_timestamp > newest:
            newest, last_offset = batch.max_timestamp, batch.last_offset
    return newest, last_offset
