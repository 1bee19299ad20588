"""Batches of a producer that its snapshot had no room for, found again in the log.

Owns nothing. Kafka's snapshot holds one batch per producer, while a client may repeat any of its
last five; after a restart the other four are unknown. To refuse such a repeat as out of order
would be worse than slow: Java's client then sends it once more under a new epoch, and it stands
there twice. So the log is read back before anybody is refused. That is rare, and bounded.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from ottla.log.producers.producer_states import (
    REMEMBERED_BATCHES,
    Marker,
    ProducerState,
    RecentBatch,
)
from ottla.log.segment.search import position_of
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import Offset
from ottla.protocol.records.batch import BatchHeader

if TYPE_CHECKING:
    from ottla.log.log import Log
    from ottla.log.validate import Origin

REACH_RECORDS: Final = 10_000
"""How far before what is known we look: what was in flight when we stopped is near it."""


def check_producer(
    log: Log, header: BatchHeader, marker: Marker | None, origin: Origin
) -> RecentBatch | None:
    """The batch that this one duplicates, if any; KafkaError if it must not be appended."""
    producers = log.producers
    if not header.is_control:
        try:
            return producers.check(header, origin)
        except KafkaError as refusal:
            out_of_order = refusal.code is ErrorCode.out_of_order_sequence_number
            if not (out_of_order and find_batches(log, header)):
                raise
        return producers.check(header, origin)
    if marker is not None:
        producers.check_marker(header, marker)
    return None


def find_batches(log: Log, header: BatchHeader) -> bool:
    """Look for what this batch may be a repeat of; whether more is known now."""
    state = log.producers.get(header.producer_id)
    if state is None or header.producer_epoch != state.epoch:
        return False
    room = REMEMBERED_BATCHES - len(state.batches)
    if not room or not state.batches:
        return False
    earlier = _before(log, state, state.batches[0].first_offset, room)
    state.batches[:0] = earlier
    return bool(earlier)


def _before(log: Log, state: ProducerState, end: Offset, room: int) -> deque[RecentBatch]:
    """The last batches of this producer's epoch below `end`, in order."""
    start = max(log.start_offset, end - REACH_RECORDS)
    batches: deque[RecentBatch] = deque(maxlen=room)
    for segment in log.segments.starting_from(start):
        if segment.base_offset >= end:
            break
        for batch in segment.headers(position_of(segment, start)):
            header = batch.header
            if batch.base_offset >= end:
                break
            if (
                header is not None
                and header.producer_id == state.producer_id
                and header.producer_epoch == state.epoch
                and not header.is_control
            ):
                batches.append(
                    RecentBatch(
                        header.base_sequence,
                        header.last_sequence,
                        batch.base_offset,
                        batch.last_offset,
                        batch.max_timestamp,
                    )
                )
    return batches
