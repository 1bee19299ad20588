"""Two brokers with real logs and real coordinators; links that hand frames to the other's dispatch.

Leadership is given by hand with `lead`, which first copies what the new leader's log lacks, as a
follower in the in-sync set would have it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random
from typing import Any, cast

from ottla.api.add_offsets_to_txn import API as ADD_OFFSETS
from ottla.api.add_partitions_to_txn import API as ADD_PARTITIONS
from ottla.api.api import Api
from ottla.api.dispatch import Dispatch
from ottla.api.end_txn import API as END
from ottla.api.init_producer_id import API as INIT
from ottla.api.services import BrokerContext, Services
from ottla.broker.broker_links import LocalLink
from ottla.broker.coordinators import Coordinators
from ottla.broker.environment import Environment
from ottla.broker.transaction_coordinator import ClusterAccess
from ottla.config.listeners import Listeners
from ottla.controller.controller import Controller
from ottla.coordinator.request_queues import Link
from ottla.coordinator.txn.state import Producer
from ottla.log.follower_append import append_as_follower
from ottla.log.log import Log
from ottla.metadata.image import BrokerMetadata, PartitionMetadata, Update
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId, ControllerEpoch, LeaderEpoch, TopicPartition
from ottla.net.broker_link import LinkReply
from ottla.protocol.wire import Fields
from ottla.replica.append import AppendOptions, PartitionAppend
from ottla.replica.transaction_verification import TransactionalBatch
from ottla.security.authorizer import Authorizer
from ottla.store.memory import Ensemble, MemoryStore
from tests.fakes.api_side import Caller
from tests.fakes.data_side import TOPIC_ID, DataSide, data_side
from tests.fakes.shared_state import shared_state

A, B = BrokerId(0), BrokerId(1)
BOTH = (A, B)
ID = "tx"


class CutLink:
    """A link that loses requests, replies, or neither."""

    def __init__(self, link: LocalLink, cluster: TwoBrokers, target: BrokerId) -> None:
        self._link = link
        self._cluster = cluster
        self._target = target

    async def ask(self, key: int, fields: Fields, timeout_ms: int) -> LinkReply:
        self._cluster.requests.append((self._target, key, fields))
        if self._target in self._cluster.unreachable:
            raise ConnectionError("unreachable")
        reply = await self._link.ask(key, fields, timeout_ms)
        await self._cluster.replies_pass[key].wait()
        if self._target in self._cluster.loses_replies:
            raise ConnectionError("the reply was lost")
        return reply


class OneBroker:
    def __init__(
        self, side: DataSide, cluster: TwoBrokers, tasks: asyncio.TaskGroup, store: MemoryStore
    ) -> None:
        self.side = side
        self.id = side.broker_id
        self._cluster = cluster
        world = Environment(side.clock, Random(1), side.disk, lambda _: side.store, side.pool)
        shared = shared_state(store, side.config, self.id)
        cluster_access = ClusterAccess(self, side.store, shared.producer_ids.next)
        self.coordination = Coordinators(
            world, side.config, side.data, cluster_access, tasks.create_task
        )
        self.groups, self.txns = self.coordination.groups, self.coordination.txns
        self.services = Services(
            broker=BrokerContext(self.id, "c", Listeners.of(side.config.current), side.clock),
            config=side.config,
            authorizer=Authorizer(),
            metadata=side.metadata,
            controller=cast(Controller, None),
            shared=shared,
            replicas=side.services,
            groups=self.groups,
            txns=self.txns,
        )
        self.dispatch = Dispatch(self.services, tasks.create_task)
        self.caller = Caller(self.dispatch)

    def to(self, broker: BrokerId, purpose: str) -> Link:
        other = self._cluster.brokers[broker]
        return CutLink(LocalLink(other.dispatch, self.side.clock), self._cluster, broker)

    def log(self, key: TopicPartition) -> Log:
        return self.side.hosted.get(key).log

    async def ask(self, api: Api, version: int = -1, **fields: Any) -> Any:
        return await self.caller.ask(api, version, **fields)

    async def init(self, id: str | None = ID) -> Producer:
        reply = await self.ask(INIT, transactional_id=id, transaction_timeout=60_000)
        assert reply.error_code is ErrorCode.none, reply.error_code
        return Producer(reply.producer_id, reply.producer_epoch)

    async def add(self, who: Producer, *keys: TopicPartition) -> list[ErrorCode]:
        reply = await self.ask(
            ADD_PARTITIONS,
            3,
            v3_and_below_transactional_id=ID,
            v3_and_below_producer_id=who.id,
            v3_and_below_producer_epoch=who.epoch,
            v3_and_below_topics=[{"name": name, "partitions": [index]} for name, index in keys],
        )
        return [
            partition.partition_error_code
            for topic in reply.results_by_topic_v3_and_below
            for partition in topic.results_by_partition
        ]

    async def add_offsets(self, who: Producer, group: str) -> ErrorCode:
        reply = await self.ask(
            ADD_OFFSETS, group_id=group, transactional_id=ID,
            producer_id=who.id, producer_epoch=who.epoch,
        )  # fmt: skip
        code: ErrorCode = reply.error_code
        return code

    async def end(self, who: Producer, commit: bool = True, version: int = 4) -> ErrorCode:
        reply = await self.ask(
            END, version, transactional_id=ID, producer_id=who.id,
            producer_epoch=who.epoch, committed=commit,
        )  # fmt: skip
        code: ErrorCode = reply.error_code
        return code

    def produce(
        self, who: Producer, key: TopicPartition, *, sequence: int = 0, adds: bool = False
    ) -> asyncio.Future[ErrorCode]:
        done: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
        batch = self.side.batch(
            b"x", producer_id=who.id, producer_epoch=who.epoch, base_sequence=sequence,
            transactional=True,
        )  # fmt: skip
        self.side.services.appends.append(
            [PartitionAppend(key, memoryview(batch))],
            AppendOptions(-1, 1_000, txn=TransactionalBatch(ID, adds=adds, knows_abortable=adds)),
            lambda outcomes: done.set_result(outcomes[0].error_code),
        )
        return done


class TwoBrokers:
    def __init__(self) -> None:
        self.brokers: dict[BrokerId, OneBroker] = {}
        self.requests: list[tuple[BrokerId, int, Fields]] = []
        """Between brokers: target, API key, fields."""
        self.unreachable: set[BrokerId] = set()
        self.loses_replies: set[BrokerId] = set()
        self.replies_pass: defaultdict[int, asyncio.Event] = defaultdict(_set_event)
        """By API key; a reply waits on its way while the event is not set."""
        self._epochs: dict[TopicPartition, int] = {}

    @property
    def a(self) -> OneBroker:
        return self.brokers[A]

    @property
    def b(self) -> OneBroker:
        return self.brokers[B]

    def replicate(self, key: TopicPartition, source: BrokerId, target: BrokerId) -> None:
        """Copy what the target's log lacks."""
        here, there = self.brokers[source].log(key), self.brokers[target].log(key)
        while there.end_offset < here.end_offset:
            read = here.read(there.end_offset, 1 << 20, end=here.end_offset, min_one=True)
            assert read.slice is not None
            append_as_follower(there, read.slice.read(), WallMs(0))

    async def lead(
        self, leader: BrokerId, *keys: TopicPartition, replicas: tuple[BrokerId, ...] = BOTH
    ) -> None:
        """A new leader for each partition, under a new epoch; the old one is told first."""
        for key in keys:
            before = self._epochs.get(key)
            epoch = self._epochs[key] = 0 if before is None else before + 1
            if before is not None:
                [other] = set(BOTH) - {leader}
                self.replicate(key, other, leader)
            for broker in sorted(replicas, key=lambda id: id == leader):
                await self.brokers[broker].side.lead(
                    key, epoch=epoch, replicas=replicas, isr=(leader,), leader=leader
                )
            self.publish(key, PartitionMetadata(leader, LeaderEpoch(epoch), (leader,), replicas))
        await self.a.side.settle()

    def publish(
        self, key: TopicPartition, state: PartitionMetadata, live: tuple[BrokerId, ...] = BOTH
    ) -> None:
        """An UpdateMetadata to both."""
        brokers = tuple(BrokerMetadata(id, {}) for id in live)
        for broker in self.brokers.values():
            update = Update(A, ControllerEpoch(1), brokers, [(key, TOPIC_ID, state)])
            broker.side.metadata.apply(update)

    def requests_of(self, key: int) -> list[Fields]:
        return [fields for _, requested, fields in self.requests if requested == key]


def _set_event() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


@asynccontextmanager
async def two_brokers(settings: Mapping[str, str] | None = None) -> AsyncIterator[TwoBrokers]:
    cluster = TwoBrokers()
    store = MemoryStore(Ensemble())
    async with asyncio.TaskGroup() as tasks, AsyncExitStack() as stack:
        for id in BOTH:
            side = await stack.enter_async_context(data_side(settings, broker_id=id))
            store = side.store if id == A else store
            cluster.brokers[id] = OneBroker(side, cluster, tasks, store)
        yield cluster
        for broker in cluster.brokers.values():
            broker.coordination.close()
