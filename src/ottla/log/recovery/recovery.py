"""Recovery of a log after an unclean stop: reads every batch above the recovery point.

Owns the difference between an unflushed tail and corrupt data. Above the recovery point the log is
truncated at the first invalid batch: the kernel writes pages back in any order, so a gap there is
expected. Removed bytes are saved beside the segment (`.cut`) and logged once. Below the recovery
point an invalid batch is corruption: the segment is renamed `.quarantined`, and the partition stays
offline until an operator restores or deletes it.

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
from ottla.log.results import CorruptLog, CorruptSegment
from ottla.log.segment.index_rebuild import record_stored_batch
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
    """How far a segment is valid."""

    end_offset: Offset
    size: int
    fault: str | None  # of the first invalid batch; None when all of it is valid
    dense: bool  # no offset is missing: it was not compacted


def recover(log: Log, recovery_point: Offset) -> None:
    """Read every segment from the one that holds the recovery point on."""
    segments = log.segments.starting_from(recovery_point)
    start = segments[0].base_offset
    producers = states_at(log.disk, log.dir, log.segments, start)
    log.restore(producers=producers, end_offset=start, recovery_point=start)
    log.epochs.truncate_from_end(start)
    log.snapshots.remove_above(start)  # they may include batches that are not there any more
    for index, segment in enumerate(segments):
        if index > 0:
            log.snapshots.write(producers, segment.base_offset)
        scanned = _scan(log, segment)
        fault = scanned.fault or _gap_after(log, scanned, segments[index + 1 :])
        if fault is not None:
            if scanned.end_offset < recovery_point:
                quarantine(log, segment, f"{fault}; the recovery point is {recovery_point}")
            _truncate(log, segment, scanned, segments[index + 1 :], fault)
            break
    log.restore(end_offset=max(log.end_offset, log.segments.active.base_offset))
    log.flush()


def quarantine(log: Log, segment: Segment, fault: str) -> NoReturn:
    """Rename a corrupt segment so that it is not used again."""
    segment.release()
    path = segment.files.path(LOG)
    log.disk.rename(path, path.with_name(path.name + QUARANTINED))
    log.disk.sync_dir(log.dir)
    raise CorruptLog(f"{path}: corrupt, renamed to {path.name}{QUARANTINED}: {fault}")


def quarantine_log(log: Log, fault: CorruptBatch) -> NoReturn:
    """A flushed batch is corrupt: find its segment and quarantine it."""
    for segment in log.segments:
        if isinstance(fault, CorruptSegment) and segment.base_offset == fault.segment_base:
            quarantine(log, segment, str(fault))
        try:
            for _ in segment.headers():
                pass
        except CorruptBatch as corrupt:
            quarantine(log, segment, str(corrupt))
    raise CorruptLog(f"{log.dir}: {fault}")


def _scan(log: Log, segment: Segment) -> ScannedSegment:
    """Check every batch of a segment; rebuild its indexes, producer state and leader epochs."""
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
            record_stored_batch(segment, batch, log.config.index_interval_bytes)
            end = batch.last_offset + 1
    except CorruptBatch as corrupt:
        fault = corrupt.reason
    valid, segment.size = segment.size, size
    _write_indexes(log, segment, aborted)
    log.restore(end_offset=end)
    return ScannedSegment(end, valid, fault, dense)


def _fault(
    segment: Segment, batch: StoredBatch, content: memoryview, expected: Offset
) -> str | None:
    if not checksum_ok(batch, content):
        return f"batch at byte {batch.position} has an invalid checksum"
    if batch.last_offset < batch.base_offset or batch.base_offset < expected:
        return f"batch at byte {batch.position} has offset {batch.base_offset}, expected {expected}"
    if batch.last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
        return f"batch at byte {batch.position} has an offset too large for its segment"
    return None


def _is_dense(batch: StoredBatch, expected: Offset) -> bool:
    header = batch.header
    return (
        header is not None
        and header.base_offset == expected
        and header.count == header.last_offset_delta + 1
    )


def _gap_after(log: Log, scanned: ScannedSegment, later: list[Segment]) -> str | None:
    """The fault of a segment that ends before the next one begins: its tail was lost.

    Compaction leaves such gaps too, so only where the log was not compacted.
    """
    if not later or scanned.end_offset == later[0].base_offset:
        return None
    if not scanned.dense or "compact" in log.config.cleanup_policy:
        return None
    return f"offsets {scanned.end_offset} to {later[0].base_offset - 1} are missing"


def _write_indexes(log: Log, segment: Segment, aborted: list[AbortedTxn]) -> None:
    path = segment.files.path(TXN_INDEX)
    log.disk.remove(path)
    if aborted or any(state.coordinator_epoch >= 0 for state in log.producers):
        txn_index.write(log.disk, path, aborted)  # an empty one shows that none was lost
    segment.aborted = None
    segment.finish()
    log.directory.sync_later(segment.files.path(INDEX), segment.files.path(TIME_INDEX), path)


def _truncate(
    log: Log, segment: Segment, scanned: ScannedSegment, later: list[Segment], fault: str
) -> None:
    """Save invalid bytes in `.cut` files, the last first, and end the log before them."""
    removed_bytes = segment.size - scanned.size
    for dropped in reversed(later):
        removed_bytes += dropped.size
        log.segments.remove(dropped)
        dropped.rename(CUT)
    if segment.size > scanned.size:
        path = segment.files.path(LOG)
        saved = path.with_name(f"{path.name}.{scanned.size}{CUT}")
        copy_range(log.disk, segment.file(), scanned.size, saved)
        segment.file().truncate(scanned.size)
        segment.file().sync()  # a flush skips an empty segment: truncated bytes might come back
        segment.size = scanned.size
    logger.warning(
        "%s: truncated to offset %d during recovery, saved %d bytes to .cut files: %s",
        log.partition,
        scanned.end_offset,
        removed_bytes,
        fault,
    )
