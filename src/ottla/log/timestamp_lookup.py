"""Finding records in a log by timestamp.

Owns the lookups of ListOffsets. Never changes the log, except that a wrong index is rebuilt.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ottla.log.segment.search import position_for_timestamp, position_of
from ottla.log.segment.segment import Segment
from ottla.log.stored_batch import StoredBatch
from ottla.model.ids import LeaderEpoch, Offset
from ottla.protocol.records import legacy
from ottla.protocol.records.record import read_records

if TYPE_CHECKING:
    from ottla.log.log import Log


class TimestampOffset(NamedTuple):
    """A record's timestamp and offset, and the leader epoch it was written under."""

    timestamp: int
    offset: Offset
    leader_epoch: LeaderEpoch


def offset_for_timestamp(log: Log, timestamp: int) -> TimestampOffset | None:
    """The first record (not before the log start) that is at least as new as `timestamp`."""
    for segment in log.segments.starting_from(log.start_offset):
        if segment.max_timestamp < timestamp:
            continue
        for batch in segment.headers(position_for_timestamp(segment, timestamp)):
            if batch.max_timestamp < timestamp or batch.last_offset < log.start_offset:
                continue
            for offset, stamp in record_timestamps(segment, batch):
                if stamp >= timestamp and offset >= log.start_offset:
                    return TimestampOffset(stamp, offset, log.epochs.epoch_of(offset))
    return None


def max_timestamp_offset(log: Log) -> TimestampOffset | None:
    """The record with the largest timestamp, the first such; None where none has a timestamp."""
    segments = [segment for segment in log.segments if segment.max_timestamp >= 0]
    if not segments:
        return None
    segment = max(segments, key=lambda segment: segment.max_timestamp)
    largest = segment.max_timestamp
    batch = segment.batch_at(position_of(segment, segment.max_timestamp_offset))
    for offset, stamp in record_timestamps(segment, batch):
        if stamp == largest:
            return TimestampOffset(stamp, offset, log.epochs.epoch_of(offset))
    return TimestampOffset(largest, batch.last_offset, log.epochs.epoch_of(batch.last_offset))


def record_timestamps(segment: Segment, batch: StoredBatch) -> Iterator[tuple[Offset, int]]:
    """Offset and timestamp of each record of a batch, of any format."""
    content = segment.file().slice(batch.position, batch.size).read()
    if batch.header is not None:
        for record in read_records(content):
            yield record.offset, record.timestamp
        return
    for entry in legacy.entries(content):
        for record in legacy.records(entry):
            yield record.offset, record.timestamp
