"""Keeping what a segment derives from its batches true: at a start, after a cut, after damage.

Owns the walks that tell a segment again what appending told it. Never judges a batch beyond its
header: `recovery` does, where a segment may be torn.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.log.segment.indexes import INDEX, TIME_INDEX
from ottla.log.segment.search import borne_out
from ottla.log.stored_batch import StoredBatch, walk_headers
from ottla.model.ids import Offset
from ottla.protocol.records.batch import CorruptBatch

if TYPE_CHECKING:
    from ottla.log.segment.segment import Segment

logger = logging.getLogger(__name__)

INTERVAL_BYTES: Final = 4_096  # between index entries, where no topic setting is at hand


class SegmentEnd(NamedTuple):
    """The offset after a segment's last batch, and the leader epoch of that batch (-1: none)."""

    offset: Offset
    leader_epoch: int


def rebuild_indexes(segment: Segment, reason: str, interval_bytes: int = INTERVAL_BYTES) -> None:
    """Derive both indexes again from the batches, as appending them did."""
    logger.warning("%r: indexes rebuilt: %s", segment, reason)
    size = segment.size
    reset_indexes(segment)
    try:
        for batch in walk_headers(segment.file(), 0, size):
            note_stored(segment, batch, interval_bytes)
    finally:
        segment.size = size  # all of it is still there, good or bad
    segment.finish()


def reset_indexes(segment: Segment) -> None:
    """Forget what is known of the batches; the walk that follows tells it again."""
    segment.release(write=False)
    for kind in (INDEX, TIME_INDEX):
        segment.disk.remove(segment.path(kind))
    segment.recent = None
    segment.size = segment.unindexed_bytes = segment.index_bytes = 0
    segment.known_first_timestamp = None
    segment.known_max_timestamp, segment.known_max_offset = -1, segment.base_offset


def note_stored(segment: Segment, batch: StoredBatch, interval_bytes: int) -> None:
    """Take in a batch that is in the file already, the next one after the last."""
    segment.note(
        batch.base_offset, batch.last_offset, batch.max_timestamp, batch.size, interval_bytes
    )


def load_end(segment: Segment) -> SegmentEnd:
    """Where it ends, found from the last index entry on (a clean start)."""
    last = segment.indexes().offsets.last
    start, expected = (0, None) if last is None else (last[1], segment.base_offset + last[0])
    end, seen = SegmentEnd(segment.base_offset, -1), expected is None
    try:
        for batch in segment.headers(start):
            end = SegmentEnd(batch.last_offset + 1, batch.leader_epoch)
            seen = seen or batch.last_offset == expected
    except CorruptBatch:
        if expected is None:
            raise
        seen = False
    if seen:
        segment.unindexed_bytes = segment.size - start
        return end
    rebuild_indexes(segment, "the last offset index entry points at no batch of its offset")
    return load_end(segment)


def load_newest(segment: Segment) -> None:
    """The largest timestamp, from the last time index entry, which every closed segment has."""
    last = segment.indexes().times.last
    if last is None:
        scan_newest(segment)
    elif borne_out(segment, last) is None:
        rebuild_indexes(segment, "the last time index entry names a batch of another time")
    else:
        segment.known_max_timestamp = last[0]
        segment.known_max_offset = segment.base_offset + last[1]


def check_newest(segment: Segment) -> None:
    """Make sure that the time index reaches the end: of one not synced the last may be lost."""
    last = segment.indexes().times.last
    start = 0 if last is None else borne_out(segment, last)
    newest = -1 if last is None else last[0]
    if start is None or any(batch.max_timestamp > newest for batch in segment.headers(start)):
        rebuild_indexes(segment, "the time index does not reach the end")


def scan_newest(segment: Segment) -> None:
    """The largest timestamp, from every batch."""
    newest, at = -1, segment.base_offset
    for batch in segment.headers():
        if batch.max_timestamp > newest:
            newest, at = batch.max_timestamp, batch.last_offset
    segment.known_max_timestamp, segment.known_max_offset = newest, at


def largest_timestamp(segment: Segment) -> int:
    """For retention: of its batches, or of the file where they have none."""
    newest = segment.max_timestamp
    return newest if newest > 0 else segment.disk.mtime_ms(segment.path())


def drop_last(segment: Segment, offset: Offset) -> None:
    """Drop the last batch, which begins at `offset` and holds no records: no time changes."""
    position = segment.position_of(offset)
    segment.file().truncate(position)
    segment.size = position
    segment.indexes().cut_from(offset - segment.base_offset)
    segment.recent = None
    segment.known_first_timestamp = None


def truncate_to(segment: Segment, offset: Offset) -> None:
    """Drop batches from the one that holds `offset` on."""
    position = segment.position_of(offset)
    if position == segment.size:
        return
    segment.file().truncate(position)
    segment.size = position
    segment.indexes().cut_from(offset - segment.base_offset)
    segment.recent = None
    segment.known_first_timestamp = None
    segment.unindexed_bytes = 0
    segment.aborted = None
    scan_newest(segment)
