"""One segment: a stretch of a partition's log in one `.log` file, with its indexes.

Owns the file, the two indexes and what it knows of its newest batches. Never validates a batch,
never decides to roll, and never changes a byte it has written.

Most partitions of a broker are idle, so an unused segment is a few numbers: files and indexes are
opened on first use and can be let go at any time. A lookup trusts no index: the header found at
an index entry's position must bear the entry out, else the index is rebuilt from the log.
"""

from __future__ import annotations

import logging
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from ottla.log.files import Buffer, Disk, File, FileSlice
from ottla.log.offset_index import OffsetIndex
from ottla.log.sparse_index import CorruptIndex
from ottla.log.stored import HEADER_SIZE, StoredBatch, parse, walk_headers, walk_whole
from ottla.log.time_index import TimeIndex
from ottla.log.txn_index import AbortedTxn
from ottla.model.ids import Offset
from ottla.protocol.records.batch import CorruptBatch

logger = logging.getLogger(__name__)

LOG: Final = ".log"
INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TXN_INDEX: Final = ".txnindex"
SUFFIXES: Final = (LOG, INDEX, TIME_INDEX, TXN_INDEX)

MAX_RELATIVE_OFFSET: Final = 2**31 - 1
PEEK_BYTES: Final = 4_096
RECENT_BATCHES: Final = 128

# Offset, length, magic, last offset delta: all that a scan for an offset looks at.
_SCAN: Final = Struct(">qi4xb6xi")


class Mark(NamedTuple):
    """What a segment must know of one batch it is given."""

    first_offset: Offset
    last_offset: Offset
    max_timestamp: int
    size: int


def file_name(base_offset: Offset, kind: str) -> str:
    """The name all files of a segment share: its base offset in twenty digits."""
    return f"{base_offset:020d}{kind}"


class Segment:
    """The batches from `base_offset` on, in one file."""

    __slots__ = (
        "_disk",
        "_file",
        "_first_timestamp",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_offsets",
        "_recent_offsets",
        "_recent_positions",
        "_suffix",
        "_times",
        "_unindexed_bytes",
        "aborted",
        "base_offset",
        "created_ms",
        "dir",
        "jitter_ms",
        "size",
    )

    def __init__(
        self, disk: Disk, dir: Path, base_offset: Offset, *, size: int = 0, suffix: str = ""
    ) -> None:
        self._disk = disk
        self.dir = dir
        self.base_offset = base_offset
        self.size = size
        self.created_ms = 0
        self.jitter_ms = 0
        self._suffix = suffix
        self._file: File | None = None
        self._offsets: OffsetIndex | None = None
        self._times: TimeIndex | None = None
        self._unindexed_bytes = 0
        self._first_timestamp: int | None = None
        self._max_timestamp: int | None = None if size else -1
        self._max_timestamp_offset: Offset = base_offset
        self._recent_offsets: array[int] | None = None
        self._recent_positions: array[int] | None = None
        self.aborted: list[AbortedTxn] | None = None

    def __repr__(self) -> str:
        return f"Segment({self.dir.name}/{self.base_offset}{self._suffix}, {self.size} bytes)"

    def path(self, kind: str = LOG) -> Path:
        return self.dir / (file_name(self.base_offset, kind) + self._suffix)

    # Writing

    def append(self, buffers: Sequence[Buffer], marks: Sequence[Mark], interval_bytes: int) -> None:
        """Write batches that follow what is there; all of them, or an OSError and none."""
        file = self._file
        if file is None:
            file = self.file()
        file.append(buffers)
        for mark in marks:
            self._note(mark, interval_bytes)

    def _note(self, mark: Mark, interval_bytes: int) -> None:
        """Take in one batch that has been written at the end. Hot: benchmarks/log.py."""
        first_offset, last_offset, max_timestamp, size = mark
        position = self.size
        newest = self._max_timestamp
        if newest is None:
            newest = self.max_timestamp
        if not position:
            self._first_timestamp = max_timestamp
        if max_timestamp > newest:
            self._max_timestamp = newest = max_timestamp
            self._max_timestamp_offset = last_offset
        if self._unindexed_bytes > interval_bytes:
            self.offsets().append(last_offset - self.base_offset, position)
            self.times().append_risen(newest, self._max_timestamp_offset - self.base_offset)
            self._unindexed_bytes = 0
        self._unindexed_bytes += size
        self.size = position + size
        recent = self._recent_offsets
        if recent is None or self._recent_positions is None:
            self._recent_offsets = array("q", (first_offset,))
            self._recent_positions = array("q", (position,))
            return
        recent.append(first_offset)
        self._recent_positions.append(position)
        if len(recent) > RECENT_BATCHES:
            del recent[: RECENT_BATCHES // 2]
            del self._recent_positions[: RECENT_BATCHES // 2]

    def finish(self) -> None:
        """No more will be appended for now: the indexes are completed and written out."""
        if self.max_timestamp >= 0:
            self.times().append_risen(
                self.max_timestamp, self._max_timestamp_offset - self.base_offset
            )
        self.offsets().write()
        self.times().write()

    def fits(self, last_offset: Offset) -> bool:
        return 0 <= last_offset - self.base_offset <= MAX_RELATIVE_OFFSET

    def index_is_full(self, limit_bytes: int) -> bool:
        """One more entry, and the last one at closing, must still fit into `segment.index.bytes`.

        An index that was not opened since the segment was loaded has room: it is opened by the
        first entry that is added to it, and one entry more than the limit is no harm.
        """
        offsets, times = self._offsets, self._times
        if offsets is None or times is None:
            return False
        return (
            offsets.size_bytes + offsets.ENTRY.size > limit_bytes
            or times.size_bytes + 2 * times.ENTRY.size > limit_bytes
        )

    # Reading

    def position_of(self, offset: Offset) -> int:
        """Where the first batch begins that ends at `offset` or later; `size` if there is none."""
        recent = self._recent_offsets
        if recent is not None and self._recent_positions is not None and offset >= recent[0]:
            at = bisect_left(recent, offset)
            if at < len(recent) and recent[at] == offset:
                return self._recent_positions[at]
            return self._scan(offset, self._recent_positions[at - 1])
        return self._position_by_index(offset)

    def _position_by_index(self, offset: Offset) -> int:
        entry = self.offsets().floor(offset - self.base_offset)
        if entry is None:
            return self._scan(offset, 0)
        relative, position = entry
        if self._bears_out(self.base_offset + relative, position):
            return self._scan(offset, position)
        self.rebuild_indexes("an offset index entry points at no batch of its offset")
        return self._position_by_index(offset)

    def _bears_out(self, last_offset: Offset, position: int) -> bool:
        """Whether a batch at `position` may be the one (or the first of the set) indexed."""
        try:
            batch = self.batch_at(position)
        except CorruptBatch:
            return False
        return self.base_offset <= batch.base_offset <= last_offset

    def _scan(self, offset: Offset, position: int) -> int:
        """Step from batch to batch, from one that begins at `position`. Hot: benchmarks/log.py."""
        file, size, unpack = self.file(), self.size, _SCAN.unpack_from
        while position < size:
            chunk = file.pread(PEEK_BYTES, position)
            at, usable = 0, len(chunk) - HEADER_SIZE
            if usable < 0 or position + at + HEADER_SIZE > size:
                return self._scan_slowly(offset, position)
            while at <= usable:
                base, length, magic, delta = unpack(chunk, at)
                if magic != 2:
                    return self._scan_slowly(offset, position + at)
                if base + delta >= offset:
                    return position + at
                if length < 0:
                    raise CorruptBatch(f"entry has length {length}", position + at)
                at += length + 12
                if base + delta + 1 == offset:
                    return int(min(position + at, size))
            position += at
        return size

    def _scan_slowly(self, offset: Offset, position: int) -> int:
        """The same for old formats, and for a tail too short for a v2 header."""
        for batch in walk_headers(self.file(), position, self.size):
            if batch.last_offset >= offset:
                return batch.position
        return self.size

    def batch_at(self, position: int) -> StoredBatch:
        """The batch that begins at `position`; CorruptBatch where none does."""
        batch = parse(self.file().pread(HEADER_SIZE, position), 0, position)
        if batch.next_position > self.size:
            raise CorruptBatch("entry runs past the end", position)
        return batch

    def slice(self, position: int, size: int) -> FileSlice:
        return self.file().slice(position, size)

    def headers(self, start: int = 0, end: int | None = None) -> Iterator[StoredBatch]:
        """The batches from a position on, without their bytes."""
        return walk_headers(self.file(), start, self.size if end is None else end)

    def batches(
        self, start: int = 0, end: int | None = None
    ) -> Iterator[tuple[StoredBatch, memoryview]]:
        """The batches from a position on, with their bytes."""
        return walk_whole(self.file(), start, self.size if end is None else end)

    # Time

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp of any batch; -1 when none has one."""
        if self._max_timestamp is None:
            self._load_max_timestamp()
        assert self._max_timestamp is not None
        return self._max_timestamp

    @property
    def max_timestamp_offset(self) -> Offset:
        """The last offset of the batch that brought `max_timestamp`."""
        return self._max_timestamp_offset if self.max_timestamp >= 0 else self.base_offset

    @property
    def first_timestamp(self) -> int:
        """The largest timestamp of the first batch, from which time-based rolling counts."""
        if self._first_timestamp is None:
            self._first_timestamp = self.batch_at(0).max_timestamp if self.size else -1
        return self._first_timestamp

    def largest_timestamp(self) -> int:
        """For retention: of its batches, or of the file where they have none."""
        newest = self.max_timestamp
        return newest if newest >= 0 else self._disk.mtime_ms(self.path())

    def position_for_timestamp(self, timestamp: int) -> int:
        """A position before which no batch is as new as `timestamp`."""
        entry = self.times().floor(timestamp)
        if entry is None:
            return 0
        stamp, relative = entry
        position = self.position_of(self.base_offset + relative)
        if position < self.size and self.batch_at(position).max_timestamp == stamp:
            return position
        self.rebuild_indexes("a time index entry names a batch of another time")
        return self.position_for_timestamp(timestamp)

    def _load_max_timestamp(self) -> None:
        last = self.times().last
        if last is None:
            self._scan_max_timestamp(0)
            return
        stamp, relative = last
        position = self.position_of(self.base_offset + relative)
        if position >= self.size or self.batch_at(position).max_timestamp != stamp:
            self.rebuild_indexes("the last time index entry names a batch of another time")
            return
        self._max_timestamp = stamp
        self._max_timestamp_offset = self.base_offset + relative

    def _scan_max_timestamp(self, position: int) -> None:
        newest, at = -1, self.base_offset
        for batch in self.headers(position):
            if batch.max_timestamp > newest:
                newest, at = batch.max_timestamp, batch.last_offset
        self._max_timestamp, self._max_timestamp_offset = newest, at

    # Opening, closing, cutting

    def file(self) -> File:
        if self._file is None:
            self._file = self._disk.open_append(self.path())
        return self._file

    def offsets(self) -> OffsetIndex:
        if self._offsets is None:
            index = OffsetIndex(self._disk, self.path(INDEX))
            self._offsets = index
            self._load(index)
        return self._offsets

    def times(self) -> TimeIndex:
        if self._times is None:
            index = TimeIndex(self._disk, self.path(TIME_INDEX))
            self._times = index
            self._load(index)
        return self._times

    def _load(self, index: OffsetIndex | TimeIndex) -> None:
        try:
            index.load()
        except CorruptIndex as fault:
            self.rebuild_indexes(str(fault))

    def rebuild_indexes(self, reason: str, interval_bytes: int = 4_096) -> None:
        """Derive both indexes again from the batches, as appending them did."""
        logger.warning("%r: indexes rebuilt: %s", self, reason)
        size = self.size
        self.reset_indexes()
        for batch in walk_headers(self.file(), 0, size):
            self.note_stored(batch, interval_bytes)
        self.finish()

    def reset_indexes(self) -> None:
        """Forget what is known of the batches; the walk that follows tells it again."""
        for kind in (INDEX, TIME_INDEX):
            self._disk.remove(self.path(kind))
        self._close_indexes()
        self._offsets = OffsetIndex(self._disk, self.path(INDEX))
        self._times = TimeIndex(self._disk, self.path(TIME_INDEX))
        self.size = 0
        self._unindexed_bytes = 0
        self._first_timestamp, self._max_timestamp = None, -1
        self._max_timestamp_offset = self.base_offset
        self._recent_offsets = self._recent_positions = None

    def note_stored(self, batch: StoredBatch, interval_bytes: int) -> None:
        """Take in a batch that is in the file already, the next one after the last."""
        self._note(
            Mark(batch.base_offset, batch.last_offset, batch.max_timestamp, batch.size),
            interval_bytes,
        )

    def load_end(self) -> Offset:
        """The offset after the last batch, found from the last index entry on (a clean start)."""
        last = self.offsets().last
        start = 0 if last is None else last[1]
        expected = None if last is None else self.base_offset + last[0]
        end, seen = self.base_offset, expected is None
        try:
            for batch in self.headers(start):
                end = batch.last_offset + 1
                seen = seen or batch.last_offset == expected
                self._unindexed_bytes = self.size - batch.position
        except CorruptBatch:
            seen = False
        if seen:
            return end
        self.rebuild_indexes("the last offset index entry points at no batch of its offset")
        return self.load_end()

    def truncate_to(self, offset: Offset) -> int:
        """Drop batches from the one that holds `offset` on; the number of bytes that went."""
        position = self.position_of(offset)
        gone = self.size - position
        if gone:
            self.file().truncate(position)
            self.size = position
            self.offsets().cut_from(offset - self.base_offset)
            self.times().cut_from(offset - self.base_offset)
            self._recent_offsets = self._recent_positions = None
            self._first_timestamp = None
            self._unindexed_bytes = 0
            self._scan_max_timestamp(0)
        return gone

    def release(self) -> None:
        """Let go of files and indexes; they come back on use. Unwritten entries are written."""
        if self._offsets is not None:
            self._offsets.write()
        if self._times is not None:
            self._times.write()
        self._close_indexes()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _close_indexes(self) -> None:
        for index in (self._offsets, self._times):
            if index is not None:
                index.close()
        self._offsets = self._times = None

    def sync_data(self) -> None:
        self.file().sync()

    def sync_indexes(self) -> None:
        self.offsets().sync()
        self.times().sync()

    def moved(self, *, dir: Path | None = None, suffix: str | None = None) -> None:
        """Go on under another folder or suffix. Whoever renamed the files calls this after."""
        self.release()
        self.dir = self.dir if dir is None else dir
        self._suffix = self._suffix if suffix is None else suffix

    def rename(self, suffix: str) -> None:
        """Give all its files another suffix, the `.log` last: it decides which segments exist."""
        self.release()
        for kind in reversed(SUFFIXES):
            old = self.path(kind)
            if self._disk.exists(old):
                self._disk.rename(old, self.dir / (file_name(self.base_offset, kind) + suffix))
        self._suffix = suffix

    def create_if_missing(self, kind: str) -> None:
        """Have a file of this kind, if only an empty one."""
        self._disk.open_append(self.path(kind)).close()

    def delete(self) -> None:
        """Remove its files."""
        paths = [self.path(kind) for kind in reversed(SUFFIXES)]
        self._close_indexes()
        if self._file is not None:
            self._file.close()
            self._file = None
        for path in paths:
            self._disk.remove(path)
