"""This broker's own node, and the ground of the tree."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from ottla.model.errors import UserError
from ottla.model.ids import BrokerId
from ottla.shared_state.registration import (
    Registration,
    RegistrationError,
    create_root_nodes,
    generate_broker_id,
)
from ottla.store import paths
from ottla.store.memory import Ensemble, MemoryStore, StoreFaults
from ottla.store.nodes import BrokerNode, EndpointNode
from ottla.store.port import Session, StoreUnavailable
from tests.fakes.virtual_loop import LoopClock

ENDPOINT = EndpointNode("PLAINTEXT", "here", 9092)


async def opened(ensemble: Ensemble) -> MemoryStore:
    store = MemoryStore(ensemble)
    await store.start()
    return store


@pytest.mark.spec("CTL-13")
async def test_a_new_tree_gets_its_fixed_nodes_and_an_id_that_stays() -> None:
    ensemble = Ensemble()
    store = await opened(ensemble)
    id = await create_root_nodes(store, None, Random(1))
    assert len(id) == 22
    assert await create_root_nodes(await opened(ensemble), "another", Random(2)) == id
    assert all(node is not None for node in await store.get_many(paths.ROOTS))


@pytest.mark.spec("CTL-13")
async def test_a_tree_without_an_id_takes_the_one_the_log_directories_remember() -> None:
    store = await opened(Ensemble())
    assert await create_root_nodes(store, "remembered", Random(1)) == "remembered"


@pytest.mark.spec("CTL-13")
async def test_brokers_that_start_at_once_agree_on_the_id() -> None:
    ensemble = Ensemble()
    stores = [await opened(ensemble) for _ in range(3)]
    ids = await asyncio.gather(
        *(create_root_nodes(store, None, Random(seed)) for seed, store in enumerate(stores))
    )
    assert len(set(ids)) == 1


@pytest.mark.spec("CTL-04", "CTL-35")
async def test_a_registered_broker_can_be_found_and_has_a_higher_epoch_after_each_start() -> None:
    ensemble = Ensemble()
    first = await opened(ensemble)
    await create_root_nodes(first, None, Random(1))
    before = Registration(first, LoopClock(), BrokerId(1))
    before.describe([ENDPOINT], "rack-a")
    epoch = await before.register()
    node = await first.get(paths.broker(BrokerId(1)))
    assert node is not None
    assert node.ephemeral
    assert BrokerNode.decode(node.data).endpoints == (ENDPOINT,)
    assert BrokerNode.decode(node.data).rack == "rack-a"
    await first.close()
    after = Registration(await opened(ensemble), LoopClock(), BrokerId(1))
    assert await after.register() > epoch


@pytest.mark.spec("CTL-71")
async def test_an_id_that_is_in_use_is_refused_by_name() -> None:
    ensemble = Ensemble()
    store = await opened(ensemble)
    await create_root_nodes(store, None, Random(1))
    await Registration(store, LoopClock(), BrokerId(1)).register()
    twin = Registration(await opened(ensemble), LoopClock(), BrokerId(1))
    with pytest.raises(UserError, match=r"broker\.id=1"):
        await twin.register()


async def test_the_node_of_an_earlier_life_is_waited_out() -> None:
    ensemble = Ensemble()
    old = await opened(ensemble)
    await create_root_nodes(old, None, Random(1))
    await Registration(old, LoopClock(), BrokerId(1)).register()
    new = Registration(await opened(ensemble), LoopClock(), BrokerId(1))
    asyncio.get_running_loop().call_later(6, ensemble.end, old.session)
    assert await new.register(patience_ms=18_000) > 0


@pytest.mark.spec("CTL-04", "CTL-23")
@pytest.mark.parametrize("seed", range(10))
async def test_a_registration_whose_reply_was_lost_is_recognised_as_our_own(seed: int) -> None:
    ensemble = Ensemble()
    await create_root_nodes(await opened(ensemble), None, Random(1))
    store = MemoryStore(ensemble, faults=StoreFaults(Random(seed), lost_replies=0.6))
    await store.start()
    registration = Registration(store, LoopClock(), BrokerId(1))
    epoch = await registration.register(patience_ms=10_000)
    found = ensemble.tree.find(paths.broker(BrokerId(1)))
    assert found is not None
    assert (found.created, found.owner) == (epoch, store.session)


@pytest.mark.spec("CTL-23")
async def test_the_node_of_our_own_expired_session_is_deleted_and_not_waited_for() -> None:
    ensemble, epochs = Ensemble(), list[int]()
    store = await opened(ensemble)
    await create_root_nodes(store, None, Random(1))
    registration = Registration(store, LoopClock(), BrokerId(1))
    registration.on_epoch = epochs.append
    before = await registration.register(patience_ms=20_000)
    ensemble.expire(store, keep_nodes=True)
    await store.start()
    after = await registration.register()
    assert after > before
    assert epochs == [before, after]
    assert asyncio.get_running_loop().time() < 5


@pytest.mark.spec("CTL-71")
async def test_a_node_of_somebody_else_that_does_not_go_ends_the_broker_with_a_clear_error() -> (
    None
):
    ensemble = Ensemble()
    other = await opened(ensemble)
    await create_root_nodes(other, None, Random(1))
    await Registration(other, LoopClock(), BrokerId(1)).register()
    mine = Registration(await opened(ensemble), LoopClock(), BrokerId(1))
    with pytest.raises(RegistrationError, match=r"did not end within 23000 ms"):
        await mine.register(patience_ms=23_000)
    assert 23 <= asyncio.get_running_loop().time() < 24


async def test_an_unavailable_store_is_retried_for_a_while_and_then_reported() -> None:
    ensemble = Ensemble()
    store = await opened(ensemble)
    await create_root_nodes(store, None, Random(1))
    store.turn(Session.SUSPENDED)
    registration = Registration(store, LoopClock(), BrokerId(1))
    with pytest.raises(StoreUnavailable):
        await registration.register(patience_ms=10_000)
    asyncio.get_running_loop().call_later(5, store.reconnect)
    assert await registration.register() > 0


@pytest.mark.spec("CTL-07", "CTL-73")
async def test_generated_ids_lie_above_the_reserved_ones() -> None:
    store = await opened(Ensemble())
    await create_root_nodes(store, None, Random(1))
    assert await generate_broker_id(store, 1_000) == 1_001
    assert await generate_broker_id(store, 1_000) == 1_002


@pytest.mark.spec("CTL-04", "CFG-007")
async def test_a_broker_that_moves_stays_who_it_is() -> None:
    store = await opened(Ensemble())
    await create_root_nodes(store, None, Random(1))
    registration = Registration(store, LoopClock(), BrokerId(1))
    registration.describe([ENDPOINT], None)
    epoch = await registration.register()
    registration.describe([ENDPOINT._replace(port=9093)], None)
    await registration.update()
    node = await store.get(paths.broker(BrokerId(1)))
    assert node is not None
    assert BrokerNode.decode(node.data).endpoints == (ENDPOINT._replace(port=9093),)
    assert (node.created, node.ephemeral) == (epoch, True)


async def test_of_brokers_that_must_be_alone_never_two_stay() -> None:
    ensemble = Ensemble()
    stores = [await opened(ensemble) for _ in range(2)]
    await create_root_nodes(stores[0], None, Random(1))
    both = [
        Registration(store, LoopClock(), BrokerId(id), alone=True)
        for id, store in enumerate(stores)
    ]
    at_once = await asyncio.gather(*(one.register() for one in both), return_exceptions=True)
    assert sum(isinstance(one, RegistrationError) for one in at_once) >= 1
    for store in stores:
        await store.close()
    first, second = [await opened(ensemble) for _ in range(2)]
    epochs: list[int] = []
    one = Registration(first, LoopClock(), BrokerId(1), alone=True)
    one.on_epoch = epochs.append
    assert [await one.register()] == epochs
    with pytest.raises(
        RegistrationError,
        match="broker 1 is already registered in the embedded metadata store of broker 2, which "
        r"serves a single broker; .* set zookeeper\.connect on every broker",
    ):
        await Registration(second, LoopClock(), BrokerId(2), alone=True).register()
    assert await second.children(paths.BROKER_IDS) == ["1"]


@pytest.mark.parametrize("state", [Session.SUSPENDED, Session.EXPIRED])
async def test_what_is_new_of_a_broker_is_published_once_the_store_has_it_again(
    state: Session,
) -> None:
    store = await opened(Ensemble())
    await create_root_nodes(store, None, Random(1))
    one = Registration(store, LoopClock(), BrokerId(1))
    one.describe([ENDPOINT], None)
    await one.register()
    store.turn(state)
    moved = ENDPOINT._replace(port=9093)
    one.describe([moved], None)
    published = asyncio.ensure_future(one.update())
    await asyncio.sleep(5)
    assert not published.done()
    store.turn(Session.CONNECTED)
    await published
    node = await store.get(paths.broker(BrokerId(1)))
    assert node is not None
    assert BrokerNode.decode(node.data).endpoints == (moved,)
