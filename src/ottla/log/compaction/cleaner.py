"""Compaction at work: rewrites closed segments so that each key keeps its newest record.

Owns: the two passes over a log (first the newest offset of every key of the dirty part, then a
copy of everything before its end without records that have a newer one).
Never: touches the active segment, decides which log is next (`plan`), or which records are kept
(`batch_filter`).

The work is a generator of small steps, so that it can run between other things or on a thread:
closed segments do not change under it. Only `SegmentSwap.perform` changes the log itself and
belongs on the thread that appends. It refuses if the log has changed meanwhile; nothing is lost,
the copy is discarded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from ottla.log.aborted_transactions import find_aborted
from ottla.log.compaction.batch_filter import (
    CleaningRound,
    TransactionTracker,
    filter_batch,
    keys,
    without_records,
)
from ottla.log.compaction.offset_map import OffsetMap
from ottla.log.compaction.plan import CleanableRange, DirtyLog, Lags, SegmentRange, group_segments
from ottla.log.compaction.replacement_segment import ReplacementSegment
from ottla.log.index.txn_index import overlapping
from ottla.log.log import Log
from ottla.log.segment.segment import Segment
from ottla.log.segment_deletion import replace_segments
from ottla.log.stored_batch import StoredBatch, checksum_ok, walk_whole
from ottla.model.clock import WallMs
from ottla.model.ids import Offset
from ottla.protocol.records.header import CorruptBatch

STEP_BYTES: Final = 32 * 1024  # a few milliseconds of work, which is what others may have to wait


class CleanerMemory(NamedTuple):
    """How much the map of keys may take, and how full it may get."""

    buffer_bytes: int = 128 * 1024 * 1024
    load_factor: float = 0.9


class Progress(NamedTuple):
    """One step is done: how many bytes it read and wrote, for the throttle."""

    bytes_read: int
    bytes_written: int


class CleaningAborted(Exception):
    """The log was truncated, deleted or moved while it was being compacted."""


class SegmentSwap(NamedTuple):
    """A finished copy, ready to take the place of the segments it was made from."""

    log: Log
    cleaned: Segment
    originals: Sequence[Segment]
    sizes: Sequence[int]
    read_to: Offset
    end_mark: Offset | None = None
    """The offset of an empty batch at the end that only marks which segments the copy replaces, so
    that a swap interrupted by a crash can be completed. It is removed after the swap."""

    def perform(self, now_ms: WallMs) -> None:
        """On the thread that owns the log. Abandoned, and no trace left, if the log moved on."""
        present = {id(segment): segment.size for segment in self.log.segments}
        if [present.get(id(segment)) for segment in self.originals] != list(self.sizes):
            self.cleaned.delete()
            raise CleaningAborted(f"{self.log.partition}: log changed during compaction")
        replace_segments(self.log, self.cleaned, self.originals, now_ms, self.read_to)
        if self.end_mark is not None:
            self.cleaned.truncate_to(self.end_mark, has_records=False)


Step: TypeAlias = Progress | SegmentSwap


class LogCleaning:
    """One round of compaction of one log. Made on the thread that owns the log."""

    def __init__(self, log: Log, dirty: DirtyLog, memory: CleanerMemory, now_ms: WallMs) -> None:
        self.log = log
        self._dirty = dirty
        self._segments = [s for s in log.segments if s.base_offset < dirty.end]
        self._aborted = find_aborted(log, 0, dirty.end)
        newest = OffsetMap.fitting(
            dirty.end - dirty.first_dirty,
            buffer_bytes=memory.buffer_bytes,
            load_factor=memory.load_factor,
        )
        newest.latest_offset = dirty.first_dirty - 1
        active = {entry.producer_id: entry for entry in log.producers.entries()}
        self._round = CleaningRound(newest, active, now_ms, log.config.delete_retention_ms)
        self.read_to = log.high_watermark
        """Records below this decided what is removed: they must be durable first."""

    @property
    def end(self) -> Offset:
        """The log is clean up to here once every step is done; no further if the map was full."""
        return self._round.newest.latest_offset + 1

    def steps(self) -> Iterator[Step]:
        yield from self._map_keys()
        tracker = TransactionTracker(self._aborted)
        todo = [segment for segment in self._segments if segment.base_offset < self.end]
        for group in group_segments(todo, self._dirty.end, self.log.config.segment_bytes):
            yield from self._rewrite(group, tracker)

    def _map_keys(self) -> Iterator[Step]:
        """Learn the newest offset of each key of the dirty part, as far as the map has room."""
        newest, first_dirty = self._round.newest, self._dirty.first_dirty
        dirty_segments = [s for s in self._segments if self._end_of(s) > first_dirty]
        start = dirty_segments[0].base_offset if dirty_segments else first_dirty
        tracker = TransactionTracker(overlapping(self._aborted, start, self._dirty.end))
        read = 0
        for batch, content in self._batches(dirty_segments):
            for key, offset in keys(batch, content, tracker):
                if newest.full:
                    return
                if offset >= first_dirty:
                    newest.put(key, offset)
            newest.latest_offset = max(newest.latest_offset, batch.last_offset)
            read += batch.size
            if read >= STEP_BYTES:
                yield Progress(read, 0)
                read = 0
        newest.latest_offset = self._dirty.end - 1  # after the last batch there may be a gap

    def _rewrite(self, group: list[Segment], tracker: TransactionTracker) -> Iterator[Step]:
        """Copy what survives of neighbouring segments into one."""
        sizes = [segment.size for segment in group]
        copy = ReplacementSegment(self.log, group[0].base_offset)
        read, unread, end_mark = 0, sum(sizes), None
        for batch, content in self._batches(group):
            unread -= batch.size
            is_last = batch.last_offset + 1 == self._dirty.end
            filtered = filter_batch(batch, content, tracker, self._round, is_last=is_last)
            if not filtered and not unread:
                filtered, end_mark = without_records(batch, content), batch.base_offset
            copy.add(filtered)
            read += batch.size
            if read >= STEP_BYTES:
                yield Progress(read, copy.write())
                read = 0
        yield Progress(read, copy.write())
        cleaned = copy.finish(tracker.take_retained())
        yield SegmentSwap(self.log, cleaned, group, sizes, self.read_to, end_mark)

    def _batches(self, segments: Sequence[Segment]) -> Iterator[tuple[StoredBatch, memoryview]]:
        """Through separate file handles: the log may close its own at any time."""
        for segment in segments:
            try:
                file = self.log.disk.open_read(segment.files.path())
            except FileNotFoundError:
                raise CleaningAborted(
                    f"{self.log.partition}: segment {segment.base_offset} was deleted"
                ) from None
            first, end = segment.base_offset, self._end_of(segment)
            for batch, content in walk_whole(file, 0, segment.size):
                # Or corrupt data would get a valid checksum. No checksum covers the offset itself.
                sound = first <= batch.base_offset <= batch.last_offset < end
                if not sound or not checksum_ok(batch, content):
                    raise CorruptBatch(
                        f"{segment.files.path()}: invalid checksum or offset", batch.position
                    )
                first = batch.last_offset + 1
                yield batch, content
            file.close()

    def _end_of(self, segment: Segment) -> Offset:
        later = (s.base_offset for s in self._segments if s.base_offset > segment.base_offset)
        return next(later, self._dirty.end)


def extent(log: Log) -> CleanableRange:
    """The log as the plan sees it."""
    pieces = [
        SegmentRange(s.base_offset, s.size, s.retention_timestamp, s.first_timestamp)
        for s in log.segments
    ]
    return CleanableRange(log.start_offset, log.last_stable_offset, log.end_offset, pieces)


def lags(log: Log) -> Lags:
    config = log.config
    return Lags(
        config.min_compaction_lag_ms,
        config.max_compaction_lag_ms,
        config.min_cleanable_dirty_ratio,
    )
