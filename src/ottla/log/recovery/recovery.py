"""What is left of a log after an unclean stop, found by reading every batch that may be torn.

Owns the difference between a tail that was never flushed and data that has rotted. Above the
recovery point the log is cut at the first bad batch: the system writes pages back in any order,
so a hole there is ordinary. What is cut is kept beside the segment (`.cut`), and said once. Below
the recovery point a bad batch is corruption: the segment is renamed `.quarantined`, and the
partition stays offline until somebody decides.

Everything recovered is synced before this returns: what is served after a crash survives the next.
Killed half way, it starts again from what it finds.
"""

from __future__ import annotations

import logging
from typing import Final, NamedTuple, NoReturn

from ottla.log.files import copy_range
from ottla.log.index import txn_index
from ottla.log.index.txn_index import AbortedTxn
from ottla.log.log import Log
from ottla.log.producers.snapshot_loading import replay, states_at
from ottla.log.results import CorruptLog
from ottla.log.segment.index_rebuild import note_stored
from ottla.log.segment.segment import (
    INDEX,
    LOG,
    MAX_RELATIVE_OFFSET,
    TIME_INDEX,
    TXN_INDEX,
    Segment,
)
from ottla.log.stored_batch import StoredBatch, checksum_ok, walk_whole
from ottla.model.ids import Offset
from ottla.protocol.records.batch import CorruptBatch

logger = logging.getLogger(__name__)

CUT: Final = ".cut"
QUARANTINED: Final = ".quarantined"


class ScannedSegment(NamedTuple):
    """How far a segment is good."""

    end_offset: Offset
    size: int
    fault: str | None  # why not further; None when all of it is good
    dense: bool  # no offset is missing: compaction has not been here


def recover(log: Log, recovery_point: Offset) -> None:
    """Read every segment from the one that holds the recovery point on."""
    segments = log.segments.starting_from(recovery_point)
    start = segments[0].base_offset
    producers = states_at(log.disk, log.dir, log.segments, start)
    log.restore(producers=producers, end_offset=start, recovery_point=start)
    log.epochs.truncate_from_end(start)
    log.snapshots.remove_above(start)  # they may include batches that are not there any more
    for at, segment in enumerate(segments):
        if at > 0:
            log.snapshots.write(producers, segment.base_offset)
        walked = _walk(log, segment)
        fault = walked.fault or _hole_after(log, walked, segments[at + 1 :])
        if fault is not None:
            if walked.end_offset < recovery_point:
                quarantine(log, segment, f"{fault}; the recovery point is {recovery_point}")
            _cut(log, segment, walked, segments[at + 1 :], fault)
            break
    log.restore(end_offset=max(log.end_offset, log.segments.active.base_offset))
    log.flush()


def quarantine(log: Log, segment: Segment, fault: str) -> NoReturn:
    """Take a segment that has rotted out of use, for good, and say so."""
    segment.release()
    path = segment.files.path(LOG)
    log.disk.rename(path, path.with_name(path.name + QUARANTINED))
    log.disk.sync_dir(log.dir)
    raise CorruptLog(f"{path}: {fault}")


def quarantine_log(log: Log, fault: CorruptBatch) -> NoReturn:
    """A batch that was flushed is none any more: find its segment and take it out of use."""
    for segment in log.segments:
        try:
            for _ in segment.headers():
                pass
        except CorruptBatch as rotten:
            quarantine(log, segment, str(rotten))
    raise CorruptLog(f"{log.dir}: {fault}")


def _walk(log: Log, segment: Segment) -> ScannedSegment:
    """Check every batch of a segment, and derive all that is derived from them."""
    size = segment.size
    aborted: list[AbortedTxn] = []
    fault, dense = None, True
    segment.reset_indexes()
    end = segment.base_offset
    try:
        for batch, content in walk_whole(segment.file(), 0, size):
            if (fault := _fault(segment, batch, content, end)) is not None:
                break
            dense = dense and _is_dense(batch, end)
            entry = replay(log.producers, batch, content)
            if entry is not None:
                aborted.append(entry)
            if batch.leader_epoch > log.epochs.latest:
                log.epochs.assign(batch.leader_epoch, batch.base_offset)
            note_stored(segment, batch, log.config.index_interval_bytes)
            end = batch.last_offset + 1
    except CorruptBatch as corrupt:
        fault = corrupt.reason
    valid, segment.size = segment.size, size
    _write_derived(log, segment, aborted)
    log.restore(end_offset=end)
    return ScannedSegment(end, valid, fault, dense)


def _fault(
    segment: Segment, batch: StoredBatch, content: memoryview, expected: Offset
) -> str | None:
    if not checksum_ok(batch, content):
        return f"batch at byte {batch.position} fails its checksum"
    if batch.last_offset < batch.base_offset or batch.base_offset < expected:
        return f"batch at byte {batch.position} has offset {batch.base_offset}"
    if batch.last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
        return f"batch at byte {batch.position} is too far from the segment's base"
    return None


def _is_dense(batch: StoredBatch, expected: Offset) -> bool:
    header = batch.header
    return (
        header is not None
        and header.base_offset == expected
        and header.count == header.last_offset_delta + 1
    )


def _hole_after(log: Log, walked: ScannedSegment, later: list[Segment]) -> str | None:
    """Whether the segment ends too early for the next one: its tail was lost whole.

    Compaction leaves such gaps too, so only where it cannot have been at work.
    """
    if not later or walked.end_offset == later[0].base_offset:
        return None
    if not walked.dense or "compact" in log.config.cleanup_policy:
        return None
    return f"nothing between offset {walked.end_offset} and {later[0].base_offset}"


def _write_derived(log: Log, segment: Segment, aborted: list[AbortedTxn]) -> None:
    path = segment.files.path(TXN_INDEX)
    log.disk.remove(path)
    if aborted or any(state.coordinator_epoch >= 0 for state in log.producers):
        txn_index.write(log.disk, path, aborted)  # an empty one tells that none was lost
    segment.aborted = None
    segment.finish()
    log.directory.sync_later(segment.files.path(INDEX), segment.files.path(TIME_INDEX), path)


def _cut(
    log: Log, segment: Segment, walked: ScannedSegment, later: list[Segment], fault: str
) -> None:
    """Keep what is bad beside the log, the last first, and end the log before it."""
    gone = segment.size - walked.size
    for dropped in reversed(later):
        gone += dropped.size
        log.segments.remove(dropped)
        dropped.rename(CUT)
    if segment.size > walked.size:
        path = segment.files.path(LOG)
        beside = path.with_name(f"{path.name}.{walked.size}{CUT}")
        copy_range(log.disk, segment.file(), walked.size, beside)
        segment.file().truncate(walked.size)
        segment.file().sync()  # a flush skips an empty segment: truncated bytes might come back
        segment.size = walked.size
    logger.warning(
        "%s: cut at offset %d, %d bytes kept beside it: %s",
        log.partition,
        walked.end_offset,
        gone,
        fault,
    )
