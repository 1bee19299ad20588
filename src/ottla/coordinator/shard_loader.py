"""Reading a partition of an internal topic back, when this broker begins to lead it.

Owns the pace: files are read on the pool, and what they hold is replayed a few hundred records at a
time, so that a million of them do not stop the loop. Never decides what a record means.

Decoding is done between the turns of the loop as well: a thread would compete for the
interpreter's lock with whoever waits for an answer, and hold it for longer than a turn takes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Final

from ottla.coordinator.shard import Shard
from ottla.model.ids import NO_PRODUCER, Offset, ProducerId
from ottla.protocol.records import legacy
from ottla.protocol.records.batch import CURRENT_MAGIC, BatchHeader, walk
from ottla.protocol.records.control import ControlType, decode_marker
from ottla.protocol.records.header import MAGIC_AT
from ottla.protocol.records.record import Record, decode_varint, read_records, records_section
from ottla.replica.environment import ThreadPool
from ottla.replica.partition import HostedPartition

log = logging.getLogger(__name__)

TURN: Final = 1_000
"""Records between two turns of the loop; one that is read by itself counts as some of them."""
ONE_BY_ONE: Final = 8


async def load(
    partition: HostedPartition,
    shard: Shard,
    off: ThreadPool,
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
        stretch = LoadRange(shard, await off.run(read.slice.read))
        for _ in stretch.turns():
            if not still_wanted():
                return False
            await asyncio.sleep(0)
        if stretch.unknown:
            log.warning("%s: %d records of unknown kinds", partition.key, stretch.unknown)
        offset = max(stretch.next_offset, offset + 1)
    return still_wanted()


class LoadRange:
    """The whole batches in a part of a segment, replayed in turns."""

    def __init__(self, shard: Shard, data: bytes) -> None:
        self._shard = shard
        self._view = memoryview(data)
        self._worked = 0
        self.next_offset: Offset = -1
        self.unknown = 0

    def turns(self) -> Iterator[None]:
        """Replay; yields before the first record, and whenever others should have a turn."""
        yield
        yield from self._oldest()
        for at, header in walk(self._view):
            batch = self._view[at : at + header.size]
            if header.is_control:
                self._end_transaction(batch, ProducerId(header.producer_id))
            else:
                yield from self._replay(batch, header)
            self.next_offset = header.next_offset
            if self._worked >= TURN:
                self._worked = 0
                yield

    def _oldest(self) -> Iterator[None]:
        """What a broker of before Kafka 0.11 wrote, in the older formats: it can only stand first.

        Afterwards the view begins behind it.
        """
        while len(self._view) > MAGIC_AT and self._view[MAGIC_AT] < CURRENT_MAGIC:
            entry = next(legacy.entries(self._view), None)
            if entry is None:
                self._view = self._view[:0]  # cut short by the end of what was read
                return
            for record in legacy.records(entry):
                self._replay_one(record, NO_PRODUCER)
                self._worked += ONE_BY_ONE
            self._view = self._view[entry.size :]
            self.next_offset = entry.offset + 1
            if self._worked >= TURN:
                self._worked = 0
                yield

    def _replay(self, batch: memoryview, header: BatchHeader) -> Iterator[None]:
        in_bulk = not header.is_transactional
        section = bytes(records_section(batch, header)) if in_bulk else b""
        producer = NO_PRODUCER if in_bulk else ProducerId(header.producer_id)
        one_by_one: list[Record] = []
        at, done = 0, 0
        while done < header.count:
            if in_bulk:
                most = min(header.count - done, TURN - self._worked)
                at, taken = self._shard.replay_many(section, at, most, header.base_offset)
                done += taken
                self._worked += taken
            if done < header.count and self._worked < TURN:
                one_by_one = one_by_one or list(read_records(batch))
                self._replay_one(one_by_one[done], producer)
                done += 1
                self._worked += ONE_BY_ONE
                if in_bulk:
                    size, at = decode_varint(section, at)
                    at += size
            if self._worked >= TURN and done < header.count:
                self._worked = 0
                yield

    def _replay_one(self, record: Record, producer: ProducerId) -> None:
        what = None if record.key is None else self._shard.decode(record.key, record.value)
        if what is None:
            self.unknown += 1
        else:
            self._shard.replay(what, record.offset, producer)

    def _end_transaction(self, batch: memoryview, producer: ProducerId) -> None:
        for record in read_records(batch):
            marker = decode_marker(record.key, record.value)
            if marker is not None:
                committed = marker.type is ControlType.COMMIT
                self._shard.end_transaction(producer, committed=committed)
        self._worked += ONE_BY_ONE
