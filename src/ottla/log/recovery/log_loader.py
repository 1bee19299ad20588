"""Opening a partition's directory as a log: a new one, after a clean stop, after an unclean one.

Owns the order of loading. The log is complete when it is returned. After a clean stop nothing is
read but file names, the small files and the end of the last segment, because a broker may have ten
thousand logs to open.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ottla.log import leader_epochs
from ottla.log.directories import partition_metadata
from ottla.log.directories.checkpoint_file import BadCheckpoint
from ottla.log.files import Disk
from ottla.log.leader_epochs import LeaderEpochs
from ottla.log.log import Log
from ottla.log.producers.snapshot_loading import states_at
from ottla.log.recovery.recovery import QUARANTINED, quarantine_log, recover
from ottla.log.recovery.swap_files import base_offset_of, complete_interrupted_operations
from ottla.log.results import CorruptLog
from ottla.log.segment.index_rebuild import rebuild_indexes
from ottla.log.segment.segment import (
    INDEX,
    LOG,
    SUFFIXES,
    TIME_INDEX,
    Segment,
    file_name,
)
from ottla.log.segment.segment_end import SegmentEnd, check_newest, load_end
from ottla.log.segment.segment_list import SegmentList
from ottla.model.clock import WallMs
from ottla.model.ids import NO_TOPIC_ID, Offset, TopicId, TopicPartition
from ottla.protocol.records.batch import CorruptBatch

if TYPE_CHECKING:
    from random import Random

    from ottla.config.topic import TopicConfig

logger = logging.getLogger(__name__)


class LogLocation(NamedTuple):
    """What every log of a broker is opened with: disk, random source, time."""

    disk: Disk
    random: Random
    now_ms: WallMs


class CheckpointedState(NamedTuple):
    """A partition's state in the checkpoint files of its log directory."""

    clean: bool  # the broker was stopped cleanly
    recovery_point: Offset = 0
    start_offset: Offset = 0


def create(
    partition: TopicPartition, dir: Path, config: TopicConfig, place: LogLocation, topic_id: TopicId
) -> Log:
    """A new, empty log. `LogDirectory.sync` makes it durable, its first flush what is in it."""
    place.disk.mkdir(dir)
    log = Log(partition, dir, config, place.disk, place.random)
    if topic_id != NO_TOPIC_ID:
        log.set_topic_id(topic_id)
    log.add_segment(0, place.now_ms)
    return log


def load(
    partition: TopicPartition,
    dir: Path,
    config: TopicConfig,
    place: LogLocation,
    checkpointed: CheckpointedState,
) -> Log:
    """The log of a partition's directory; CorruptLog if flushed data is missing or corrupt."""
    log = Log(partition, dir, config, place.disk, place.random)
    try:
        _load(log, place, checkpointed)
    except CorruptBatch as fault:
        quarantine_log(log, fault)
    return log


def _load(log: Log, place: LogLocation, checkpointed: CheckpointedState) -> None:
    dir = log.dir
    names = complete_interrupted_operations(place.disk, dir)
    if quarantined := next((name for name in names if name.endswith(QUARANTINED)), None):
        raise CorruptLog(
            f"{dir / quarantined}: quarantined since an earlier start; restore or delete it"
        )
    if partition_metadata.FILE_NAME in names:
        topic_id = partition_metadata.read(place.disk, dir)
        log.restore(topic_id=None if topic_id == NO_TOPIC_ID else topic_id)
    _load_segments(log, names, checkpointed, place.now_ms)
    _load_epochs(log, names)
    if checkpointed.clean:
        _open_cleanly(log, names)
    else:
        _check_flushed(log, names, checkpointed.recovery_point)
        recover(log, checkpointed.recovery_point)
    _start_at(log, checkpointed.start_offset)
    log.snapshots.remove_unneeded((segment.base_offset for segment in log.segments), log.end_offset)
    log.release()


def _load_segments(
    log: Log, names: list[str], checkpointed: CheckpointedState, now_ms: WallMs
) -> None:
    present = set(names)
    segments: list[Segment] = []
    for name in names:
        base = base_offset_of(name)
        if base is None or name not in [file_name(base, kind) for kind in SUFFIXES]:
            continue
        if name.endswith(LOG):
            segment = Segment(log.disk, log.dir, base, size=log.disk.file_size(log.dir / name))
            segment.created_ms = now_ms
            segments.append(segment)
        elif file_name(base, LOG) not in present:
            log.disk.remove(log.dir / name)  # an index without a log file
    log.restore(segments=SegmentList(segments))
    if not segments:
        log.add_segment(checkpointed.start_offset, now_ms)


def _load_epochs(log: Log, names: list[str]) -> None:
    """The leader epochs, from the batches themselves where the file is missing or bad."""
    if leader_epochs.FILE_NAME in names:
        try:
            log.restore(epochs=leader_epochs.read(log.disk, log.dir))
            return
        except BadCheckpoint as fault:
            logger.warning(
                "%s: ignoring leader epoch checkpoint, reading the log instead: %s",
                log.partition,
                fault,
            )
    _read_epochs(log)


def _check_epochs(log: Log, end: SegmentEnd, last_batch_end: Offset | None = None) -> None:
    """The last batch must have the epoch of its offset, else the file is outdated."""
    log.epochs.truncate_from_end(end.offset)
    last = (end.offset if last_batch_end is None else last_batch_end) - 1
    if end.leader_epoch != log.epochs.epoch_of(last) and end.leader_epoch >= 0:
        logger.warning(
            "%s: leader epoch checkpoint does not match the log, reading the log instead",
            log.partition,
        )
        _read_epochs(log)
        log.epochs.truncate_from_end(end.offset)


def _read_epochs(log: Log) -> None:
    log.restore(epochs=LeaderEpochs(saved=False))
    for segment in log.segments:
        try:
            for batch in segment.headers():
                if batch.leader_epoch > log.epochs.latest:
                    log.epochs.assign(batch.leader_epoch, batch.base_offset)
        except CorruptBatch:
            return  # recovery handles it and reads the rest


def _open_cleanly(log: Log, names: list[str]) -> None:
    _rebuild_missing(log, log.segments[:], names)
    active = log.segments.active
    end = load_end(active) if active.size else SegmentEnd(active.base_offset, -1)
    _check_epochs(log, end)
    log.restore(end_offset=end.offset, recovery_point=end.offset)
    if log.end_offset > log.segments.first.base_offset:
        log.restore(producers=states_at(log.disk, log.dir, log.segments, end.offset))


def _check_flushed(log: Log, names: list[str], recovery_point: Offset) -> None:
    """Check the segments that recovery does not scan.

    Their data and indexes are durable, except those of the last one: it may have been closed after
    the last flush.
    """
    flushed = log.segments[: log.segments.index_of(recovery_point)]
    _rebuild_missing(log, flushed, names)
    if flushed:
        check_newest(flushed[-1])
        end = load_end(flushed[-1])
        # Compaction may have left nothing of an epoch that began before the next segment.
        _check_epochs(log, end._replace(offset=log.segments[len(flushed)].base_offset), end.offset)


def _rebuild_missing(log: Log, segments: list[Segment], names: list[str]) -> None:
    present = set(names)
    for segment in segments:
        needed = {segment.files.path(INDEX).name, segment.files.path(TIME_INDEX).name}
        if segment.size and not needed <= present:
            rebuild_indexes(segment, "an index is missing", log.config.index_interval_bytes)


def _start_at(log: Log, start_offset: Offset) -> None:
    """Set the start offset and the state that depends on it."""
    if start_offset > log.end_offset:
        logger.warning(
            "%s: log end %d is below its start %d; deleted it and started at %d",
            log.partition,
            log.end_offset,
            start_offset,
            start_offset,
        )
        log.truncate_fully_and_start_at(start_offset)
        return
    log.restore(start_offset=max(start_offset, log.segments.first.base_offset))
    log.epochs.truncate_from_end(log.end_offset)
    log.epochs.truncate_from_start(log.start_offset)
    log.producers.on_high_watermark_changed(log.high_watermark)
