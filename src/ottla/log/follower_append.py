"""Appending what a leader sent: offsets and epochs stay as they are.

Owns the checks a follower makes: whole batches with good checksums, offsets that rise and do not
begin below our end. A last batch cut short (a fetch is bounded in bytes) is left for next time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.log.files import Buffer
from ottla.log.results import Appended
from ottla.log.segment.rollover import must_roll
from ottla.log.segment.segment import MAX_RELATIVE_OFFSET, SegmentPosition
from ottla.log.stored_batch import HEADER_SIZE, LEAST_BYTES, StoredBatch, checksum_ok, parse
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import Offset
from ottla.protocol.records.batch import CorruptBatch
from ottla.protocol.records.header import MAGIC_AT

if TYPE_CHECKING:
    from ottla.log.log import Log


def append(log: Log, batches: Buffer, now_ms: int) -> Appended:
    """Append what the leader sent, as it is; KafkaError, and none of it, if any is bad."""
    view = memoryview(batches)
    found = whole_batches(log, view)
    first = found[0].base_offset if found else log.end_offset
    rolled = write(log, view, found, now_ms)
    size = sum(batch.size for batch in found)
    count = sum(1 if batch.header is None else batch.header.count for batch in found)
    return Appended(first, log.end_offset - 1, -1, log.start_offset, size, count, False, rolled)


def whole_batches(log: Log, view: memoryview) -> list[StoredBatch]:
    """What of a fetched record set may be appended; KafkaError if any of it must not be."""
    found: list[StoredBatch] = []
    at, expected = 0, log.end_offset
    while not _cut_short(view, at):
        try:
            batch = parse(view, at, at)
        except CorruptBatch as fault:
            raise KafkaError(ErrorCode.corrupt_message, str(fault)) from None
        if batch.next_position > len(view):
            break
        if not checksum_ok(batch, view[at : batch.next_position]):
            raise KafkaError(ErrorCode.corrupt_message, f"batch at byte {at} fails its checksum")
        _check_offsets(batch, expected)
        expected = batch.last_offset + 1
        found.append(batch)
        at = batch.next_position
    return found


def _cut_short(view: memoryview, at: int) -> bool:
    left = len(view) - at
    return left < LEAST_BYTES or (left < HEADER_SIZE and view[at + MAGIC_AT] == 2)


def _check_offsets(batch: StoredBatch, expected: Offset) -> None:
    if batch.base_offset < expected or batch.last_offset < batch.base_offset:
        raise KafkaError(
            ErrorCode.offset_out_of_range,
            f"batch of offsets {batch.base_offset} to {batch.last_offset}, expected {expected}",
        )


def write(log: Log, view: memoryview, batches: list[StoredBatch], now_ms: int) -> bool:
    """Write batches in as few pieces as rolling allows; whether a segment was closed."""
    rolled = False
    run: list[tuple[StoredBatch, SegmentPosition]] = []
    pending = 0
    for batch in batches:
        mark = SegmentPosition(
            batch.base_offset, batch.last_offset, batch.max_timestamp, batch.size
        )
        ahead = mark._replace(size=pending + batch.size)
        active = log.segments.active
        full = bool(run) and active.size + ahead.size > log.config.segment_bytes
        if full or must_roll(active, log.config, ahead, now_ms):
            _write_run(log, view, run)
            run, pending = [], 0
            rolled = log.roll(now_ms, _new_base(log, batch)) or rolled
        run.append((batch, mark))
        pending += batch.size
    _write_run(log, view, run)
    return rolled


def _new_base(log: Log, batch: StoredBatch) -> Offset:
    """Our end, even if the batch begins later: then segments join without a hole between."""
    near = batch.last_offset - log.end_offset <= MAX_RELATIVE_OFFSET
    return log.end_offset if near else batch.base_offset


def _write_run(log: Log, view: memoryview, run: list[tuple[StoredBatch, SegmentPosition]]) -> None:
    if not run:
        return
    piece: Buffer = view[run[0][0].position : run[-1][0].next_position]
    marks = [mark for _, mark in run]
    log.segments.active.append((piece,), marks, log.config.index_interval_bytes)
    for batch, _ in run:
        log.took_in(batch, view[batch.position : batch.next_position])
