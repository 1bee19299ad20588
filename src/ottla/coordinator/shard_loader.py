"""Loads a partition of an internal topic when this broker becomes its leader.

Owns the slicing: files are read in the thread pool, and their records are replayed about a
thousand at a time, so that millions of records do not block the event loop. Never interprets a
record.

Decoding runs on the event loop as well: a thread would compete with requests for the interpreter
lock, and hold it longer than one slice takes.
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
"""Records replayed before the loop may run other tasks; one decoded singly counts `ONE_BY_ONE`."""
ONE_BY_ONE: Final = 8
PARTS_AT_ONCE: Final = 4
FIRST_RETRY_MS: Final = 1_000
LAST_RETRY_MS: Final = 60_000


def retry_delay_ms(failures: int) -> int:
    """How long to wait before a partition is loaded again after so many failures."""
    return min(LAST_RETRY_MS, FIRST_RETRY_MS << min(failures - 1, 16))


class ShardLoader:
    """Loads the partitions of one internal topic, several at a time.

    A partition is read in parts of at most `buffer_bytes`. At most `PARTS_AT_ONCE` parts are in
    memory, and partitions take turns: a small one does not wait until a large one is loaded. One
    slice is replayed at a time, so that parallel loads do not add up to long pauses.
    """

    def __init__(self, pool: ThreadPool, buffer_bytes: int) -> None:
        self._pool = pool
        self._buffer_bytes = buffer_bytes
        self._parts = asyncio.Semaphore(PARTS_AT_ONCE)
        self._slice = asyncio.Semaphore()

    async def load(
        self, partition: HostedPartition, shard: Shard, is_current: Callable[[], bool]
    ) -> bool:
        """Replay the whole log; False if it stopped because `is_current` turned false."""
        log_ = partition.log
        offset = log_.start_offset
        end = log_.end_offset
        while offset < end:
            async with self._parts:
                if not is_current():
                    return False
                read = log_.read(offset, self._buffer_bytes, end=end, min_one=True)
                if read.slice is None:
                    break
                batches = LoadRange(shard, await self._pool.run(read.slice.read))
                if not await self._replay(batches, is_current):
                    return False
            if batches.unknown:
                log.warning(
                    "%s: skipped %d records of unknown type while loading",
                    partition.key,
                    batches.unknown,
                )
            offset = max(batches.next_offset, offset + 1)
        return is_current()

    async def _replay(self, batches: LoadRange, is_current: Callable[[], bool]) -> bool:
        """Replay in slices; False if it stopped because `is_current` turned false."""
        for _ in batches.turns():
            if not is_current():
                return False
            async with self._slice:
                await asyncio.sleep(0)
        return True


class LoadRange:
    """The complete batches in a part of a segment, replayed in slices."""

    def __init__(self, shard: Shard, data: bytes) -> None:
        self._shard = shard
        self._view = memoryview(data)
        self._worked = 0
        self.next_offset: Offset = -1
        self.unknown = 0

    def turns(self) -> Iterator[None]:
        """Replay; yields before the first record, and after each slice."""
        yield
        yield from self._oldest()
        for position, header in walk(self._view):
            batch = self._view[position : position + header.size]
            if header.is_control:
                self._end_transaction(batch, ProducerId(header.producer_id))
            else:
                yield from self._replay(batch, header)
            self.next_offset = header.next_offset
            if self._worked >= TURN:
                self._worked = 0
                yield

    def _oldest(self) -> Iterator[None]:
        """Replay messages in formats from before Kafka 0.11; only the start of a log has them.

        Afterwards the view starts behind them.
        """
        while len(self._view) > MAGIC_AT and self._view[MAGIC_AT] < CURRENT_MAGIC:
            entry = next(legacy.entries(self._view), None)
            if entry is None:
                self._view = self._view[:0]  # incomplete at the end of the bytes read
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
        position, replayed_count = 0, 0
        while replayed_count < header.count:
            if in_bulk:
                most = min(header.count - replayed_count, TURN - self._worked)
                position, replayed = self._shard.replay_many(
                    section, position, most, header.base_offset
                )
                replayed_count += replayed
                self._worked += replayed
            if replayed_count < header.count and self._worked < TURN:
                one_by_one = one_by_one or list(read_records(batch))
                self._replay_one(one_by_one[replayed_count], producer)
                replayed_count += 1
                self._worked += ONE_BY_ONE
                if in_bulk:
                    size, position = decode_varint(section, position)
                    position += size
            if self._worked >= TURN and replayed_count < header.count:
                self._worked = 0
                yield

    def _replay_one(self, record: Record, producer: ProducerId) -> None:
        change = None if record.key is None else self._shard.decode(record.key, record.value)
        if change is None:
            self.unknown += 1
        else:
            self._shard.replay(change, record.offset, producer)

    def _end_transaction(self, batch: memoryview, producer: ProducerId) -> None:
        for record in read_records(batch):
            marker = decode_marker(record.key, record.value)
            if marker is not None:
                committed = marker.type is ControlType.COMMIT
                self._shard.end_transaction(producer, committed=committed)
        self._worked += ONE_BY_ONE
