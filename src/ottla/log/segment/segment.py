"""One segment: a stretch of a partition's log in one `.log` file, with its indexes.

Owns the file, the two indexes and what it knows of its newest batches. Never validates a batch,
never decides to roll, and never changes a byte it has written.

Most partitions of a broker are idle, so an unused segment is a few numbers: files and indexes are
opened on first use and can be released at any time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from ottla.log.files import Buffer, Disk, File
from ottla.log.index.sparse_index import CorruptIndex
from ottla.log.index.txn_index import AbortedTxn
from ottla.log.segment.index_rebuild import rebuild_indexes
from ottla.log.segment.indexes import INDEX, TIME_INDEX, RecentBatches, SegmentIndexes
from ottla.log.segment.search import position_of
from ottla.log.segment.segment_end import load_newest, scan_newest
from ottla.log.stored_batch import HEADER_SIZE, StoredBatch, parse, walk_headers
from ottla.model.clock import WallMs
from ottla.model.ids import Offset
from ottla.protocol.records.batch import CorruptBatch

LOG: Final = ".log"
TXN_INDEX: Final = ".txnindex"
SUFFIXES: Final = (LOG, INDEX, TIME_INDEX, TXN_INDEX)


def file_name(base_offset: Offset, kind: str) -> str:
    """The name all files of a segment share: its base offset in twenty digits."""
    return f"{base_offset:020d}{kind}"


class SegmentFiles:
    """Where the files of one segment lie, and under which names."""

    __slots__ = ("_base_offset", "dir", "disk", "suffix")

    def __init__(self, disk: Disk, dir: Path, base_offset: Offset, suffix: str) -> None:
        self.disk = disk
        self.dir = dir
        self.suffix = suffix  # after the kind: `.cleaned`, `.swap`, `.deleted` or nothing
        self._base_offset = base_offset

    def path(self, kind: str = LOG) -> Path:
        return self.dir / (file_name(self._base_offset, kind) + self.suffix)

    def open_log(self) -> File:
        return self.disk.open_append(self.path())

    def modified_ms(self) -> int:
        return self.disk.mtime_ms(self.path())

    def rename(self, suffix: str) -> None:
        """Give all files another suffix. None of them may be open for writing."""
        for kind in reversed(SUFFIXES):
            old = self.path(kind)
            if self.disk.exists(old):
                self.disk.rename(old, self.dir / (file_name(self._base_offset, kind) + suffix))
        self.suffix = suffix

    def delete(self, *kinds: str) -> None:
        for kind in reversed(kinds):
            self.disk.remove(self.path(kind))


__all__ = [
    "INDEX",
    "LOG",
    "MAX_RELATIVE_OFFSET",
    "SUFFIXES",
    "TIME_INDEX",
    "TXN_INDEX",
    "Segment",
    "SegmentPosition",
    "file_name",
]

MAX_RELATIVE_OFFSET: Final = 2**31 - 1


class SegmentPosition(NamedTuple):
    """What a segment must know of one batch it is given."""

    first_offset: Offset
    last_offset: Offset
    max_timestamp: int
    size: int


class Segment:
    """The batches from `base_offset` on, in one file."""

    __slots__ = (
        "_file",
        "_indexes",
        "aborted",
        "base_offset",
        "created_ms",
        "files",
        "index_bytes",
        "jitter_ms",
        "known_first_timestamp",
        "known_max_offset",
        "known_max_timestamp",
        "recent",
        "size",
        "unindexed_bytes",
    )

    def __init__(
        self, disk: Disk, dir: Path, base_offset: Offset, *, size: int = 0, suffix: str = ""
    ) -> None:
        self.files = SegmentFiles(disk, dir, base_offset, suffix)
        self.base_offset = base_offset
        self.size = size
        self.created_ms = WallMs(0)
        self.jitter_ms = 0
        self.index_bytes = 0  # of the larger index, as of the last entry added
        self.unindexed_bytes = 0  # appended since the last index entry
        self.aborted: list[AbortedTxn] | None = None  # None until first used
        self.recent: RecentBatches | None = None
        self.known_first_timestamp: int | None = None
        self.known_max_timestamp: int | None = None if size else -1
        self.known_max_offset: Offset = base_offset  # the last of the batch that brought it
        self._file: File | None = None
        self._indexes: SegmentIndexes | None = None

    def __repr__(self) -> str:
        files = self.files
        return f"Segment({files.dir.name}/{self.base_offset}{files.suffix}, {self.size} bytes)"

    # Writing

    def append(
        self, buffers: Sequence[Buffer], marks: Sequence[SegmentPosition], interval_bytes: int
    ) -> None:
        """Write batches that follow what is there; all of them, or an OSError and none."""
        file = self._file
        if file is None:
            file = self.file()
        if self.known_max_timestamp is None:
            self.known_max_timestamp, self.known_max_offset = load_newest(self)
        unindexed = self.unindexed_bytes
        if len(marks) > 1:
            unindexed += sum(mark.size for mark in marks[:-1])
        if unindexed > interval_bytes:
            self.indexes()  # opened before: a batch that is in the log must be recorded
        file.append(buffers)
        for first_offset, last_offset, max_timestamp, size in marks:
            self.record_batch(first_offset, last_offset, max_timestamp, size, interval_bytes)

    def record_batch(
        self,
        first_offset: Offset,
        last_offset: Offset,
        max_timestamp: int,
        size: int,
        interval_bytes: int,
    ) -> None:
        """Update size, timestamps and indexes for a batch written at the end.

        Hot: benchmarks/log.py.
        """
        position = self.size
        if not position:
            self.known_first_timestamp = max_timestamp
        newest = self.known_max_timestamp
        assert newest is not None
        if max_timestamp > newest:
            self.known_max_timestamp = max_timestamp
            self.known_max_offset = last_offset
        unindexed = self.unindexed_bytes
        if unindexed > interval_bytes:
            indexes = self.indexes()
            indexes.add(last_offset - self.base_offset, position, self._newest())
            self.index_bytes = indexes.largest_bytes
            unindexed = 0
        self.unindexed_bytes = unindexed + size
        self.size = position + size
        recent = self.recent
        if recent is None:
            recent = self.recent = RecentBatches()
        recent.add(first_offset, position)

    def finish(self) -> None:
        """No more will be appended for now: the indexes are completed and written out."""
        indexes = self.indexes()
        if self.max_timestamp >= 0:
            indexes = self.indexes()
            indexes.times.append_if_larger(*self._newest())
        indexes.write()
        indexes.create()

    def truncate_to(self, offset: Offset, *, has_records: bool = True) -> None:
        """Remove batches from the one that holds `offset` on.

        Where those have no records, nothing is known of timestamps or transactions that changes.
        """
        position = position_of(self, offset)
        if position == self.size:
            return
        self.indexes().truncate_from(offset - self.base_offset)  # may find no descriptor
        self.file().truncate(position)
        self.size = position
        self.recent = None
        self.known_first_timestamp = None
        if has_records:
            self.unindexed_bytes = 0
            self.aborted = None
            self.known_max_timestamp, self.known_max_offset = scan_newest(self)

    def reset_indexes(self) -> None:
        """Forget the indexes and all batches; the scan that follows adds them again."""
        self.release(write=False)
        self.files.delete(INDEX, TIME_INDEX)
        self.recent = None
        self.size = self.unindexed_bytes = self.index_bytes = 0
        self.known_first_timestamp = None
        self.known_max_timestamp, self.known_max_offset = -1, self.base_offset

    # Reading

    def batch_at(self, position: int) -> StoredBatch:
        """The batch that begins at `position`; CorruptBatch where none does."""
        batch = parse(self.file().pread(HEADER_SIZE, position), 0, position)
        if batch.next_position > self.size:
            raise CorruptBatch("entry extends past the end of the file", position)
        return batch

    def headers(self, start: int = 0, end: int | None = None) -> Iterator[StoredBatch]:
        """The batches from a position on, without their bytes."""
        return walk_headers(self.file(), start, self.size if end is None else end)

    # Time

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp of any batch; -1 when none has one."""
        newest = self.known_max_timestamp
        if newest is None:
            newest, self.known_max_offset = load_newest(self)
            self.known_max_timestamp = newest
        return newest

    @property
    def max_timestamp_offset(self) -> Offset:
        """The last offset of the batch that brought `max_timestamp`."""
        return self.known_max_offset if self.max_timestamp >= 0 else self.base_offset

    @property
    def first_timestamp(self) -> int:
        """The largest timestamp of the first batch, from which time-based rolling counts."""
        stamp = self.known_first_timestamp
        if stamp is None:
            stamp = self.batch_at(0).max_timestamp if self.size else -1
            self.known_first_timestamp = stamp
        return stamp

    @property
    def retention_timestamp(self) -> int:
        """What retention compares: the largest timestamp, or the file's own where there is none."""
        newest = self.max_timestamp
        return newest if newest > 0 else self.files.modified_ms()

    def _newest(self) -> tuple[int, int]:
        """A time index entry for what there is now."""
        return self.max_timestamp, self.known_max_offset - self.base_offset

    # Files

    def file(self) -> File:
        if self._file is None:
            self._file = self.files.open_log()
        return self._file

    @property
    def unlinked(self) -> bool:
        """Whether its open file was removed by another process; one system call."""
        return self._file is not None and self._file.is_unlinked()

    def indexes(self) -> SegmentIndexes:
        if self._indexes is None:
            files = self.files
            indexes = SegmentIndexes(files.disk, files.path(INDEX), files.path(TIME_INDEX))
            self._indexes = indexes
            try:
                indexes.load()
            except CorruptIndex as fault:
                rebuild_indexes(self, str(fault))
        return self._indexes

    def release(self, *, write: bool = True) -> None:
        """Close files and indexes; they are opened again on use.

        Index entries in memory are written first, unless the files are about to be removed.
        """
        if self._indexes is not None:
            if write:
                self._indexes.write()
            self._indexes.close()
            self._indexes = None
        if self._file is not None:
            self._file.close()
            self._file = None

    def rename(self, suffix: str) -> None:
        """Give all its files another suffix. It can be read under the new names."""
        self.release()
        self.files.rename(suffix)

    def delete(self) -> None:
        """Remove its files; responses that are being sent from them are not disturbed."""
        self.release(write=False)
        self.files.delete(*SUFFIXES)
