"""Finding a batch in a segment: by its offset, or by time.

Owns the way from an index entry to a batch. Trusts no index: the header at an entry's position must
match it, else the indexes are rebuilt from the log and the search is repeated.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from ottla.log.index.sparse_index import CorruptIndex
from ottla.log.segment.index_rebuild import rebuild_indexes
from ottla.log.stored_batch import HEADER_SIZE, walk_headers
from ottla.model.ids import Offset
from ottla.protocol.records.batch import OVERHEAD, CorruptBatch

if TYPE_CHECKING:
    from ottla.log.segment.segment import Segment

PEEK_BYTES: Final = 4_096

# Offset, length, magic, last offset delta: all that a scan for an offset looks at.
_SCAN: Final = Struct(">qi4xb6xi")


def position_of(segment: Segment, offset: Offset) -> int:
    """Where the first batch begins that ends at `offset` or later; `size` if there is none."""
    recent = segment.recent
    floor = None if recent is None else recent.floor(offset)
    if floor is not None:
        return floor[1] if floor[0] == offset else _scan(segment, offset, floor[1])
    try:
        entry = segment.indexes().offsets.floor(offset - segment.base_offset)
        if entry is None:
            return _scan(segment, offset, 0)
        return _scan(segment, offset, entry[1], segment.base_offset + entry[0])
    except CorruptIndex as fault:
        rebuild_indexes(segment, str(fault))
        return position_of(segment, offset)


def position_for_timestamp(segment: Segment, timestamp: int) -> int:
    """A position before which no batch is as new as `timestamp`."""
    try:
        entry = segment.indexes().times.floor(timestamp - 1)
        if entry is None:
            return 0
        position = position_of_entry(segment, entry)
        if position is not None:
            return position
        reason = "time index entry does not match its batch"
    except CorruptIndex as fault:
        reason = str(fault)
    rebuild_indexes(segment, reason)
    return position_for_timestamp(segment, timestamp)


def batch_size_at(segment: Segment, position: int) -> int:
    """The size of the batch that begins at `position`; the caller knows that one does."""
    return OVERHEAD + int.from_bytes(segment.file().pread(4, position + 8), "big")


def position_of_entry(segment: Segment, entry: tuple[int, int]) -> int | None:
    """Where the batch begins that a time index entry names, if it is the one."""
    timestamp, last_offset = entry[0], segment.base_offset + entry[1]
    position = position_of(segment, last_offset)
    if position < segment.size:
        batch = segment.batch_at(position)
        if batch.max_timestamp == timestamp and batch.last_offset == last_offset:
            return position
    return None


def _scan(segment: Segment, offset: Offset, position: int, indexed: Offset | None = None) -> int:
    """Step from the batch at `position` to the one wanted. Hot: benchmarks/log.py.

    `indexed` is the offset an index entry promised there: CorruptIndex if it is not.
    """
    file, size, unpack = segment.file(), segment.size, _SCAN.unpack_from
    while position < size:
        chunk = file.pread(PEEK_BYTES, position)
        at, usable = 0, min(len(chunk), size - position) - HEADER_SIZE
        while at <= usable:
            base, length, magic, delta = unpack(chunk, at)
            if magic != 2 or length < 0:
                break
            if indexed is not None and not segment.base_offset <= base <= indexed:
                raise CorruptIndex("offset index entry does not match its batch")
            indexed = None
            if base + delta >= offset:
                return position + at
            at += length + OVERHEAD
            if base + delta + 1 == offset:
                return int(min(position + at, size))
        if at <= usable or usable < 0:
            return _scan_slowly(segment, offset, position + at, indexed)
        position += at
    if indexed is not None:
        raise CorruptIndex("offset index entry points past the end of the log file")
    return size


def _scan_slowly(segment: Segment, offset: Offset, position: int, indexed: Offset | None) -> int:
    """The same for old formats, and for whatever is no batch."""
    try:
        for batch in walk_headers(segment.file(), position, segment.size):
            if indexed is not None and not segment.base_offset <= batch.base_offset <= indexed:
                raise CorruptIndex("offset index entry does not match its batch")
            indexed = None
            if batch.last_offset >= offset:
                return batch.position
    except CorruptBatch:
        if indexed is None:
            raise
        raise CorruptIndex("offset index entry does not point at a batch") from None
    return segment.size
