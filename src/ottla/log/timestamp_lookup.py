"""Finding offsets in a log by time, and the aborted transactions among them.

Owns the questions ListOffsets and read-committed fetches ask. Never changes the log, except that
an index found to be wrong is rebuilt.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

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
from ottla.log.segment.segment import TXN_INDEX, Segment
from ottla.log.stored_batch import StoredBatch
from ottla.model.ids import LeaderEpoch, Offset
from ottla.protocol.records import legacy
from ottla.protocol.records.batch import CorruptBatch
from ottla.protocol.records.record import read_records

logger = logging.getLogger(__name__)

NOBODY: Final = -1

if TYPE_CHECKING:
    from ottla.log.log import Log


class TimestampOffset(NamedTuple):
    """A record's time and place, and the leader epoch it was written under."""

    timestamp: int
    offset: Offset
    leader_epoch: LeaderEpoch


def by_timestamp(log: Log, timestamp: int) -> TimestampOffset | None:
    """The first record (not before the log start) that is at least as new as `timestamp`."""
    for segment in log.segments.starting_from(log.start_offset):
        if segment.max_timestamp < timestamp:
            continue
        for batch in segment.headers(segment.position_for_timestamp(timestamp)):
            if batch.max_timestamp < timestamp or batch.last_offset < log.start_offset:
                continue
            for offset, stamp in stamps(segment, batch):
                if stamp >= timestamp and offset >= log.start_offset:
                    return TimestampOffset(stamp, offset, log.epochs.epoch_of(offset))
    return None


def newest(log: Log) -> TimestampOffset | None:
    """The record with the largest timestamp, the first such; None where none has a timestamp."""
    segments = [segment for segment in log.segments if segment.max_timestamp >= 0]
    if not segments:
        return None
    segment = max(segments, key=lambda segment: segment.max_timestamp)
    largest = segment.max_timestamp
    batch = segment.batch_at(segment.position_of(segment.max_timestamp_offset))
    for offset, stamp in stamps(segment, batch):
        if stamp == largest:
            return TimestampOffset(stamp, offset, log.epochs.epoch_of(offset))
    return TimestampOffset(largest, batch.last_offset, log.epochs.epoch_of(batch.last_offset))


def stamps(segment: Segment, batch: StoredBatch) -> Iterator[tuple[Offset, int]]:
    """Offset and timestamp of each record of a batch, of any format."""
    content = segment.slice(batch.position, batch.size).read()
    if batch.header is not None:
        for record in read_records(content):
            yield record.offset, record.timestamp
        return
    for entry in legacy.entries(content):
        for record in legacy.records(entry):
            yield record.offset, record.timestamp


def aborted(log: Log, start: Offset, end: Offset) -> list[AbortedTxn]:
    """The aborted transactions with a record in [start, end)."""
    found: list[AbortedTxn] = []
    for segment in log.segments.starting_from(start):
        entries = aborted_in(log, segment)
        found += txn_index.overlapping(entries, start, end)
        if any(entry.last_stable_offset >= end for entry in entries):
            break  # whatever ends later began at or after `end`
    return found


def aborted_in(log: Log, segment: Segment) -> list[AbortedTxn]:
    """One segment's aborted transactions, checked the first time they are asked for."""
    if segment.aborted is None:
        try:
            entries = txn_index.read(log.disk, segment.path(TXN_INDEX))
            missing = not entries and _may_have_markers(log, segment)
            trusted = not missing and all(_borne_out(log, segment, entry) for entry in entries)
        except CorruptIndex:
            trusted = False
        segment.aborted = entries if trusted else _rebuild(log, segment)
    return segment.aborted


def find_lost(log: Log, segment: Segment) -> list[AbortedTxn] | None:
    """The same where there is no index: it is written anew if it was lost.

    None if the segment itself cannot be read: then there is none until a reader hears of that.
    """
    try:
        return aborted_in(log, segment)
    except CorruptBatch as fault:
        logger.warning("%r: its transaction index cannot be rebuilt: %s", segment, fault)
        return None


def _may_have_markers(log: Log, segment: Segment) -> bool:
    """Whether an index that is not there could be lost: transactions ended before its end.

    The snapshot at the next segment's start tells; where there is none, those producers do that
    are known now, as they do for the segment that is still written.
    """
    if log.disk.exists(segment.path(TXN_INDEX)):
        return False
    known = any(state.coordinator_epoch >= 0 for state in log.producers)
    if segment is log.segments.active:
        return known
    end = log.segments.end_of(log.segments.index_of(segment.base_offset), log.end_offset)
    path = snapshot_path(log.dir, end)
    if not log.disk.exists(path):
        return known
    try:
        return any(entry.coordinator_epoch >= 0 for entry in decode(log.disk.read(path)))
    except CorruptSnapshot:
        return True


def _borne_out(log: Log, segment: Segment, entry: AbortedTxn) -> bool:
    """Whether what an entry speaks of is there: its marker, its first batch, and the one that
    still held the stable offset."""
    position = segment.position_of(entry.last_offset)
    try:
        header = segment.batch_at(position).header if position < segment.size else None
        if header is None or not header.is_control or header.producer_id != entry.producer_id:
            return False
        marker = read_marker(segment.slice(position, header.size).read())
    except CorruptBatch:
        return False
    if header.last_offset != entry.last_offset or marker is None or marker.commits:
        return False
    owner = _writer_of(log, entry.first_offset)
    if owner not in (None, entry.producer_id):
        return False
    if entry.last_stable_offset == entry.last_offset + 1:
        return True
    return _writer_of(log, entry.last_stable_offset) not in (NOBODY, entry.producer_id)


def _writer_of(log: Log, offset: Offset) -> int | None:
    """Whose transaction has a batch that begins here; NOBODY's if another batch has the offset,
    None if none has: it was deleted or compacted."""
    segment = log.segments.floor(offset)
    position = segment.position_of(offset)
    if position >= segment.size:
        return None
    batch = segment.batch_at(position)
    header = batch.header
    if batch.base_offset > offset or offset < segment.base_offset:
        return None
    if header is None or header.is_control or not header.is_transactional:
        return NOBODY
    return header.producer_id if header.base_offset == offset else NOBODY


def _rebuild(log: Log, segment: Segment) -> list[AbortedTxn]:
    base = segment.base_offset
    end = log.segments.end_of(log.segments.index_of(base), log.end_offset)
    producers = states_at(log.disk, log.dir, log.segments, base)
    entries = replay_segment(producers, segment, base, end)
    if entries:  # else there was nothing to write in it, and that is all
        logger.warning("%r: transaction index rebuilt from the log", segment)
    # Nothing would look into this segment again, should the power go before it is on disk.
    txn_index.write(log.disk, segment.path(TXN_INDEX), entries, sync=True)
    return entries
