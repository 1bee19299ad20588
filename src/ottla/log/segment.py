"""One segment: a stretch of a partition's log in one `.log` file, with its indexes.

Owns the file, the two indexes and what it knows of its newest batches. Never validates a batch,
never decides to roll, and never changes a byte it has written.

Most partitions of a broker are idle, so an unused segment is a few numbers: files and indexes are
opened on first use and can be let go at any time. A lookup trusts no index: the header found at
an index entry's position must bear the entry out, else the indexes are rebuilt from the log.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from ottla.log.files import Buffer, Disk, File, FileSlice
from ottla.log.recent_batches import RecentBatches
from ottla.log.segment_indexes import INDEX, TIME_INDEX, SegmentIndexes
from ottla.log.sparse_index import CorruptIndex
from ottla.log.stored import HEADER_SIZE, StoredBatch, parse, walk_headers, walk_whole
from ottla.log.txn_index import AbortedTxn
from ottla.model.ids import Offset
from ottla.protocol.records.batch import OVERHEAD, CorruptBatch

__all__ = ["INDEX", "LOG", "SUFFIXES", "TIME_INDEX", "TXN_INDEX", "Mark", "Segment", "file_name"]

logger = logging.getLogger(__name__)

LOG: Final = ".log"
TXN_INDEX: Final = ".txnindex"
SUFFIXES: Final = (LOG, INDEX, TIME_INDEX, TXN_INDEX)

MAX_RELATIVE_OFFSET: Final = 2**31 - 1
INTERVAL_BYTES: Final = 4_096  # between index entries, where no topic setting is at hand
PEEK_BYTES: Final = 4_096

# Offset, length, magic, last offset delta: all that a scan for an offset looks at.
_SCAN: Final = Struct(">qi4xb6xi")


class Mark(NamedTuple):
    """What a segment must know of one batch it is given."""

    first_offset: Offset
    last_offset: Offset
    max_timestamp: int
    size: int


class End(NamedTuple):
    """The offset after a segment's last batch, and the leader epoch of that batch (-1: none)."""

    offset: Offset
    leader_epoch: int


def file_name(base_offset: Offset, kind: str) -> str:
    """The name all files of a segment share: its base offset in twenty digits."""
    return f"{base_offset:020d}{kind}"


class Segment:
    """The batches from `base_offset` on, in one file."""

    __slots__ = (
        "_disk",
        "_file",
        "_first_timestamp",
        "_indexes",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_recent",
        "_suffix",
        "_unindexed_bytes",
        "aborted",
        "base_offset",
        "created_ms",
        "dir",
        "index_bytes",
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
        self.index_bytes = 0  # of the larger index, as of the last entry added
        self.aborted: list[AbortedTxn] | None = None  # None until somebody asked
        self._suffix = suffix
        self._file: File | None = None
        self._indexes: SegmentIndexes | None = None
        self._recent: RecentBatches | None = None
        self._unindexed_bytes = 0
        self._first_timestamp: int | None = None
        self._max_timestamp: int | None = None if size else -1
        self._max_timestamp_offset: Offset = base_offset

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
        if self._max_timestamp is None:
            self._load_max_timestamp()
        file.append(buffers)
        for mark in marks:
            self._note(mark, interval_bytes)

    def _note(self, mark: Mark, interval_bytes: int) -> None:
        """Take in one batch that has been written at the end. Hot: benchmarks/log.py."""
        first_offset, last_offset, max_timestamp, size = mark
        position = self.size
        if not position:
            self._first_timestamp = max_timestamp
        newest = self._max_timestamp
        assert newest is not None
        if max_timestamp > newest:
            self._max_timestamp = max_timestamp
            self._max_timestamp_offset = last_offset
        unindexed = self._unindexed_bytes
        if unindexed > interval_bytes:
            indexes = self.indexes()
            indexes.add(last_offset - self.base_offset, position, self._newest())
            self.index_bytes = indexes.largest_bytes
            unindexed = 0
        self._unindexed_bytes = unindexed + size
        self.size = position + size
        recent = self._recent
        if recent is None:
            recent = self._recent = RecentBatches()
        recent.note(first_offset, position)

    def note_stored(self, batch: StoredBatch, interval_bytes: int) -> None:
        """Take in a batch that is in the file already, the next one after the last."""
        mark = Mark(batch.base_offset, batch.last_offset, batch.max_timestamp, batch.size)
        self._note(mark, interval_bytes)

    def finish(self) -> None:
        """No more will be appended for now: the indexes are completed and written out."""
        if self.max_timestamp >= 0:
            self.indexes().times.append_risen(*self._newest())
        self.indexes().write()
        self.indexes().create()

    def _newest(self) -> tuple[int, int]:
        """A time index entry for what there is now."""
        return self.max_timestamp, self._max_timestamp_offset - self.base_offset

    # Reading

    def position_of(self, offset: Offset) -> int:
        """Where the first batch begins that ends at `offset` or later; `size` if there is none."""
        recent = self._recent
        known = None if recent is None else recent.floor(offset)
        if known is not None:
            return known[1] if known[0] == offset else self._scan(offset, known[1])
        try:
            entry = self.indexes().offsets.floor(offset - self.base_offset)
            if entry is None:
                return self._scan(offset, 0)
            return self._scan(offset, entry[1], self.base_offset + entry[0])
        except CorruptIndex as fault:
            self.rebuild_indexes(str(fault))
            return self.position_of(offset)

    def _scan(self, offset: Offset, position: int, indexed: Offset | None = None) -> int:
        """Step from the batch at `position` to the one wanted. Hot: benchmarks/log.py.

        `indexed` is the offset an index entry promised there: CorruptIndex if it is not.
        """
        file, size, unpack = self.file(), self.size, _SCAN.unpack_from
        while position < size:
            chunk = file.pread(PEEK_BYTES, position)
            at, usable = 0, min(len(chunk), size - position) - HEADER_SIZE
            while at <= usable:
                base, length, magic, delta = unpack(chunk, at)
                if magic != 2 or length < 0:
                    break
                if indexed is not None and not self.base_offset <= base <= indexed:
                    raise CorruptIndex("an offset index entry points at no batch of its offset")
                indexed = None
                if base + delta >= offset:
                    return position + at
                at += length + OVERHEAD
                if base + delta + 1 == offset:
                    return int(min(position + at, size))
            if at <= usable or usable < 0:
                return self._scan_slowly(offset, position + at, indexed)
            position += at
        if indexed is not None:
            raise CorruptIndex("an offset index entry points past the end")
        return size

    def _scan_slowly(self, offset: Offset, position: int, indexed: Offset | None) -> int:
        """The same for old formats, and for whatever is no batch."""
        try:
            for batch in walk_headers(self.file(), position, self.size):
                if indexed is not None and not self.base_offset <= batch.base_offset <= indexed:
                    raise CorruptIndex("an offset index entry points at no batch of its offset")
                indexed = None
                if batch.last_offset >= offset:
                    return batch.position
        except CorruptBatch:
            if indexed is None:
                raise
            raise CorruptIndex("an offset index entry points at no batch") from None
        return self.size

    def batch_at(self, position: int) -> StoredBatch:
        """The batch that begins at `position`; CorruptBatch where none does."""
        batch = parse(self.file().pread(HEADER_SIZE, position), 0, position)
        if batch.next_position > self.size:
            raise CorruptBatch("entry runs past the end", position)
        return batch

    def batch_size_at(self, position: int) -> int:
        """The size of the batch that begins at `position`, which is known to be one."""
        return OVERHEAD + int.from_bytes(self.file().pread(4, position + 8), "big")

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
        stamp = self._first_timestamp
        if stamp is None:
            stamp = self._first_timestamp = self.batch_at(0).max_timestamp if self.size else -1
        return stamp

    def largest_timestamp(self) -> int:
        """For retention: of its batches, or of the file where they have none."""
        newest = self.max_timestamp
        return newest if newest > 0 else self._disk.mtime_ms(self.path())

    def position_for_timestamp(self, timestamp: int) -> int:
        """A position before which no batch is as new as `timestamp`."""
        try:
            entry = self.indexes().times.floor(timestamp - 1)
            if entry is None:
                return 0
            position = self._borne_out(entry)
            if position is not None:
                return position
            reason = "a time index entry names a batch of another time"
        except CorruptIndex as fault:
            reason = str(fault)
        self.rebuild_indexes(reason)
        return self.position_for_timestamp(timestamp)

    def _borne_out(self, entry: tuple[int, int]) -> int | None:
        """Where the batch begins that a time index entry names, if it is the one."""
        last_offset = self.base_offset + entry[1]
        position = self.position_of(last_offset)
        if position < self.size:
            batch = self.batch_at(position)
            if batch.max_timestamp == entry[0] and batch.last_offset == last_offset:
                return position
        return None

    def _load_max_timestamp(self) -> None:
        """From the last entry of the time index, which every closed segment has, if it is true."""
        last = self.indexes().times.last
        if last is None:
            self._scan_max_timestamp()
        elif self._borne_out(last) is None:
            self.rebuild_indexes("the last time index entry names a batch of another time")
        else:
            self._max_timestamp = last[0]
            self._max_timestamp_offset = self.base_offset + last[1]

    def _scan_max_timestamp(self) -> None:
        newest, at = -1, self.base_offset
        for batch in self.headers():
            if batch.max_timestamp > newest:
                newest, at = batch.max_timestamp, batch.last_offset
        self._max_timestamp, self._max_timestamp_offset = newest, at

    # Files and indexes

    def file(self) -> File:
        if self._file is None:
            self._file = self._disk.open_append(self.path())
        return self._file

    def indexes(self) -> SegmentIndexes:
        if self._indexes is None:
            self._indexes = indexes = self._new_indexes()
            try:
                indexes.load()
            except CorruptIndex as fault:
                self.rebuild_indexes(str(fault))
        return self._indexes

    def _new_indexes(self) -> SegmentIndexes:
        return SegmentIndexes(self._disk, self.path(INDEX), self.path(TIME_INDEX))

    def rebuild_indexes(self, reason: str, interval_bytes: int = INTERVAL_BYTES) -> None:
        """Derive both indexes again from the batches, as appending them did."""
        logger.warning("%r: indexes rebuilt: %s", self, reason)
        size = self.size
        self.reset_indexes()
        try:
            for batch in walk_headers(self.file(), 0, size):
                self.note_stored(batch, interval_bytes)
        finally:
            self.size = size  # all of it is still there, good or bad
        self.finish()

    def reset_indexes(self) -> None:
        """Forget what is known of the batches; the walk that follows tells it again."""
        indexes = self._new_indexes()
        indexes.remove()
        self._indexes = indexes
        self._recent = None
        self.size = self._unindexed_bytes = self.index_bytes = 0
        self._first_timestamp, self._max_timestamp = None, -1
        self._max_timestamp_offset = self.base_offset

    def load_end(self) -> End:
        """Where it ends, found from the last index entry on (a clean start)."""
        last = self.indexes().offsets.last
        start, expected = (0, None) if last is None else (last[1], self.base_offset + last[0])
        end, seen = End(self.base_offset, -1), expected is None
        try:
            for batch in self.headers(start):
                end = End(batch.last_offset + 1, batch.leader_epoch)
                seen = seen or batch.last_offset == expected
        except CorruptBatch:
            if expected is None:
                raise
            seen = False
        if seen:
            self._unindexed_bytes = self.size - start
            return end
        self.rebuild_indexes("the last offset index entry points at no batch of its offset")
        return self.load_end()

    def truncate_to(self, offset: Offset) -> None:
        """Drop batches from the one that holds `offset` on."""
        position = self.position_of(offset)
        if position == self.size:
            return
        self.file().truncate(position)
        self.size = position
        self.indexes().cut_from(offset - self.base_offset)
        self._recent = None
        self._first_timestamp = None
        self._unindexed_bytes = 0
        self.aborted = None
        self._scan_max_timestamp()

    def release(self) -> None:
        """Let go of files and indexes; they come back on use. Unwritten entries are written."""
        if self._indexes is not None:
            self._indexes.write()
        self._let_go()

    def _let_go(self) -> None:
        if self._indexes is not None:
            self._indexes.close()
            self._indexes = None
        if self._file is not None:
            self._file.close()
            self._file = None

    def sync_data(self) -> None:
        self.file().sync()

    def sync_indexes(self) -> None:
        self.indexes().sync()

    def moved(self, dir: Path) -> None:
        """The folder was renamed; nothing of it may be open."""
        self.dir = dir

    def rename(self, suffix: str) -> None:
        """Give all its files another suffix, the `.log` last: it decides which segments exist."""
        self.release()
        for kind in reversed(SUFFIXES):
            old = self.path(kind)
            if self._disk.exists(old):
                self._disk.rename(old, self.dir / (file_name(self.base_offset, kind) + suffix))
        self._suffix = suffix

    def delete(self) -> None:
        """Remove its files, the `.log` last."""
        self._let_go()
        for kind in reversed(SUFFIXES):
            self._disk.remove(self.path(kind))
