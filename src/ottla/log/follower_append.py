"""Appending what a leader sent: offsets and leader epochs stay as they are.

Owns the checks a follower makes: whole batches with valid checksums, offsets that rise and do not
begin below the log's end. A last batch cut short (a fetch is bounded in bytes) is not appended:
the next fetch returns it whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.log.files import Buffer
from ottla.log.results import Appended, CorruptSegment, Read
from ottla.log.segment.rollover import must_roll
from ottla.log.segment.segment import MAX_RELATIVE_OFFSET, SegmentPosition
from ottla.log.stored_batch import HEADER_SIZE, LEAST_BYTES, StoredBatch, checksum_ok, parse
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import Offset
from ottla.protocol.records.batch import CorruptBatch
from ottla.protocol.records.header import MAGIC_AT

if TYPE_CHECKING:
    from ottla.log.log import Log


def append_as_follower(log: Log, content: Buffer, now_ms: WallMs) -> Appended:
    """Append the batches the leader sent; KafkaError, and none of them, if any is invalid."""
    view = memoryview(content)
    batches = whole_batches(view, log.end_offset)
    first = batches[0].base_offset if batches else log.end_offset
    rolled = _write(log, view, batches, now_ms)
    size = sum(batch.size for batch in batches)
    count = sum(1 if batch.header is None else batch.header.count for batch in batches)
    return Appended(first, log.end_offset - 1, -1, log.start_offset, size, count, False, rolled)


def base_before(content: Buffer, offset: Offset) -> Offset | None:
    """Where the first batch begins, if that is before `offset` and the batch contains it.

    The log it was read from begins inside of the batch, because DeleteRecords ended there. An empty
    log must begin where the batch does.
    """
    view = memoryview(content)
    if _cut_short(view, 0):
        return None
    try:
        first = parse(view, 0, 0)
    except CorruptBatch:
        return None
    return first.base_offset if first.base_offset < offset <= first.last_offset else None


def whole_batches(view: memoryview, end_offset: Offset) -> list[StoredBatch]:
    """The whole batches of a fetched record set; KafkaError if any must not be appended."""
    batches: list[StoredBatch] = []
    position, expected = 0, end_offset
    while not _cut_short(view, position):
        try:
            batch = parse(view, position, position)
        except CorruptBatch as fault:
            raise KafkaError(ErrorCode.corrupt_message, str(fault)) from None
        if batch.next_position > len(view):
            break
        if not checksum_ok(batch, view[position : batch.next_position]):
            text = f"batch at byte {position} has an invalid checksum"
            raise KafkaError(ErrorCode.corrupt_message, text)
        _check_offsets(batch, expected)
        expected = batch.last_offset + 1
        batches.append(batch)
        position = batch.next_position
    return batches


def verify(read: Read) -> None:
    """CorruptSegment if a follower could not append what was read from a log."""
    if read.slice is None:
        return
    try:
        whole_batches(memoryview(read.slice.read()), 0)
    except KafkaError as refusal:
        raise CorruptSegment(read.segment_base, str(refusal), read.position) from None


def _cut_short(view: memoryview, position: int) -> bool:
    left = len(view) - position
    return left < LEAST_BYTES or (left < HEADER_SIZE and view[position + MAGIC_AT] == 2)


def _check_offsets(batch: StoredBatch, expected: Offset) -> None:
    if batch.base_offset < expected or batch.last_offset < batch.base_offset:
        raise KafkaError(
            ErrorCode.offset_out_of_range,
            f"batch has offsets {batch.base_offset} to {batch.last_offset}, "
            f"expected {expected} or more",
        )


def _write(log: Log, view: memoryview, batches: list[StoredBatch], now_ms: WallMs) -> bool:
    """Write batches with as few writes as rolling allows; whether a segment was closed."""
    rolled = False
    pending: list[StoredBatch] = []
    pending_bytes = 0
    for batch in batches:
        size = pending_bytes + batch.size
        ahead = SegmentPosition(batch.base_offset, batch.last_offset, batch.max_timestamp, size)
        active = log.segments.active
        full = bool(pending) and active.size + size > log.config.segment_bytes
        if full or must_roll(active, log.config, ahead, now_ms):
            log.append_stored(view, pending)
            pending, pending_bytes = [], 0
            rolled = log.roll(now_ms, _new_base(log, batch)) or rolled
        pending.append(batch)
        pending_bytes += batch.size
    log.append_stored(view, pending)
    return rolled


def _new_base(log: Log, batch: StoredBatch) -> Offset:
    """The log's end, even if the batch begins later: then there is no gap between segments."""
    near = batch.last_offset - log.end_offset <= MAX_RELATIVE_OFFSET
    return log.end_offset if near else batch.base_offset
