"""Cutting a log: at its end, all of it, or at its start.

Owns what else must follow: segments, epochs, producers, watermarks. Never decides where to cut.
Later segments go before earlier ones, so that a crash half way leaves a log without holes; and a
cut is durable before this returns, or what was cut could come back among what is written next.

The recovery point falls with the end. Whoever keeps it in a checkpoint writes that again before
the log is appended to: bytes that replace cut ones are not flushed, whatever stood there before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.log.producers.producer_states import ProducerStates
from ottla.log.producers.snapshot_loading import snapshot_offsets, snapshot_path, states_at
from ottla.log.segment.rollover import add_segment
from ottla.log.segment.segment_list import SegmentList
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import Offset

if TYPE_CHECKING:
    from ottla.log.log import Log


def truncate_to(log: Log, offset: Offset) -> bool:
    """Drop everything from `offset` on; whether there was anything."""
    log.epochs.truncate_from_end(offset)
    if offset >= log.end_offset:
        return False
    if offset < log.segments.first.base_offset:
        truncate_fully(log, offset)
        return True
    log.generation += 1
    for segment in reversed(list(log.segments)):
        if segment.base_offset <= offset:
            break
        log.segments.remove(segment)
        segment.delete()
    log.disk.sync_dir(log.dir)
    active = log.segments.active
    position = active.position_of(offset)
    if position < active.size:  # an offset inside a batch: all of that batch goes
        offset = min(offset, active.batch_at(position).base_offset)
    active.truncate_to(offset)
    active.sync_data()
    log.end_offset = offset
    log.epochs.truncate_from_end(offset)
    _lower_marks(log, offset)
    _drop_snapshots(log, above=offset)
    log.producers = states_at(log.disk, log.dir, log.segments, offset)
    log.producers.high_watermark_moved(log.high_watermark)
    return True


def truncate_fully(log: Log, offset: Offset) -> None:
    """Drop everything and begin at `offset`, which may lie anywhere."""
    log.generation += 1
    for segment in reversed(list(log.segments)):
        segment.delete()
    _drop_snapshots(log, above=-1)
    log.segments = SegmentList()
    log.producers = ProducerStates()
    log.epochs.clear()
    log.end_offset = log.start_offset = log.high_watermark = offset
    log.recovery_point = min(log.recovery_point, offset)
    log.snapshot_offset = -1
    add_segment(log, offset, created_ms=0)
    log.disk.sync_dir(log.dir)


def raise_start(log: Log, offset: Offset) -> bool:
    """Hide everything below `offset`; whether the start moved. It never passes the watermark."""
    if offset > log.high_watermark:
        raise KafkaError(
            ErrorCode.offset_out_of_range,
            f"{log.partition}: start offset {offset} is above the high watermark "
            f"{log.high_watermark}",
        )
    if offset <= log.start_offset:
        return False
    log.start_offset = offset
    log.epochs.truncate_from_start(offset)
    return True


def delete_records(log: Log, offset: Offset) -> Offset:
    """As a client asks, -1 for all that is committed; where the log starts now."""
    raise_start(log, log.high_watermark if offset == -1 else offset)
    return log.start_offset


def _lower_marks(log: Log, offset: Offset) -> None:
    log.start_offset = min(log.start_offset, offset)
    log.high_watermark = min(log.high_watermark, offset)
    log.recovery_point = min(log.recovery_point, offset)


def _drop_snapshots(log: Log, *, above: Offset) -> None:
    kept = -1
    for offset in snapshot_offsets(log.disk.list(log.dir)):
        if offset > above:
            log.disk.remove(snapshot_path(log.dir, offset))
        else:
            kept = max(kept, offset)
    log.snapshot_offset = kept  # there may be none where the log ends now: closing writes it
