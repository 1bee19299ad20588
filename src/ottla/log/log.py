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
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.log import follower_append, lookup, partition_metadata, retirement, truncation, txn_index
from ottla.log import producer_snapshot as snapshot
from ottla.log.epochs import LeaderEpochs
from ottla.log.files import Buffer, Disk, FileSlice
from ottla.log.flush import Flush, begin_flush
from ottla.log.lookup import TimestampOffset
from ottla.log.producer_history import aborted_entry, read_marker, replay, snapshot_path
from ottla.log.producers import Marker, ProducerStates, Remembered
from ottla.log.retirement import Doomed
from ottla.log.rolling import jitter_ms, must_roll, waited_ms
from ottla.log.segment import INDEX, TIME_INDEX, TXN_INDEX, Mark, Segment
from ottla.log.segments import Segments
from ottla.log.stored import StoredBatch
from ottla.log.txn_index import AbortedTxn
from ottla.log.validate import Analysis, Origin, analyse, rewrite, stamped_head
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import LeaderEpoch, Offset, TopicId, TopicPartition
from ottla.protocol.records.batch import HEAD, HEADER_SIZE, OVERHEAD, BatchHeader
from ottla.protocol.records.corrupt import CorruptBatch
from ottla.protocol.records.header import LOG_APPEND_TIME_BIT

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


class Appended(NamedTuple):
    """Where an append went. For a repeat (`duplicate`) that is where the first one went."""

    first_offset: Offset
    last_offset: Offset
    append_time_ms: int  # -1 unless the topic wants our time
    log_start_offset: Offset
    size: int
    count: int  # type: ignore[assignment]  # Kafka's word for it
    duplicate: bool
    rolled: bool  # a segment was closed: worth a flush soon


class Read(NamedTuple):
    """What can be sent from an offset on, and where that lies; `slice` is None for nothing."""

    slice: FileSlice | None
    offset: Offset
    segment_base: Offset
    position: int


class Log:
    """One partition's records, in offset order, on one disk."""

    __slots__ = (
        "_dice",
        "_unsynced",
        "config",
        "dir",
        "disk",
        "doomed",
        "end_offset",
        "epochs",
        "generation",
        "high_watermark",
        "partition",
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
        self.dir = dir
        self.config = config
        self.disk = disk
        self._dice = dice
        self.segments = Segments()
        self.epochs = LeaderEpochs()
        self.producers = ProducerStates()
        self.start_offset: Offset = 0
        self.end_offset: Offset = 0
        self.high_watermark: Offset = 0
        self.recovery_point: Offset = 0
        self.snapshot_offset: Offset = -1
        self.generation = 0  # changes whenever bytes that were written go away
        self.doomed: tuple[Doomed, ...] = ()
        self._unsynced: tuple[Path, ...] = ()

    def __repr__(self) -> str:
        return f"Log({self.partition}, {self.start_offset} to {self.end_offset})"

    @property
    def last_stable_offset(self) -> Offset:
        """Below this every transaction has ended, and every marker is replicated."""
        unstable = self.producers.first_unstable_offset
        watermark = self.high_watermark
        return watermark if unstable is None or unstable > watermark else unstable

    @property
    def size(self) -> int:
        return self.segments.total_size()

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
            batch = analyse(batch, config, now_ms=now_ms, origin=origin)
        if batch.needs_rewrite:
            batch = rewrite(batch, config, now_ms)
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
        rolled = self._write(buffers, _new(Mark, (first, last, newest, size)), now_ms)
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

    def _write(self, buffers: Sequence[Buffer], mark: Mark, now_ms: int) -> bool:
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

    def append_as_follower(self, batches: Buffer, now_ms: int) -> Appended:
        """Append what the leader sent, as it is."""
        view = memoryview(batches)
        found = follower_append.whole_batches(self, view)
        first = found[0].base_offset if found else self.end_offset
        rolled = follower_append.write(self, view, found, now_ms)
        size = sum(batch.size for batch in found)
        count = sum(1 if batch.header is None else batch.header.count for batch in found)
        return Appended(
            first, self.end_offset - 1, -1, self.start_offset, size, count, False, rolled
        )

    def took_in(self, batch: StoredBatch, content: memoryview) -> None:
        """A batch that has its offsets already was written: the log reaches further."""
        self.end_offset = batch.last_offset + 1
        if batch.leader_epoch > self.epochs.latest:
            self.epochs.assign(batch.leader_epoch, batch.base_offset)
        self._note_aborted(replay(self.producers, batch, content))

    def roll(self, now_ms: int, base_offset: Offset | None = None) -> bool:
        """Close the active segment and begin another at the log's end, unless it is empty."""
        base = self.end_offset if base_offset is None else base_offset
        active = self.segments.active
        if active.size == 0:
            if active.base_offset == base:
                return False
            self.segments.remove(active)
            active.delete()
        else:
            active.finish()
            if any(state.coordinator_epoch >= 0 for state in self.producers):
                # So that a missing index can be told from one that was never needed.
                self.disk.open_append(active.path(TXN_INDEX)).close()
            active.release()
            self.sync_later(*(active.path(kind) for kind in (INDEX, TIME_INDEX, TXN_INDEX)))
            self.write_snapshot(base)
        self.add_segment(base, now_ms)
        return True

    def maybe_roll(self, now_ms: int) -> bool:
        """Close an active segment that is too old, though nothing is being appended."""
        active = self.segments.active
        if not active.size:
            return False
        waited = waited_ms(active, now_ms, now_ms)
        return waited > self.config.segment_ms - active.jitter_ms and self.roll(now_ms)

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
            size = max(first, max_bytes)
        return Read(segment.slice(position, size), offset, segment.base_offset, position)

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record at least as new as `timestamp`."""
        return lookup.by_timestamp(self, timestamp)

    def max_timestamp(self) -> TimestampOffset | None:
        """The record with the largest timestamp."""
        return lookup.newest(self)

    def aborted_transactions(self, start: Offset, end: Offset) -> list[AbortedTxn]:
        """The aborted transactions with a record in [start, end)."""
        return lookup.aborted(self, start, end)

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

    def raise_start_offset(self, offset: Offset) -> bool:
        """Hide what lies below; OFFSET_OUT_OF_RANGE above the high watermark."""
        return truncation.raise_start(self, offset)

    def delete_records(self, offset: Offset) -> Offset:
        """As a client asks, -1 for all that is committed; where the log starts now."""
        truncation.raise_start(self, self.high_watermark if offset == -1 else offset)
        return self.start_offset

    def truncate_to(self, offset: Offset) -> bool:
        return truncation.truncate_to(self, offset)

    def truncate_fully_and_start_at(self, offset: Offset) -> None:
        truncation.truncate_fully(self, offset)

    # Durability

    def flush_begin(self) -> Flush:
        """What must be synced now; `run` it on any thread, then `flush_done`."""
        return begin_flush(self)

    def flush_done(self, flush: Flush) -> None:
        """It has been synced. After a cut meanwhile it says nothing about what came since."""
        if flush.generation == self.generation:
            self.recovery_point = max(self.recovery_point, flush.upto)

    def flush(self) -> Offset:
        flush = self.flush_begin()
        flush.run()
        self.flush_done(flush)
        return self.recovery_point

    def close(self) -> None:
        """A clean stop: everything derived is complete on disk, and nothing needs recovery."""
        active = self.segments.active
        if self.recovery_point < self.end_offset or self.snapshot_offset < self.end_offset:
            if active.size:
                active.finish()
                self.sync_later(active.path(INDEX), active.path(TIME_INDEX))
            self.write_snapshot(self.end_offset)
        self.flush()
        for segment in self.segments:
            segment.release()

    # Segments that go

    def delete_old_segments(self, now_ms: int) -> int:
        return retirement.delete_old(self, now_ms)

    def replace_segments(self, new: Segment, old: Sequence[Segment], now_ms: int) -> None:
        """Swap in what compaction wrote."""
        retirement.replace(self, new, old, now_ms)

    def purge_deleted(self, now_ms: int) -> int:
        """Remove files of segments that went long enough ago; how many segments."""
        return retirement.purge(self, now_ms)

    def rename_dir(self, dir: Path) -> None:
        """Move the whole folder; replies that are being sent are not disturbed."""
        for segment in self.segments:
            segment.release()
        self.disk.rename(self.dir, dir)
        self.disk.sync_dir(dir.parent)
        self._unsynced = tuple(dir / path.name for path in self._unsynced)
        for segment in (*self.segments, *(doomed.segment for doomed in self.doomed)):
            segment.moved(dir)
        self.dir = dir

    def remove(self) -> None:
        """Delete everything there is of it."""
        for segment in self.segments:
            segment.release()
        self.disk.remove_tree(self.dir)

    # For the modules beside this one

    def set_topic_id(self, topic_id: TopicId) -> None:
        self.topic_id = topic_id
        partition_metadata.write(self.disk, self.dir, topic_id)
        self.sync_later(self.dir / partition_metadata.FILE_NAME)

    def add_segment(self, base_offset: Offset, created_ms: int) -> None:
        segment = Segment(self.disk, self.dir, base_offset)
        segment.created_ms = created_ms
        segment.jitter_ms = jitter_ms(self.config, self._dice)
        segment.file()  # there on disk from now on: its name remembers where the log ends
        self.segments.add(segment)
        self.changed_folder()

    def write_snapshot(self, offset: Offset) -> None:
        """Producer state as it is now, for the batches below `offset`."""
        if offset > self.snapshot_offset:
            self.write_later_synced(
                snapshot_path(self.dir, offset).name, snapshot.encode(self.producers.entries())
            )
            self.snapshot_offset = offset

    def write_later_synced(self, name: str, content: bytes) -> None:
        """Write a small file that the next flush makes durable."""
        self.disk.replace(self.dir / name, content, sync=False)
        self.sync_later(self.dir / name)

    def sync_later(self, *paths: Path) -> None:
        """These were written: the next flush makes them durable, if they are still there."""
        self._unsynced += paths

    def changed_folder(self) -> None:
        """Files came or went: the next flush syncs the folder."""
        if not self._unsynced:
            self.sync_later(self.dir / partition_metadata.FILE_NAME)

    def take_unsynced(self) -> tuple[Path, ...]:
        paths, self._unsynced = self._unsynced, ()
        return paths

    def _check_producer(
        self, header: BatchHeader, marker: Marker | None, origin: Origin
    ) -> Remembered | None:
        if not header.is_control:
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
        if aborted is not None:
            active = self.segments.active
            txn_index.append(self.disk, active.path(TXN_INDEX), aborted)
            active.aborted = None

    def _repeated(self, known: Remembered, header: BatchHeader, size: int) -> Appended:
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
