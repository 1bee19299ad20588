"""A transaction coordinator on real partitions, on virtual time and a disk that forgets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

from ottla.broker.transaction_coordinator import (
    ClusterAccess,
    TransactionCoordinator,
    build_transaction_coordinator,
)
from ottla.coordinator.deferred_reply import Commit
from ottla.coordinator.runtime import RuntimeContext
from ottla.coordinator.txn.end_transaction import EndRequest
from ottla.coordinator.txn.init_producer_id import InitProducerIdRequest
from ottla.coordinator.txn.state import Producer
from ottla.delay.timers import Timers
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TRANSACTION_STATE, ProducerId, TopicPartition
from ottla.protocol.hot import ProducedPartition
from ottla.protocol.records.control import ControlType, EndTxnMarker, build_marker
from ottla.replica.append import AppendOptions, PartitionAppend
from ottla.replica.flush_loop import Ring
from ottla.replica.transaction_verification import TransactionalBatch
from tests.fakes.data_side import TP, DataSide, data_side
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.fakes.links import NoOtherBroker

STATE = TopicPartition(TRANSACTION_STATE, 0)
OTHER_TP = TopicPartition("u", 0)
ID = "tx"
OLDER = TransactionalBatch(ID)
V2 = TransactionalBatch(ID, adds=True, knows_abortable=True)


class NoOffsets:
    """Stands where the coordinator of groups would: markers are written down."""

    def __init__(self) -> None:
        self.ended: list[tuple[int, Producer, EndTxnMarker]] = []
        self.refusals: list[ErrorCode] = []
        """Given first, one at a time."""

    def end_transaction(self, index: int, producer: Producer, marker: EndTxnMarker) -> Commit:
        if self.refusals:
            raise KafkaError(self.refusals.pop(0))
        self.ended.append((index, producer, marker))
        ended = Commit()
        ended.settle(ErrorCode.none)
        return ended


class TxnSide:
    def __init__(self, side: DataSide, first_producer_id: int, tasks: asyncio.TaskGroup) -> None:
        self.side = side
        self.offsets = NoOffsets()
        self._ids = count(first_producer_id)
        timers = Timers(side.clock, asyncio.get_running_loop())
        ground = RuntimeContext(side.hosted, side.metadata, timers, tasks.create_task)
        self.timers = timers
        self.parts: TransactionCoordinator = build_transaction_coordinator(
            side.config, side.data, ground, self.offsets,
            cluster=ClusterAccess(NoOtherBroker(), side.store, self._next_id),
            spawn=tasks.create_task,
        )  # fmt: skip
        self.txns = self.parts.service

    async def _next_id(self) -> ProducerId:
        return ProducerId(next(self._ids))

    async def coordinate(self, *, epoch: int = 0) -> None:
        """Lead the one partition of the topic, and wait until it is loaded."""
        self.parts.runtime.on_lead(await self.side.lead(STATE, epoch=epoch))
        await self.side.settle()
        assert not self.parts.runtime.is_loading()

    async def init(self, id: str = ID, **asked: Any) -> Producer:
        asked = {"timeout_ms": 60_000, **asked}
        return (await self.txns.initialise(id, InitProducerIdRequest(**asked))).producer

    async def end(self, who: Producer, commit: bool, *, version: int = 0, id: str = ID) -> Producer:
        return await self.txns.end(id, EndRequest(who, commit, version))

    async def refusal(self, asking: Any) -> ErrorCode:
        try:
            await asking
        except KafkaError as refused:
            return refused.code
        return ErrorCode.none

    def produce(
        self,
        who: Producer,
        *values: bytes,
        sequence: int = 0,
        key: TopicPartition = TP,
        txn: TransactionalBatch | None = OLDER,
        acks: int = -1,
    ) -> asyncio.Future[ProducedPartition]:
        done: asyncio.Future[ProducedPartition] = asyncio.get_running_loop().create_future()
        batch = self.side.batch(
            *values, producer_id=who.id, producer_epoch=who.epoch, base_sequence=sequence,
            transactional=True,
        )  # fmt: skip
        self.side.services.appends.append(
            [PartitionAppend(key, memoryview(batch))],
            AppendOptions(acks, 1_000, txn=txn),
            lambda outcomes: None if done.done() else done.set_result(outcomes[0]),
        )
        return done

    async def write(self, who: Producer, *values: bytes, **how: Any) -> ErrorCode:
        return (await self.produce(who, *values, **how)).error_code

    async def add(self, who: Producer, *keys: TopicPartition, version: int = 0) -> None:
        await self.txns.add(ID, who, frozenset(keys or (TP,)), version)

    def stray_marker(self, who: Producer) -> bytes:
        marker = EndTxnMarker(ControlType.COMMIT, 0)
        return build_marker(marker, producer_id=who.id, producer_epoch=who.epoch, timestamp=0)


@asynccontextmanager
async def txn_side(
    settings: Mapping[str, str] | None = None,
    *,
    disk: ForgettingDisk | None = None,
    first_producer_id: int = 0,
    epoch: int = 0,
    ring: Ring | None = None,
    coordinates: bool = True,
) -> AsyncIterator[TxnSide]:
    async with (
        asyncio.TaskGroup() as tasks,
        data_side(settings, disk=disk, ring=ring) as side,
    ):
        rig = TxnSide(side, first_producer_id, tasks)
        await side.lead(TP, epoch=epoch)
        await side.lead(OTHER_TP, epoch=epoch)
        if coordinates:
            await rig.coordinate(epoch=epoch)
        yield rig
        rig.parts.finishing.close()
        rig.timers.close()
