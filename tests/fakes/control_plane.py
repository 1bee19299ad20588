"""Brokers without logs: real controllers and real inter-broker handlers over a shared tree.

Each `Node` has its own session, registration, controller and metadata; what it would host is only
remembered. `Wires` connects them, and can be cut or made to answer with errors.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import cast

from ottla.api.api import Api, Context
from ottla.api.interbroker import (
    alter_partition,
    controlled_shutdown,
    leader_and_isr,
    stop_replica,
    update_metadata,
)
from ottla.api.services import BrokerContext, Services, SharedState
from ottla.config.dynamic import DynamicConfig
from ottla.config.listeners import Listeners
from ottla.controller.controller import Controller
from ottla.controller.runtime.loop import ControllerLoop
from ottla.controller.runtime.metadata_waiter import MetadataWaiter
from ottla.controller.runtime.metrics import ControllerMetrics
from ottla.controller.runtime.outbox import BrokerLink
from ottla.controller.state import BrokerState
from ottla.metadata.cache import MetadataCache
from ottla.model.clock import Clock
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import BrokerEpoch, BrokerId, ControllerEpoch, TopicId, TopicPartition
from ottla.model.metrics import Registry
from ottla.net.broker_link import LinkReply
from ottla.net.request_slot import Peer
from ottla.protocol import wire
from ottla.replica.transitions import EpochFence, PartitionStop, PartitionTransition
from ottla.security.authorizer import Authorizer
from ottla.security.quotas.client_quotas import ClientQuotas
from ottla.shared_state.registration import Registration, create_root_nodes
from ottla.store.memory import Ensemble, MemoryStore
from ottla.store.nodes import EndpointNode
from ottla.store.port import Store
from tests.fakes.inline_pool import InlinePool
from tests.fakes.shared_state import shared_state
from tests.fakes.virtual_loop import LoopClock

APIS: dict[int, Api] = {
    module.API.key: module.API
    for module in (
        alter_partition,
        controlled_shutdown,
        leader_and_isr,
        stop_replica,
        update_metadata,
    )
}


class FakeReplicas:
    """A fake of `replica/`: records the transitions, and can fail for chosen partitions."""

    def __init__(self) -> None:
        self.states: dict[TopicPartition, PartitionTransition] = {}
        self.deleted: list[TopicPartition] = []
        self.lost: set[TopicPartition] = set()
        self.controller_epoch = ControllerEpoch(0)
        self.broker_epoch = BrokerEpoch(-1)
        self.transitions = self
        self.hosted = self

    def find(self, tp: TopicPartition) -> PartitionTransition | None:
        return self.states.get(tp)

    def check(self, fence: EpochFence) -> None:
        if fence.controller_epoch < self.controller_epoch:
            raise KafkaError(ErrorCode.stale_controller_epoch)
        if -1 < fence.broker_epoch < self.broker_epoch:
            raise KafkaError(ErrorCode.stale_broker_epoch)
        self.controller_epoch = fence.controller_epoch

    def topics_changed(self, names: Iterable[str], gone: Iterable[TopicPartition]) -> None:
        """Of groups and committed offsets there are none here."""

    async def apply_leader_and_isr(
        self, states: Iterable[PartitionTransition]
    ) -> dict[TopicPartition, ErrorCode]:
        codes = {}
        for state in states:
            codes[state.key] = ErrorCode.none
            if state.key in self.lost:
                codes[state.key] = ErrorCode.kafka_storage_error
            else:
                self.states[state.key] = state
        return codes

    async def stop_replicas(
        self, stops: Iterable[PartitionStop]
    ) -> dict[TopicPartition, ErrorCode]:
        codes = {}
        for stop in stops:
            self.states.pop(stop.key, None)
            codes[stop.key] = ErrorCode.none
            if stop.delete:
                self.deleted.append(stop.key)
        return codes

    async def delete_reassigned(
        self, is_elsewhere: Callable[[TopicPartition, TopicId | None], bool]
    ) -> None:
        """Of earlier runs there are no logs here."""


@dataclass
class Node:
    """One broker's control plane."""

    id: BrokerId
    store: Store
    clock: Clock
    registration: Registration
    config: DynamicConfig
    metadata: MetadataCache
    loop: ControllerLoop
    controller: Controller
    shared: SharedState
    registry: Registry
    held: FakeReplicas
    quotas: ClientQuotas

    def context(self, call: wire.Call, listener: str = "PLAINTEXT") -> Context:
        peer = Peer("127.0.0.1", 1, listener, "PLAINTEXT")
        services = Services(
            broker=BrokerContext(
                self.id, "the-cluster", Listeners.of(self.config.current), self.clock
            ),
            config=self.config,
            authorizer=Authorizer(),
            metadata=self.metadata,
            controller=self.controller,
            shared=self.shared,
            replicas=self.held,  # type: ignore[arg-type]
            groups=self.held,  # type: ignore[arg-type]
            txns=self.held,  # type: ignore[arg-type]
        )
        return Context(call, peer, services)

    async def answer(self, frame: bytes, apis: dict[int, Api] = APIS) -> bytes:
        """A framed request in, a framed reply out, through the real handler."""
        view = memoryview(frame)[4:]
        call = wire.parse_call(view)
        api = apis[call.key]
        assert call.version in api.versions, f"{api.name} v{call.version}"
        assert api.handler is not None and api.refuse is not None
        request = wire.decode(call, view)
        try:
            fields = await api.handler(request, self.context(call))
        except KafkaError as refusal:
            fields = api.refuse(request, refusal.code, refusal.message)
        return wire.reply(call, fields)


class Wires:
    """Every link between controllers and brokers."""

    def __init__(self) -> None:
        self.nodes: dict[BrokerId, Node] = {}
        self.cut: set[BrokerId] = set()
        self.frames: list[tuple[BrokerId, int]] = []

        self.reply_ms = 30_000

    def open(self, broker: BrokerState) -> BrokerLink:
        return _Wire(self, broker.id)


class _Wire:
    def __init__(self, wires: Wires, to: BrokerId) -> None:
        self._wires = wires
        self._to = to

    async def ask(self, key: int, fields: wire.Fields, timeout_ms: int) -> LinkReply:
        await asyncio.sleep(0)
        if self._to in self._wires.cut or self._to not in self._wires.nodes:
            raise ConnectionError("disconnected by the test")
        self._wires.frames.append((self._to, key))
        version = APIS[key].versions[-1]
        frame = wire.encode_request(key, version, 1, "controller", fields)
        reply = await self._wires.nodes[self._to].answer(frame)
        return LinkReply(version, wire.decode_reply(key, version, memoryview(reply)[4:]))

    def close(self) -> None:
        return


class ControlPlane:
    """Several brokers on one tree."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self.ensemble = Ensemble()
        self.wires = Wires()
        self._tasks = tasks
        self._running: dict[BrokerId, list[asyncio.Task[None]]] = {}

    async def start(
        self,
        id: int,
        settings: dict[str, str] | None = None,
        store: Store | None = None,
        clock: Clock | None = None,
    ) -> Node:
        """Register the broker and wait until its controller has taken part in an election."""
        if store is None:
            store = MemoryStore(self.ensemble)
        await store.start()
        node = self._build(BrokerId(id), settings or {}, store, clock or LoopClock())
        self.wires.nodes[node.id] = node
        await create_root_nodes(store, None, Random(0))
        await node.shared.configs.load()
        node.held.broker_epoch = await node.registration.register()
        self._running[node.id] = [
            self._tasks.create_task(node.loop.run(None)),
            self._tasks.create_task(node.shared.configs.run()),
        ]
        await node.loop.first_election_done.wait()
        return node

    def _build(self, id: BrokerId, settings: dict[str, str], store: Store, clock: Clock) -> Node:
        registry = Registry()
        dice = Random(id)
        config = DynamicConfig(settings)
        registration = Registration(store, clock, id)
        registration.describe([EndpointNode("PLAINTEXT", f"host{id}", 9092)], None)
        metadata = MetadataCache(id, clock)
        measures = ControllerMetrics(registry, clock)
        loop = ControllerLoop(
            store, self.wires, registration, clock, dice, metrics=measures, pool=InlinePool()
        )
        controller = Controller(
            loop,
            config,
            MetadataWaiter(metadata),
            dice=dice,
        )
        shared, held = shared_state(store, config, id), FakeReplicas()
        return Node(
            id, store, clock, registration, config, metadata, loop, controller, shared, registry,
            held, shared.quotas,
        )  # fmt: skip

    async def kill(self, id: int) -> None:
        """The process is gone and its session with it."""
        node = self.wires.nodes.pop(BrokerId(id))
        for task in self._running.pop(node.id):
            task.cancel()
        self.ensemble.end(cast(MemoryStore, node.store).session)
        await settle()

    def stop(self) -> None:
        for tasks in self._running.values():
            for task in tasks:
                task.cancel()


@asynccontextmanager
async def control_plane() -> AsyncIterator[ControlPlane]:
    async with asyncio.TaskGroup() as tasks:
        plane = ControlPlane(tasks)
        try:
            yield plane
        finally:
            plane.stop()


async def settle(turns: int = 400) -> None:
    """Let everything that can go on now go on."""
    for _ in range(turns):
        await asyncio.sleep(0)


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(20_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("the condition did not become true")
