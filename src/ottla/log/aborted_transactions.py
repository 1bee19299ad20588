"""The aborted transactions of a log: looking them up, and keeping their indexes complete.

Owns the `.txnindex` of each segment, which read-committed fetches and compaction need. An index
that is lost or wrong is rebuilt from the log.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ottla.log.files import OutOfResources
from ottla.log.index import txn_index
from ottla.log.index.sparse_index import CorruptIndex
from ottla.log.index.txn_index import AbortedTxn
from ottla.log.producers.snapshot_file import CorruptSnapshot, decode
from ottla.log.producers.snapshot_loading import (
    read_marker,
    replay_segment,
    snapshot_path,
    states_at,
)
from ottla.log.segment.search import position_of
from ottla.log.segment.segment import TXN_INDEX, Segment
from ottla.model.ids import Offset
from ottla.protocol.records.batch import CorruptBatch

if TYPE_CHECKING:
    from ottla.log.log import Log

logger = logging.getLogger(__name__)

NO_TRANSACTION: Final = -1


def find_aborted(log: Log, start: Offset, end: Offset) -> list[AbortedTxn]:
    """The aborted transactions with a record in [start, end)."""
    transactions: list[AbortedTxn] = []
    for segment in log.segments.starting_from(start):
        entries = aborted_in_segment(log, segment)
        transactions += txn_index.overlapping(entries, start, end)
        if any(entry.last_stable_offset >= end for entry in entries):
            break  # whatever ends later began at or after `end`
    return transactions


def aborted_in_segment(log: Log, segment: Segment) -> list[AbortedTxn]:
    """One segment's aborted transactions; its index is checked on first use."""
    if segment.aborted is None:
        try:
            entries = txn_index.read(log.disk, segment.files.path(TXN_INDEX))
            missing = not entries and _may_have_markers(log, segment)
            trusted = not missing and all(_is_confirmed(log, segment, entry) for entry in entries)
        except CorruptIndex:
            trusted = False
        segment.aborted = entries if trusted else _rebuild(log, segment)
    return segment.aborted


def rebuild_lost_index(log: Log, segment: Segment) -> list[AbortedTxn] | None:
    """The same where the index file is missing: it is rebuilt if it was lost.

    None if the segment itself cannot be read: then a reader gets that error.
    """
    try:
        return aborted_in_segment(log, segment)
    except CorruptBatch as fault:
        logger.warning("%s: cannot rebuild the transaction index: %s", segment.files.path(), fault)
        return None


def add_aborted(log: Log, transaction: AbortedTxn) -> None:
    """Add an entry to the active segment's transaction index."""
    active = log.segments.active
    path = active.files.path(TXN_INDEX)
    # A lost index is rebuilt first: with a new entry in it, nothing would notice the missing ones.
    is_lost = active.aborted is None and not log.disk.exists(path)
    try:
        entries = rebuild_lost_index(log, active) if is_lost else ()
        if entries is not None and transaction not in entries:
            txn_index.append(log.disk, path, transaction)
    except OutOfResources:  # the marker is in the log: a lost index is rebuilt when it is needed
        log.disk.remove(path)
    log.directory.sync_later(path)  # nothing notices an entry that is missing
    active.aborted = None


def ensure_index(log: Log, segment: Segment) -> None:
    """Write an empty index for a segment without aborted transactions, if there are producers.

    So a lost index differs from one that was never needed. Unless it was read or written since
    the log was loaded, a missing one may be lost: then it is rebuilt.
    """
    path = segment.files.path(TXN_INDEX)
    if log.disk.exists(path) or all(state.coordinator_epoch < 0 for state in log.producers):
        return
    if segment.aborted is None:
        rebuild_lost_index(log, segment)
    else:
        log.disk.open_append(path).close()


def _may_have_markers(log: Log, segment: Segment) -> bool:
    """Whether an index that is not there could be lost: transactions ended before its end.

    The snapshot at the next segment's start tells; where there is none, those producers do that
    are known now, as they do for the segment that is still written.
    """
    if log.disk.exists(segment.files.path(TXN_INDEX)):
        return False
    has_transactions = any(state.coordinator_epoch >= 0 for state in log.producers)
    if segment is log.segments.active:
        return has_transactions
    end = log.segments.end_of(log.segments.index_of(segment.base_offset), log.end_offset)
    path = snapshot_path(log.dir, end)
    if not log.disk.exists(path):
        return has_transactions
    try:
        return any(entry.coordinator_epoch >= 0 for entry in decode(log.disk.read(path)))
    except CorruptSnapshot:
        return True


def _is_confirmed(log: Log, segment: Segment, entry: AbortedTxn) -> bool:
    """Whether what an entry speaks of is there: its marker, its first batch, and the one that
    still held the stable offset."""
    position = position_of(segment, entry.last_offset)
    try:
        header = segment.batch_at(position).header if position < segment.size else None
        if header is None or not header.is_control or header.producer_id != entry.producer_id:
            return False
        marker = read_marker(segment.file().slice(position, header.size).read())
    except CorruptBatch:
        return False
    if header.last_offset != entry.last_offset or marker is None or marker.commits:
        return False
    owner = _writer_of(log, entry.first_offset)
    if owner not in (None, entry.producer_id):
        return False
    if entry.last_stable_offset == entry.last_offset + 1:
        return True
    return _writer_of(log, entry.last_stable_offset) not in (NO_TRANSACTION, entry.producer_id)


def _writer_of(log: Log, offset: Offset) -> int | None:
    """The producer whose transaction has a batch that begins at an offset.

    NO_TRANSACTION if another batch has the offset, None if none has: it was deleted or compacted.
    """
    segment = log.segments.floor(offset)
    position = position_of(segment, offset)
    if position >= segment.size:
        return None
    batch = segment.batch_at(position)
    header = batch.header
    if batch.base_offset > offset or offset < segment.base_offset:
        return None
    if header is None or header.is_control or not header.is_transactional:
        return NO_TRANSACTION
    return header.producer_id if header.base_offset == offset else NO_TRANSACTION


def _rebuild(log: Log, segment: Segment) -> list[AbortedTxn]:
    base = segment.base_offset
    end = log.segments.end_of(log.segments.index_of(base), log.end_offset)
    producers = states_at(log.disk, log.dir, log.segments, base)
    entries = replay_segment(producers, segment, base, end)
    if entries:  # else there was nothing to write in it, and that is all
        logger.warning(
            "%s: transaction index was missing or invalid; rebuilt it from the log",
            segment.files.path(),
        )
    # Synced: after a power failure nothing would check this segment again.
    txn_index.write(log.disk, segment.files.path(TXN_INDEX), entries, sync=True)
    return entries
