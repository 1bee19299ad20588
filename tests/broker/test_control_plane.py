"""The control plane of a broker: one broker that is its own controller."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from ottla.broker.control_plane import ControlPlane, LocalBroker, LocalConnection
from ottla.broker.environment import Environment
from ottla.config.dynamic import DynamicConfig
from ottla.controller.state import BrokerState
from ottla.metadata.cache import MetadataCache
from ottla.model.errors import UserError
from ottla.model.ids import BrokerEpoch, BrokerId
from ottla.model.metrics import Registry
from ottla.net.request_slot import RequestSlot
from ottla.security.authorizer import Authorizer
from ottla.shared_state.registration import create_root_nodes
from ottla.store import paths
from ottla.store.memory import Ensemble, MemoryStore
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.fakes.inline_pool import InlinePool
from tests.fakes.virtual_loop import LoopClock, run

ME, OTHER = BrokerId(3), BrokerId(4)


def environment(store: MemoryStore) -> Environment:
    return Environment(LoopClock(), Random(1), ForgettingDisk(), lambda _: store, InlinePool())


def broker(id_: BrokerId) -> BrokerState:
    return BrokerState(id_, BrokerEpoch(1), (), None)


def unanswered(_: memoryview, slot: RequestSlot) -> None:
    slot.close("nobody answers here")


@pytest.mark.spec("NET-31")
def test_the_controller_reaches_its_own_broker_and_no_other() -> None:
    async def story() -> None:
        links = LocalBroker(ME, LoopClock())
        with pytest.raises(AssertionError):
            links.open(broker(ME))
        links.answer = unanswered
        assert isinstance(links.open(broker(ME)), LocalConnection)
        with pytest.raises(
            UserError, match="broker 4 is registered in the metadata store of broker 3"
        ):
            links.open(broker(OTHER))

    run(story())


@pytest.mark.spec("CTL-14")
def test_the_one_broker_becomes_the_controller() -> None:
    async def story() -> None:
        store = MemoryStore(Ensemble())
        await store.start()
        await create_root_nodes(store, None, Random(0))
        config = DynamicConfig({"broker.id": "3"})
        control = ControlPlane(
            environment(store),
            config,
            ME,
            store=store,
            metadata=MetadataCache(ME),
            registry=Registry(),
            authorizer=Authorizer(),
        )
        control.links.answer = unanswered
        await control.registration.register()
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(loop) for loop in control.loops()]
            await control.loop.first_election_done.wait()
            assert await store.get(paths.CONTROLLER) is not None
            assert control.registration.epoch >= 0
            for task in running:
                task.cancel()

    run(story())
