"""Transaction markers: how the end of a transaction is written into the partitions it touched.

Owns the append of control batches to partitions led here. Never decides that a transaction ends,
and never tries twice: what became of each partition is the answer.

Markers on `__consumer_offsets` go through the coordinator of groups, which must act on them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, Protocol

from ottla.coordinator.txn.ending import EPOCH_PER_TRANSACTION
from ottla.coordinator.txn.state import Producer
from ottla.log.validate import Origin
from ottla.model.clock import Clock
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import CONSUMER_OFFSETS, ProducerId, TopicPartition
from ottla.protocol.hot import ProducedPartition
from ottla.protocol.records.control import ControlType, EndTxnMarker, build_marker
from ottla.replica.append import ALL, Appends, AppendTerms, ToAppend
from ottla.replica.hosted import Hosted

TIMEOUT_MS: Final = 30_000


class OffsetMarkers(Protocol):
    """All that this needs of the coordinator of groups."""

    async def end_transaction(
        self, index: int, producer: Producer, marker: EndTxnMarker
    ) -> None: ...


class Marking(NamedTuple):
    """One transaction's end."""

    producer: Producer
    commit: bool
    coordinator_epoch: int
    version: int = 0

    @property
    def marker(self) -> EndTxnMarker:
        kind = ControlType.COMMIT if self.commit else ControlType.ABORT
        return EndTxnMarker(kind, self.coordinator_epoch)


class Markers:
    def __init__(
        self, appends: Appends, hosted: Hosted, clock: Clock, offsets: OffsetMarkers
    ) -> None:
        self._appends = appends
        self._hosted = hosted
        self._clock = clock
        self._offsets = offsets
        self._terms = AppendTerms(ALL, TIMEOUT_MS, Origin.COORDINATOR)

    async def write(
        self, marking: Marking, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Append to each, and wait until it is committed; how that went, one by one."""
        codes: dict[TopicPartition, ErrorCode] = {}
        plain, offsets = [], []
        for key in partitions:
            if self._is_taken(key, marking):
                codes[key] = ErrorCode.invalid_producer_epoch
            elif key.topic == CONSUMER_OFFSETS:
                offsets.append(key)
            else:
                plain.append(key)
        written = self._append(marking, plain) if plain else None
        for key in offsets:
            codes[key] = await self._end_offsets(key, marking)
        if written is not None:
            codes |= zip(plain, await written, strict=True)
        return codes

    def _append(
        self, marking: Marking, keys: list[TopicPartition]
    ) -> asyncio.Future[list[ErrorCode]]:
        batch = build_marker(
            marking.marker,
            producer_id=marking.producer.id,
            producer_epoch=marking.producer.epoch,
            timestamp=self._clock.wall_ms(),
        )
        written: asyncio.Future[list[ErrorCode]] = asyncio.get_running_loop().create_future()

        def done(outcomes: list[ProducedPartition]) -> None:
            if not written.done():
                written.set_result([outcome.error_code for outcome in outcomes])

        sets = [ToAppend(key, memoryview(batch)) for key in keys]
        self._appends.append(sets, self._terms, done)
        return written

    async def _end_offsets(self, key: TopicPartition, marking: Marking) -> ErrorCode:
        try:
            await self._offsets.end_transaction(key.partition, marking.producer, marking.marker)
        except KafkaError as refusal:
            return refusal.code
        return ErrorCode.none

    def _is_taken(self, key: TopicPartition, marking: Marking) -> bool:
        """Whether the next transaction has begun here under the very epoch of this marker.

        Where every end raises the epoch, a transaction's own records have a lower one than its
        marker: this one was delayed beyond its time, and must not end what is not its own.
        """
        partition = self._hosted.find(key)
        if partition is None or marking.version < EPOCH_PER_TRANSACTION:
            return False
        state = partition.log.producers.get(ProducerId(marking.producer.id))
        if state is None or state.epoch != marking.producer.epoch:
            return False
        return state.txn_first_offset is not None
