"""One partition's log: append, read, truncate, flush, roll, close.

Owns the offsets of the log: start, end, high watermark, recovery point; only its methods change
them. What has state of its own is a collaborator: `segments`, `epochs`, `producers`, `snapshots`,
`deleted_segments`, `directory`. Operations that need no private state are functions beside this
file. Synchronous: the caller decides the thread (the loop's, except for `Flush.run`). Never knows
who leads or follows, and never waits.

The invariant: an offset, once assigned to a batch that a reader or a flush has seen, is never
assigned to another. So nothing in memory changes until the bytes are written, and a write that
fails leaves the file as it was.

An OSError that escapes means that the log directory has failed, a CorruptBatch that flushed data
is corrupt (`FAULTS`). `OutOfResources` means neither: the log is as it was, and can be used.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ottla.log.aborted_transactions import add_aborted
from ottla.log.directories import partition_metadata
from ottla.log.files import Buffer, Disk
from ottla.log.flush import Flush, begin_flush, restart_steps, truncation_steps
from ottla.log.leader_epochs import LeaderEpochs
from ottla.log.partition_directory import PartitionDirectory
from ottla.log.producers.batch_lookup import check_producer
from ottla.log.producers.producer_states import Marker, ProducerStates
from ottla.log.producers.snapshot_loading import (
    SnapshotFiles,
    apply_batch,
    read_marker,
    replay,
    states_at,
)
from ottla.log.results import FAULTS, Appended, CorruptLog, Read, duplicate_of
from ottla.log.segment.rollover import complete_indexes, create_segment, jitter_ms, must_roll
from ottla.log.segment.search import batch_size_at, position_of
from ottla.log.segment.segment import SegmentPosition
from ottla.log.segment.segment_list import SegmentList
from ottla.log.segment_deletion import DeletedSegments
from ottla.log.stored_batch import StoredBatch
from ottla.log.timestamp_lookup import TimestampOffset
from ottla.log.validate import Analysis, Origin, analyse, rewrite, stamped_head
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import Offset, TopicId, TopicPartition
from ottla.model.tuples import new
from ottla.protocol.records.batch import HEAD, HEADER_SIZE, OVERHEAD, BatchHeader
from ottla.protocol.records.header import LOG_APPEND_TIME_BIT

if TYPE_CHECKING:
    from random import Random

    from ottla.config.topic import TopicConfig

__all__ = ["FAULTS", "Appended", "CorruptLog", "Flush", "Log", "Origin", "Read", "TimestampOffset"]

HEAD_SIZE: Final = HEAD.size


class Log:
    """One partition's records, in offset order, on one disk."""

    __slots__ = (
        "_config",
        "_end_offset",
        "_epochs",
        "_high_watermark",
        "_producers",
        "_random",
        "_recovery_point",
        "_segments",
        "_start_offset",
        "_topic_id",
        "deleted_segments",
        "directory",
        "partition",
        "snapshots",
    )

    def __init__(
        self, partition: TopicPartition, dir: Path, config: TopicConfig, disk: Disk, random: Random
    ) -> None:
        self.partition: Final = partition
        self.directory: Final = PartitionDirectory(disk, dir)
        self.snapshots: Final = SnapshotFiles(self.directory)
        self.deleted_segments: Final = DeletedSegments()
        self._config = config
        self._random = random
        self._topic_id: TopicId | None = None
        self._segments = SegmentList()
        self._epochs = LeaderEpochs()
        self._producers = ProducerStates()
        self._start_offset: Offset = 0
        self._end_offset: Offset = 0
        self._high_watermark: Offset = 0
        self._recovery_point: Offset = 0

    def __repr__(self) -> str:
        return f"Log({self.partition}, {self._start_offset} to {self._end_offset})"

    @property
    def dir(self) -> Path:
        return self.directory.path

    @property
    def disk(self) -> Disk:
        return self.directory.disk

    @property
    def config(self) -> TopicConfig:
        return self._config

    @config.setter
    def config(self, config: TopicConfig) -> None:
        self._config = config

    @property
    def topic_id(self) -> TopicId | None:
        return self._topic_id

    @property
    def segments(self) -> SegmentList:
        return self._segments

    @property
    def epochs(self) -> LeaderEpochs:
        return self._epochs

    @property
    def producers(self) -> ProducerStates:
        return self._producers

    @property
    def start_offset(self) -> Offset:
        return self._start_offset

    @property
    def end_offset(self) -> Offset:
        return self._end_offset

    @property
    def high_watermark(self) -> Offset:
        return self._high_watermark

    @property
    def recovery_point(self) -> Offset:  # all records below this offset are flushed
        return self._recovery_point

    @property
    def last_stable_offset(self) -> Offset:
        """Below this every transaction has ended, and every marker is replicated."""
        unstable = self._producers.first_unstable_offset
        watermark = self._high_watermark
        return watermark if unstable is None or unstable > watermark else unstable

    @property
    def size(self) -> int:
        return self._segments.total_size()

    # Appending

    def append(
        self,
        batch: Analysis | Buffer,
        *,
        leader_epoch: int,
        now_ms: WallMs,
        origin: Origin = Origin.CLIENT,
    ) -> Appended:
        """Append as leader: the batch gets the next offsets. Hot: benchmarks/log.py.

        KafkaError if it must not be appended. `batch` is done with when this returns.
        """
        config = self._config
        if not isinstance(batch, Analysis):
            batch = analyse(batch, config, now_ms=now_ms, origin=origin, partition=self.partition)
        if batch.needs_rewrite:
            batch = rewrite(batch, config, now_ms, self.partition)
        content, header, _, restamped = batch
        size = header.length + OVERHEAD
        if size > config.segment_bytes:
            raise KafkaError(
                ErrorCode.record_list_too_large,
                f"batch of {size} bytes exceeds segment.bytes={config.segment_bytes}",
            )
        marker = None
        produced = header.producer_id >= 0
        if produced:
            marker = read_marker(content) if header.is_control else None
            repeat = check_producer(self, header, marker, origin)
            if repeat is not None:
                return duplicate_of(repeat, header, config, self._start_offset)
        first = self._end_offset
        if restamped:
            buffers = (stamped_head(batch, first, leader_epoch), content[HEADER_SIZE:])
        else:
            buffers = (HEAD.pack(first, header.length, leader_epoch), content[HEAD_SIZE:])
        last, newest = first + header.last_offset_delta, header.max_timestamp
        rolled = self._write(buffers, new(SegmentPosition, (first, last, newest, size)), now_ms)
        if leader_epoch != self._epochs.latest:
            self._epochs.assign(leader_epoch, first)
        if produced:
            self._update_producers(header, marker, first)
        if self._end_offset - self._recovery_point >= config.flush_messages:
            self.flush()
        stamp = newest if header.attributes & LOG_APPEND_TIME_BIT else -1
        return new(
            Appended, (first, last, stamp, self._start_offset, size, header.count, False, rolled)
        )

    def _write(self, buffers: Sequence[Buffer], mark: SegmentPosition, now_ms: WallMs) -> bool:
        """Write one batch at the end, in a new segment if necessary; whether one was closed."""
        config = self._config
        segment = self._segments.active
        rolled = must_roll(segment, config, mark, now_ms)
        if rolled:
            self.roll(now_ms)
            segment = self._segments.active
        segment.append(buffers, (mark,), config.index_interval_bytes)
        self._end_offset = mark.last_offset + 1
        return rolled

    def append_validated(
        self, batch: memoryview, header: Sequence[int], leader_epoch: int
    ) -> Offset:
        """Append as leader a batch that needs no decision: its first offset. Hot.

        `header` has the fields of a `BatchHeader`. The caller has checked all that `append` checks,
        that the active segment has room, and that a producer in the header sends its next sequence
        outside a transaction.
        """
        first = self._end_offset
        (
            _, length, _, _, _, _, delta, _, newest, producer_id, epoch, sequence, _,
        ) = header  # fmt: skip
        last = first + delta
        segment = self._segments.active
        interval_bytes = self._config.index_interval_bytes
        if segment.unindexed_bytes > interval_bytes:
            segment.indexes()  # opened before: a batch that is in the log must be recorded
        segment.file().append((HEAD.pack(first, length, leader_epoch), batch[HEAD_SIZE:]))
        segment.record_batch(first, last, newest, len(batch), interval_bytes)
        self._end_offset = last + 1
        if producer_id >= 0:
            producer = self._producers.find_expecting(producer_id, epoch, sequence)
            assert producer is not None, "the caller has checked the sequence"
            producer.add_batch(sequence, sequence + delta, first, last, newest)
        return first

    def append_stored(self, view: memoryview, batches: Sequence[StoredBatch]) -> None:
        """Append adjacent batches of `view` as they are, with offsets and epochs, in one write."""
        if not batches:
            return
        piece: Buffer = view[batches[0].position : batches[-1].next_position]
        positions = [
            SegmentPosition(batch.base_offset, batch.last_offset, batch.max_timestamp, batch.size)
            for batch in batches
        ]
        self._segments.active.append((piece,), positions, self._config.index_interval_bytes)
        for batch in batches:
            self._end_offset = batch.last_offset + 1
            if batch.leader_epoch > self._epochs.latest:
                self._epochs.assign(batch.leader_epoch, batch.base_offset)
            content = view[batch.position : batch.next_position]
            aborted = replay(self._producers, batch, content)
            if aborted is not None:
                add_aborted(self, aborted)

    # Reading

    def read(self, offset: Offset, max_bytes: int, *, end: Offset, min_one: bool) -> Read:
        """Batches from the one that holds `offset`, none of them at or beyond `end`.

        The last may be cut by `max_bytes`, but the first is whole: if it does not fit, it comes
        alone (`min_one`) or nothing does. Hot: benchmarks/log.py.
        """
        segments = self._segments
        if offset < self._start_offset or offset > self._end_offset:
            raise KafkaError(
                ErrorCode.offset_out_of_range,
                f"{self.partition}: offset {offset} is out of range [{self._start_offset}, "
                f"{self._end_offset}]",
            )
        index = segments.index_of(offset)
        segment = segments[index]
        if offset >= end:
            return Read(None, offset, segment.base_offset, segment.size)
        while True:
            segment_end = segments.end_of(index, self._end_offset)
            position = position_of(segment, offset)
            limit = segment.size if end >= segment_end else position_of(segment, end)
            if position < limit:
                break
            index += 1
            if end <= segment_end or index == len(segments):
                return Read(None, offset, segment.base_offset, position)
            segment = segments[index]
        size = limit - position
        if size > max_bytes:
            first = batch_size_at(segment, position)
            if first > max_bytes and not min_one:
                return Read(None, offset, segment.base_offset, position)
            size = min(size, max(first, max_bytes))
        return Read(segment.file().slice(position, size), offset, segment.base_offset, position)

    # Watermarks, start and end

    def set_high_watermark(self, offset: Offset) -> None:
        """Take over that of another log with the same records, at most this log's end."""
        self._high_watermark = max(self._start_offset, min(offset, self._end_offset))
        self._producers.on_high_watermark_changed(self._high_watermark)

    def raise_high_watermark(self, offset: Offset) -> bool:
        """As a leader: only up, and never past the end; whether it moved."""
        offset = min(offset, self._end_offset)
        if offset <= self._high_watermark:
            return False
        self._high_watermark = offset
        self._producers.on_high_watermark_changed(offset)
        return True

    def raise_start_offset(self, offset: Offset) -> bool:
        """Hide everything below `offset`; whether the start moved. Not above the high watermark."""
        if offset > self._high_watermark:
            raise KafkaError(
                ErrorCode.offset_out_of_range,
                f"{self.partition}: start offset {offset} is above the high watermark "
                f"{self._high_watermark}",
            )
        if offset <= self._start_offset:
            return False
        self._start_offset = offset
        self._epochs.truncate_from_start(offset)
        return True

    # Truncation, in steps: `log/flush.py`

    def truncate_to(self, offset: Offset) -> bool:
        """Remove everything from `offset` on, durably; whether there was anything."""
        before = self._end_offset
        for sync in truncation_steps(self, offset):
            sync()
        return self._end_offset < before

    def end_at(self, offset: Offset) -> None:
        """The segments were cut here."""
        self._epochs.truncate_from_end(offset)
        self._end_offset = offset
        self._start_offset = min(self._start_offset, offset)
        self._high_watermark = min(self._high_watermark, offset)
        self._recovery_point = min(self._recovery_point, offset)
        self.snapshots.remove_above(offset)  # if none is left at the end, closing writes it
        self._producers = states_at(self.disk, self.dir, self._segments, offset)
        self._producers.on_high_watermark_changed(self._high_watermark)

    def truncate_fully_and_start_at(self, offset: Offset) -> None:
        """Remove everything and start at `offset`, which may be any offset."""
        for sync in restart_steps(self, offset):
            sync()

    def restart_at(self, offset: Offset) -> None:
        self._segments.clear()
        self.snapshots.remove_above(-1)
        self._producers = ProducerStates()
        self._epochs.clear()
        self._end_offset = self._start_offset = self._high_watermark = offset
        self._recovery_point = min(self._recovery_point, offset)
        self.add_segment(offset, created_ms=WallMs(0))

    # Segments

    def add_segment(self, base_offset: Offset, created_ms: WallMs) -> None:
        """Create an empty segment, the new active one."""
        segment = create_segment(self.directory, base_offset, created_ms)
        segment.jitter_ms = jitter_ms(self._config, self._random)
        self._segments.add(segment)
        self.directory.changed()

    def roll(self, now_ms: WallMs, base_offset: Offset | None = None) -> bool:
        """Close the active segment and create the next, unless it is empty.

        The next begins at the log's end, or further on where offsets in between do not exist.
        """
        base = self._end_offset if base_offset is None else base_offset
        active = self._segments.active
        if active.size == 0 and active.base_offset == base:
            return False
        if active.size:
            complete_indexes(self, active)
            active.release()
            self.snapshots.write(self._producers, base)
        self.add_segment(base, now_ms)
        if not active.size:
            self._segments.remove(active)
            active.delete()
        self._end_offset = base
        return True

    # Durability

    def flush_done(self, flush: Flush) -> None:
        """Raise the recovery point to what was synced, unless the log was truncated meanwhile."""
        if flush.generation == self._segments.generation:
            self._recovery_point = max(self._recovery_point, flush.upto)

    def flush(self) -> Offset:
        whole = False
        while not whole:
            flush = begin_flush(self)
            flush.run()
            self.flush_done(flush)
            whole = flush.whole
        return self._recovery_point

    def close(self) -> None:
        """A clean stop: all indexes and snapshots are complete on disk, no recovery is needed."""
        active = self._segments.active
        if self._recovery_point < self._end_offset or self.snapshots.newest < self._end_offset:
            if active.size:
                complete_indexes(self, active)
            self.snapshots.write(self._producers, self._end_offset)
        self.flush()
        self.release()

    # Files

    def release(self) -> None:
        """Close the files of all segments; they are opened again on use."""
        for segment in self._segments:
            segment.release()

    def rename_dir(self, dir: Path, *, durably: bool = True) -> None:
        """Move the whole directory; responses that are being sent are not disturbed."""
        self.release()
        self.directory.rename(dir)
        for segment in (*self._segments, *self.deleted_segments):
            segment.files.dir = dir
        if durably:  # else the caller syncs the parent directory, once for many of them
            self.disk.sync_dir(dir.parent)

    def set_topic_id(self, topic_id: TopicId) -> None:
        self.directory.write(partition_metadata.FILE_NAME, partition_metadata.encode(topic_id))
        self._topic_id = topic_id

    def restore(
        self,
        *,
        topic_id: TopicId | None = None,
        segments: SegmentList | None = None,
        epochs: LeaderEpochs | None = None,
        producers: ProducerStates | None = None,
        start_offset: Offset | None = None,
        end_offset: Offset | None = None,
        recovery_point: Offset | None = None,
    ) -> None:
        """Set what loading and recovery read from the files, before the log is used."""
        self._topic_id = self._topic_id if topic_id is None else topic_id
        self._segments = self._segments if segments is None else segments
        self._epochs = self._epochs if epochs is None else epochs
        self._producers = self._producers if producers is None else producers
        if start_offset is not None:
            self._start_offset = self._high_watermark = start_offset
        if end_offset is not None:
            self._end_offset = end_offset
        if recovery_point is not None:
            self._recovery_point = recovery_point

    def _update_producers(self, header: BatchHeader, marker: Marker | None, first: Offset) -> None:
        aborted = apply_batch(self._producers, header, marker, first)
        if aborted is not None:
            add_aborted(self, aborted)
