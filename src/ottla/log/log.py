"""One partition's log: what is appended, read, cut, flushed and forgotten.

Owns the offsets that say how far the log reaches: start, end, high watermark, recovery point.
Synchronous: the caller decides the thread (all of it belongs to the loop, except `Flush.run`).
Never knows who leads or follows, and never waits. This is the face of the package: what is longer
than a few lines lives beside it, one file per concern.

The one rule all of it keeps: an offset, once given to a batch that a reader or a flush has seen,
is never given to another. So nothing in memory changes until the bytes are written, and a write
that fails leaves the file as it was.

An OSError that escapes means that the log directory has failed, a CorruptBatch that flushed data
has rotted (`FAULTS`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ottla.log import follower_append, plain_append, segment_deletion, timestamp_lookup, truncation
from ottla.log.directories import partition_metadata
from ottla.log.files import Buffer, Disk
from ottla.log.flush import Flush, begin_flush
from ottla.log.index import txn_index
from ottla.log.index.txn_index import AbortedTxn
from ottla.log.leader_epochs import LeaderEpochs
from ottla.log.partition_directory import PartitionDirectory
from ottla.log.plain_append import PlainRules
from ottla.log.producers.batch_lookup import find_batches
from ottla.log.producers.producer_states import Marker, ProducerStates, RecentBatch
from ottla.log.producers.snapshot_loading import aborted_entry, read_marker, replay
from ottla.log.results import Appended, Read
from ottla.log.segment import rollover
from ottla.log.segment.rollover import must_roll
from ottla.log.segment.segment import TXN_INDEX, SegmentPosition
from ottla.log.segment.segment_list import SegmentList
from ottla.log.segment_deletion import SegmentToDelete
from ottla.log.stored_batch import StoredBatch
from ottla.log.timestamp_lookup import TimestampOffset
from ottla.log.validate import Analysis, Origin, analyse, rewrite, stamped_head
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import LeaderEpoch, Offset, TopicId, TopicPartition
from ottla.protocol.records.batch import HEAD, HEADER_SIZE, OVERHEAD, BatchHeader
from ottla.protocol.records.header import LOG_APPEND_TIME_BIT, CorruptBatch

if TYPE_CHECKING:
    from random import Random

    from ottla.config.topic import TopicConfig

__all__ = ["FAULTS", "Appended", "CorruptLog", "Flush", "Log", "Origin", "Read", "TimestampOffset"]

HEAD_SIZE: Final = HEAD.size
_new: Final = tuple.__new__  # half the cost of a named tuple's own constructor


class CorruptLog(Exception):
    """Data that was flushed is not what was written: the partition cannot be served."""


FAULTS: Final = (OSError, CorruptBatch)
"""What a log cannot go on from: its disk has failed, or what was flushed to it has rotted."""


class Log:
    """One partition's records, in offset order, on one disk."""

    __slots__ = (
        "config",
        "dice",
        "doomed",
        "end_offset",
        "epochs",
        "folder",
        "generation",
        "high_watermark",
        "partition",
        "plain",
        "producers",
        "recovery_point",
        "segments",
        "snapshot_offset",
        "start_offset",
        "topic_id",
    )

    def __init__(
        self, partition: TopicPartition, dir: Path, config: TopicConfig, disk: Disk, dice: Random
    ) -> None:
        self.partition = partition
        self.topic_id: TopicId | None = None
        self.folder = PartitionDirectory(disk, dir)
        self.config = config
        self.dice = dice
        self.segments = SegmentList()
        self.epochs = LeaderEpochs()
        self.producers = ProducerStates()
        self.start_offset: Offset = 0
        self.end_offset: Offset = 0
        self.high_watermark: Offset = 0
        self.recovery_point: Offset = 0
        self.snapshot_offset: Offset = -1
        self.plain: PlainRules | None = None  # until the first append
        self.generation = 0  # changes whenever bytes that were written go away
        self.doomed: tuple[SegmentToDelete, ...] = ()

    def __repr__(self) -> str:
        return f"Log({self.partition}, {self.start_offset} to {self.end_offset})"

    @property
    def dir(self) -> Path:
        return self.folder.path

    @property
    def disk(self) -> Disk:
        return self.folder.disk

    @property
    def last_stable_offset(self) -> Offset:
        """Below this every transaction has ended, and every marker is replicated."""
        unstable = self.producers.first_unstable_offset
        watermark = self.high_watermark
        return watermark if unstable is None or unstable > watermark else unstable

    @property
    def size(self) -> int:
        return self.segments.total_size()

    # What takes more than a few lines lives beside this file, one concern each.

    append_plain = plain_append.append_plain
    append_as_follower = follower_append.append
    add_segment = rollover.add_segment
    roll = rollover.roll
    maybe_roll = rollover.maybe_roll
    close = rollover.close
    flush_begin = begin_flush
    offset_for_timestamp = timestamp_lookup.by_timestamp
    max_timestamp = timestamp_lookup.newest
    aborted_transactions = timestamp_lookup.aborted
    raise_start_offset = truncation.raise_start
    delete_records = truncation.delete_records
    truncate_to = truncation.truncate_to
    truncate_fully_and_start_at = truncation.truncate_fully
    delete_old_segments = segment_deletion.delete_old
    replace_segments = segment_deletion.replace
    purge_deleted = segment_deletion.purge

    # Appending

    def append(
        self,
        batch: Analysis | Buffer,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: Origin = Origin.CLIENT,
    ) -> Appended:
        """Append as leader: the batch gets the next offsets. Hot: benchmarks/log.py.

        KafkaError if it must not be appended. `batch` is done with when this returns.
        """
        config = self.config
        if not isinstance(batch, Analysis):
            batch = analyse(batch, config, now_ms=now_ms, origin=origin, partition=self.partition)
        if batch.needs_rewrite:
            batch = rewrite(batch, config, now_ms, self.partition)
        content, header, _, restamped = batch
        size = header.length + OVERHEAD
        if size > config.segment_bytes:
            raise KafkaError(
                ErrorCode.record_list_too_large,
                f"{size} bytes, more than segment.bytes {config.segment_bytes}",
            )
        marker = None
        produced = header.producer_id >= 0
        if produced:
            marker = read_marker(content) if header.is_control else None
            repeat = self._check_producer(header, marker, origin)
            if repeat is not None:
                return self._repeated(repeat, header, size)
        first = self.end_offset
        if restamped:
            buffers = (stamped_head(batch, first, leader_epoch), content[HEADER_SIZE:])
        else:
            buffers = (HEAD.pack(first, header.length, leader_epoch), content[HEAD_SIZE:])
        last, newest = first + header.last_offset_delta, header.max_timestamp
        rolled = self._write(buffers, _new(SegmentPosition, (first, last, newest, size)), now_ms)
        if leader_epoch != self.epochs.latest:
            self.epochs.assign(leader_epoch, first)
        if produced:
            self._note_producer(header, marker, first)
        if self.end_offset - self.recovery_point >= config.flush_messages:
            self.flush()
        stamp = newest if header.attributes & LOG_APPEND_TIME_BIT else -1
        return _new(
            Appended, (first, last, stamp, self.start_offset, size, header.count, False, rolled)
        )

    def _write(self, buffers: Sequence[Buffer], mark: SegmentPosition, now_ms: int) -> bool:
        """Write one batch at the end, in a new segment if need be; whether one was closed."""
        config = self.config
        segment = self.segments.active
        rolled = must_roll(segment, config, mark, now_ms)
        if rolled:
            self.roll(now_ms)
            segment = self.segments.active
        segment.append(buffers, (mark,), config.index_interval_bytes)
        self.end_offset = mark.last_offset + 1
        return rolled

    def took_in(self, batch: StoredBatch, content: memoryview) -> None:
        """A batch that has its offsets already was written: the log reaches further."""
        self.end_offset = batch.last_offset + 1
        if batch.leader_epoch > self.epochs.latest:
            self.epochs.assign(batch.leader_epoch, batch.base_offset)
        self._note_aborted(replay(self.producers, batch, content))

    # Reading

    def read(self, offset: Offset, max_bytes: int, *, end: Offset, min_one: bool) -> Read:
        """Batches from the one that holds `offset`, none of them at or beyond `end`.

        The last may be cut by `max_bytes`, but the first is whole: if it does not fit, it comes
        alone (`min_one`) or nothing does. Hot: benchmarks/log.py.
        """
        segments = self.segments
        if offset < self.start_offset or offset > self.end_offset:
            raise KafkaError(
                ErrorCode.offset_out_of_range,
                f"{self.partition}: offset {offset} is not within {self.start_offset} to "
                f"{self.end_offset}",
            )
        at = segments.index_of(offset)
        segment = segments[at]
        if offset >= end:
            return Read(None, offset, segment.base_offset, segment.size)
        while True:
            segment_end = segments.end_of(at, self.end_offset)
            position = segment.position_of(offset)
            limit = segment.size if end >= segment_end else segment.position_of(end)
            if position < limit:
                break
            at += 1
            if end <= segment_end or at == len(segments):
                return Read(None, offset, segment.base_offset, position)
            segment = segments[at]
        size = limit - position
        if size > max_bytes:
            first = segment.batch_size_at(position)
            if first > max_bytes and not min_one:
                return Read(None, offset, segment.base_offset, position)
            size = min(size, max(first, max_bytes))
        return Read(segment.slice(position, size), offset, segment.base_offset, position)

    def offset_for_epoch(self, epoch: int) -> tuple[LeaderEpoch, Offset]:
        """The largest epoch not above `epoch`, and where it ended; (-1, -1) if unknown."""
        return self.epochs.end_offset(epoch, self.end_offset)

    # Watermarks, start and end

    def set_high_watermark(self, offset: Offset) -> None:
        """As a follower: wherever the leader says, but within this log."""
        self.high_watermark = max(self.start_offset, min(offset, self.end_offset))
        self.producers.high_watermark_moved(self.high_watermark)

    def raise_high_watermark(self, offset: Offset) -> bool:
        """As a leader: only up, and never past the end; whether it moved."""
        offset = min(offset, self.end_offset)
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        self.producers.high_watermark_moved(offset)
        return True

    # Durability

    def flush_done(self, flush: Flush) -> None:
        """It has been synced. After a cut meanwhile it says nothing about what came since."""
        if flush.generation == self.generation:
            self.recovery_point = max(self.recovery_point, flush.upto)

    def flush(self) -> Offset:
        flush = self.flush_begin()
        flush.run()
        self.flush_done(flush)
        return self.recovery_point

    def rename_dir(self, dir: Path, *, durably: bool = True) -> None:
        """Move the whole folder; replies that are being sent are not disturbed."""
        for segment in self.segments:
            segment.release()
        self.folder.rename(dir, durably=durably)
        for segment in (*self.segments, *(doomed.segment for doomed in self.doomed)):
            segment.dir = dir

    def remove(self) -> None:
        """Delete everything there is of it."""
        for segment in self.segments:
            segment.release()
        self.disk.remove_tree(self.dir)

    def set_topic_id(self, topic_id: TopicId) -> None:
        self.topic_id = topic_id
        self.folder.write(partition_metadata.FILE_NAME, partition_metadata.encode(topic_id))

    def _check_producer(
        self, header: BatchHeader, marker: Marker | None, origin: Origin
    ) -> RecentBatch | None:
        if not header.is_control:
            try:
                return self.producers.check(header, origin)
            except KafkaError as refusal:
                out_of_order = refusal.code is ErrorCode.out_of_order_sequence_number
                if not (out_of_order and find_batches(self, header)):
                    raise
            return self.producers.check(header, origin)
        if marker is not None:
            self.producers.check_marker(header, marker)
        return None

    def _note_producer(self, header: BatchHeader, marker: Marker | None, first: Offset) -> None:
        if not header.is_control:
            self.producers.apply(header, first)
        elif marker is not None:
            completed = self.producers.apply_marker(header, marker, first)
            self._note_aborted(aborted_entry(self.producers, completed))

    def _note_aborted(self, aborted: AbortedTxn | None) -> None:
        if aborted is None:
            return
        active = self.segments.active
        path = active.path(TXN_INDEX)
        # One that was lost is found again first: with a new entry in it nobody would miss the rest.
        unread = active.aborted is None and not self.disk.exists(path)
        found = timestamp_lookup.find_lost(self, active) if unread else ()
        if found is not None and aborted not in found:
            txn_index.append(self.disk, path, aborted)
        self.folder.sync_later(path)  # nothing notices an entry that is missing
        active.aborted = None

    def _repeated(self, known: RecentBatch, header: BatchHeader, size: int) -> Appended:
        stamps = self.config.message_timestamp_type == "LogAppendTime"
        return Appended(
            known.first_offset,
            known.last_offset,
            known.timestamp if stamps else -1,
            self.start_offset,
            size,
            header.count,
            True,
            False,
        )
