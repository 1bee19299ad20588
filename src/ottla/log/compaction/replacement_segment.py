"""The segment that compaction writes, until it is ready to take the place of others.

Owns: its files, all with the suffix `.cleaned`, which recovery throws away. When `finish` returns
they are durable, and the log may rename them.
"""

from __future__ import annotations

from ottla.log.files import sync_path
from ottla.log.index import txn_index
from ottla.log.index.txn_index import AbortedTxn
from ottla.log.log import Log
from ottla.log.segment.segment import TXN_INDEX, Segment, SegmentPosition
from ottla.log.segment_deletion import CLEANED
from ottla.log.stored_batch import parse
from ottla.model.ids import Offset


class ReplacementSegment:
    """A segment in the making."""

    def __init__(self, log: Log, base_offset: Offset) -> None:
        self._disk = log.disk
        self._interval_bytes = log.config.index_interval_bytes
        self._segment = Segment(log.disk, log.dir, base_offset, suffix=CLEANED)
        self._segment.delete()  # what an earlier try may have left
        self._batches: list[bytes | memoryview] = []
        self._marks: list[SegmentPosition] = []

    def add(self, batch: bytes | memoryview) -> None:
        """Take a batch that survived; an empty one is none."""
        if not batch:
            return
        stored = parse(batch, 0, 0)
        # A batch without records has no timestamp, whatever its header contains.
        has_records = stored.header is None or stored.header.count > 0
        timestamp = stored.max_timestamp if has_records else -1
        self._batches.append(batch)
        self._marks.append(
            SegmentPosition(stored.base_offset, stored.last_offset, timestamp, stored.size)
        )

    def write(self) -> int:
        """Put what was added into the file; how many bytes that was."""
        written = sum(mark.size for mark in self._marks)
        if written:
            # Joined, because one system call takes a thousand buffers at most.
            self._segment.append([b"".join(self._batches)], self._marks, self._interval_bytes)
            self._batches, self._marks = [], []
        return written

    def finish(self, aborted: list[AbortedTxn]) -> Segment:
        """Everything is in: make it durable."""
        segment = self._segment
        segment.file()  # a segment of which nothing survived is an empty file, not none
        segment.finish()
        path = segment.files.path(TXN_INDEX)
        txn_index.write(self._disk, path, aborted)  # written even if empty: a missing one is lost
        sync_path(self._disk, path)
        segment.file().sync()
        segment.indexes().sync()
        self._disk.sync_dir(segment.files.dir)
        return segment
