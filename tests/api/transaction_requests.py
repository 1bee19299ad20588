"""Asking the handlers of transactions: real coordinators on real partitions, on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from random import Random
from types import SimpleNamespace
from typing import Any, cast

from ottla.api.add_offsets_to_txn import API as ADD_OFFSETS
from ottla.api.add_partitions_to_txn import API as ADD_PARTITIONS
from ottla.api.api import Api, Context, Fields
from ottla.api.end_txn import API as END
from ottla.api.init_producer_id import API as INIT
from ottla.api.services import BrokerContext, Services
from ottla.broker.coordinators import Coordinators
from ottla.broker.environment import Environment
from ottla.broker.transaction_coordinator import ClusterAccess
from ottla.controller.controller import Controller
from ottla.coordinator.txn.state import Producer
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import CONSUMER_OFFSETS, TRANSACTION_STATE, TopicPartition
from ottla.net.request_slot import Peer
from ottla.protocol import wire
from ottla.replica.append import AppendOptions, PartitionAppend
from ottla.replica.transaction_verification import TransactionalBatch
from ottla.security.authorizer import Authorizer
from tests.fakes.data_side import ME, TP, DataSide, data_side
from tests.fakes.links import NoOtherBroker
from tests.fakes.shared_state import shared_state

ID = "tx"


class Asker:
    def __init__(self, side: DataSide, services: Services) -> None:
        self.side = side
        self.services = services
        self.peer = Peer("127.0.0.1", 1, "PLAINTEXT", "PLAINTEXT")

    async def ask(self, api: Api, version: int = -1, **fields: Any) -> Any:
        """Encoded request in, decoded reply out; the newest version unless another is named."""
        version = api.versions[-1] if version < 0 else version
        frame = memoryview(wire.encode_request(api.key, version, 5, "test", fields))[4:]
        call = wire.parse_call(frame)
        request = wire.decode(call, frame)
        assert api.handler is not None and api.refuse is not None
        ctx = Context(call, self.peer, self.services)
        answered: asyncio.Future[Fields] = asyncio.get_running_loop().create_future()
        try:
            if api.at_once is not None and api.at_once(request, ctx, answered.set_result):
                reply = await answered
            else:
                reply = await api.handler(request, ctx)
        except KafkaError as refusal:
            reply = api.refuse(request, refusal.code, refusal.message)
        framed = wire.reply(call, reply)
        return wire.decode_reply(api.key, version, memoryview(framed)[4:])

    async def init(self, version: int = -1, id: str | None = ID, **fields: Any) -> Any:
        asked = {"transactional_id": id, "transaction_timeout": 60_000, **fields}
        return await self.ask(INIT, version, **asked)

    async def begun(self) -> Producer:
        said = await self.init()
        return Producer(said.producer_id, said.producer_epoch)

    async def add(self, who: Producer, *keys: TopicPartition, version: int = 3) -> Any:
        """The code for each partition, in the order asked for."""
        topics = [{"name": topic, "partitions": [index]} for topic, index in keys or (TP,)]
        said = await self.ask(
            ADD_PARTITIONS,
            version,
            v3_and_below_transactional_id=ID,
            v3_and_below_producer_id=who.id,
            v3_and_below_producer_epoch=who.epoch,
            v3_and_below_topics=topics,
        )
        return [
            one.partition_error_code
            for topic in said.results_by_topic_v3_and_below
            for one in topic.results_by_partition
        ]

    async def add_offsets(self, who: Producer, group: str = "g", version: int = -1) -> ErrorCode:
        said = await self.ask(
            ADD_OFFSETS, version, group_id=group, transactional_id=ID,
            producer_id=who.id, producer_epoch=who.epoch,
        )  # fmt: skip
        code: ErrorCode = said.error_code
        return code

    async def end(
        self, who: Producer, commit: bool = True, *, version: int = -1, id: str = ID
    ) -> Any:
        return await self.ask(
            END, version, transactional_id=id, producer_id=who.id,
            producer_epoch=who.epoch, committed=commit,
        )  # fmt: skip

    async def write(self, who: Producer, value: bytes = b"x", sequence: int = 0) -> ErrorCode:
        done: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
        batch = self.side.batch(
            value, producer_id=who.id, producer_epoch=who.epoch, base_sequence=sequence,
            transactional=True,
        )  # fmt: skip
        self.side.services.appends.append(
            [PartitionAppend(TP, memoryview(batch))],
            AppendOptions(-1, 1_000, txn=TransactionalBatch(ID)),
            lambda outcomes: done.set_result(outcomes[0].error_code),
        )
        return await done


@asynccontextmanager
async def transacting(settings: Mapping[str, str] | None = None) -> AsyncIterator[Asker]:
    """A broker that leads one partition of each internal topic, and the one named TP."""
    async with asyncio.TaskGroup() as tasks, data_side(settings) as side:
        world = Environment(side.clock, Random(1), side.disk, lambda _: side.store, side.pool)
        shared = shared_state(side.store, side.config, ME)
        cluster = ClusterAccess(NoOtherBroker(), side.store, shared.producer_ids.next)
        coordination = Coordinators(world, side.config, side.data, cluster, tasks.create_task)
        for topic in (CONSUMER_OFFSETS, TRANSACTION_STATE):
            await side.lead(TopicPartition(topic, 0))
        await side.lead(TP)
        await side.settle()
        listeners = SimpleNamespace(inter_broker="INTERNAL", control_plane=None)
        services = Services(
            broker=BrokerContext(ME, "cluster", listeners, side.clock),  # type: ignore[arg-type]
            config=side.config,
            authorizer=Authorizer(),
            metadata=side.metadata,
            controller=cast(Controller, None),
            shared=shared,
            replicas=side.services,
            groups=coordination.groups,
            txns=coordination.txns,
        )
        yield Asker(side, services)
        coordination.close()
