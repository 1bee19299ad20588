"""The control plane of a broker: its controller, and the way to other brokers."""

from __future__ import annotations

import asyncio
from random import Random
from types import SimpleNamespace

import pytest

from ottla.broker.broker_links import BrokerLinks
from ottla.broker.control_plane import ControllerLinks, ControlPlane
from ottla.broker.environment import Environment
from ottla.config.dynamic import DynamicConfig
from ottla.controller.state import BrokerState
from ottla.metadata.cache import MetadataCache
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import BrokerEpoch, BrokerId
from ottla.model.metrics import Registry
from ottla.net.broker_link import BrokerLink
from ottla.net.request_slot import RequestSlot
from ottla.protocol import wire
from ottla.security.authorizer import Authorizer
from ottla.shared_state.registration import create_root_nodes
from ottla.store import paths
from ottla.store.memory import Ensemble, MemoryStore
from ottla.store.nodes import EndpointNode
from ottla.store.port import Session
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.fakes.inline_pool import InlinePool
from tests.fakes.virtual_loop import LoopClock

ME, OTHER = BrokerId(3), BrokerId(4)


def environment(store: MemoryStore) -> Environment:
    return Environment(LoopClock(), Random(1), ForgettingDisk(), lambda _: store, InlinePool())


def broker(id_: BrokerId, *endpoints: EndpointNode) -> BrokerState:
    return BrokerState(id_, BrokerEpoch(1), endpoints, None)


def broker_links() -> BrokerLinks:
    return BrokerLinks(ME, "PLAINTEXT", MetadataCache(ME, LoopClock()), LoopClock(), Random(1))


def unanswered(_: memoryview, slot: RequestSlot) -> None:
    slot.close("nobody answers here")


@pytest.mark.spec("NET-31")
async def test_the_controller_reaches_its_own_broker_without_a_socket_and_others_by_listener() -> (
    None
):
    links = broker_links()
    links.answer = unanswered
    controller_links = ControllerLinks(links, "INTERNAL", 1_000)
    assert controller_links.open(broker(ME)) is links.local()
    link = controller_links.open(broker(OTHER, EndpointNode("INTERNAL", "other", 9093)))
    assert isinstance(link, BrokerLink)
    assert link.address == "other:9093"
    link.close()
    with pytest.raises(ConnectionError, match="broker 4 has no listener INTERNAL"):
        controller_links.open(broker(OTHER, EndpointNode("PLAINTEXT", "other", 9092)))


@pytest.mark.spec("CTL-14")
async def test_the_one_broker_becomes_the_controller() -> None:
    store = MemoryStore(Ensemble())
    await store.start()
    await create_root_nodes(store, None, Random(0))
    config = DynamicConfig({"broker.id": "3"})
    links = broker_links()
    control = ControlPlane(
        environment(store),
        config,
        links,
        store=store,
        metadata=MetadataCache(ME, LoopClock()),
        registry=Registry(),
        authorizer=Authorizer(),
    )
    links.answer = unanswered
    await control.registration.register()
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(loop) for loop in control.loops()]
        await control.loop.first_election_done.wait()
        assert await store.get(paths.CONTROLLER) is not None
        assert control.registration.epoch >= 0
        for task in running:
            task.cancel()


@pytest.mark.parametrize("session", [Session.EXPIRED, Session.SUSPENDED])
async def test_without_the_store_the_controller_is_out_of_reach_and_callers_can_retry(
    session: Session,
) -> None:
    store = MemoryStore(Ensemble())
    await store.start()
    control = ControlPlane(
        environment(store),
        DynamicConfig({"broker.id": "3", "zookeeper.connect": "zk:2181"}),
        broker_links(),
        store=store,
        metadata=MetadataCache(ME, LoopClock()),
        registry=Registry(),
        authorizer=Authorizer(),
    )
    control.loop.active_id = OTHER
    store.turn(session)
    with pytest.raises(OSError):
        await control.channel.ask(56, {}, 1_000)


class Controller:
    """Stands for the channel to the controller; says what it is told to."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[int, wire.Fields]] = []

    async def ask(self, key: int, fields: wire.Fields, timeout_ms: int) -> object:
        self.asked.append((key, fields))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return SimpleNamespace(error_code=ErrorCode.none, remaining_partitions=answer)


@pytest.mark.spec("CTL-76")
@pytest.mark.parametrize(
    ("settings", "answers", "asked", "seconds"),
    [
        ({}, [[]], 1, 0.2),
        ({}, [KafkaError(ErrorCode.not_controller), ["t-0"], []], 3, 10.2),
        ({}, [ConnectionError()] * 3, 3, 10),
        ({"controlled.shutdown.max.retries": "1"}, [TimeoutError()], 1, 0),
        ({"controlled.shutdown.enable": "false"}, [], 0, 0),
    ],
)
async def test_a_broker_that_stops_asks_the_controller_to_move_its_leaders_and_stops_anyway(
    settings: dict[str, str], answers: list[object], asked: int, seconds: float
) -> None:
    """It serves on for a moment once its leaders are moved: clients are told who leads now."""
    clock = LoopClock()
    control = in_cluster(settings)
    controller = Controller(*answers)
    control.channel = controller  # type: ignore[assignment]
    began = clock.mono_ms()
    await control.hand_over()
    assert len(controller.asked) == asked
    assert clock.mono_ms() - began == seconds * 1_000


def in_cluster(settings: dict[str, str]) -> ControlPlane:
    store = MemoryStore(Ensemble())
    return ControlPlane(
        environment(store),
        DynamicConfig({"broker.id": "3", "zookeeper.connect": "zk:2181", **settings}),
        broker_links(),
        store=store,
        metadata=MetadataCache(ME, LoopClock()),
        registry=Registry(),
        authorizer=Authorizer(),
    )


async def test_a_controller_that_a_failure_has_ended_is_not_asked_to_move_its_own_leaders() -> None:
    control = in_cluster({})
    controller = Controller()
    control.channel = controller  # type: ignore[assignment]
    control.loop.has_ended, control.loop.active_id = True, ME
    await control.hand_over()
    assert controller.asked == []
