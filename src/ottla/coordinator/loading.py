"""Reading a partition of an internal topic back, when this broker begins to lead it.

Owns the pace: files are read and records decoded on the pool, and what was decoded is replayed a
few hundred records at a time, so that a million of them do not stop the loop. Never decides what
a record means.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

from ottla.coordinator.shard import Shard
from ottla.log.slices import FileSlice
from ottla.model.ids import NO_PRODUCER, Offset, ProducerId
from ottla.protocol.records.batch import walk
from ottla.protocol.records.control import ControlType, decode_marker
from ottla.protocol.records.record import read_records
from ottla.replica.partition import Partition
from ottla.replica.surroundings import Off

log = logging.getLogger(__name__)

TURN: Final = 500
"""Records replayed between two turns of the loop."""

Decode: TypeAlias = Callable[[bytes, bytes | None], Any | None]


class Ended(NamedTuple):
    """A transaction marker."""

    committed: bool


class Stretch(NamedTuple):
    """What one read found: decoded records with offset and producer, and where to go on."""

    records: list[tuple[Any, Offset, ProducerId]]
    next_offset: Offset
    unknown: int


async def load(
    partition: Partition,
    shard: Shard,
    off: Off,
    *,
    still_wanted: Callable[[], bool],
    buffer_bytes: int,
) -> bool:
    """Replay the whole log; False when it stopped because it is not wanted any more."""
    log_ = partition.log
    offset = log_.start_offset
    end = log_.end_offset
    while offset < end:
        read = log_.read(offset, buffer_bytes, end=end, min_one=True)
        if read.slice is None:
            break
        stretch = await off.run(decode, read.slice, shard.decode)
        if not still_wanted():
            return False
        if stretch.unknown:
            log.warning("%s: %d records of unknown kinds", partition.key, stretch.unknown)
        for at in range(0, len(stretch.records), TURN):
            _replay(shard, stretch.records[at : at + TURN])
            await asyncio.sleep(0)
            if not still_wanted():
                return False
        offset = max(stretch.next_offset, offset + 1)
    return True


def _replay(shard: Shard, records: list[tuple[Any, Offset, ProducerId]]) -> None:
    for what, offset, producer_id in records:
        if type(what) is Ended:
            shard.end_transaction(producer_id, committed=what.committed)
        else:
            shard.replay(what, offset, producer_id)


def decode(part: FileSlice, decode_one: Decode) -> Stretch:
    """Every record of the whole batches in a stretch of a segment. Runs on the pool."""
    view = memoryview(part.read())
    records: list[tuple[Any, Offset, ProducerId]] = []
    next_offset, unknown = -1, 0
    for at, header in walk(view):
        batch = view[at : at + header.size]
        next_offset = header.next_offset
        producer = ProducerId(header.producer_id) if header.is_transactional else NO_PRODUCER
        for record in read_records(batch):
            if header.is_control:
                marker = decode_marker(record.key, record.value)
                if marker is not None:
                    committed = marker.type is ControlType.COMMIT
                    records.append((Ended(committed), record.offset, producer))
                continue
            what = None if record.key is None else decode_one(record.key, record.value)
            if what is None:
                unknown += 1
            else:
                records.append((what, record.offset, producer))
    return Stretch(records, next_offset, unknown)
