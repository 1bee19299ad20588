"""The office of controller."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from ottla.controller.runtime import controller_election
from ottla.controller.runtime.controller_election import ControllerTerm
from ottla.model.clock import WallMs
from ottla.model.ids import BrokerId
from ottla.store import paths
from ottla.store.memory import Ensemble, MemoryStore, StoreFaults
from ottla.store.port import NoNode, StoreUnavailable


@pytest.mark.spec("CTL-02", "CTL-03", "CTL-15")
async def test_terms_are_counted_from_one_and_the_version_goes_with_them() -> None:
    store = MemoryStore(Ensemble())
    await store.start()
    assert await controller_election.try_to_become_controller(
        store, BrokerId(1), WallMs(7)
    ) == ControllerTerm(1, 0)  # type: ignore[arg-type]
    await store.delete(paths.CONTROLLER)
    assert await controller_election.try_to_become_controller(
        store, BrokerId(1), WallMs(8)
    ) == ControllerTerm(2, 1)  # type: ignore[arg-type]
    node = await store.get(paths.CONTROLLER)
    assert node is not None
    assert node.data == b'{"version":1,"brokerid":1,"timestamp":"8"}'
    assert node.ephemeral


@pytest.mark.spec("CTL-01", "CTL-15")
async def test_of_two_who_stand_at_once_one_wins() -> None:
    ensemble = Ensemble()
    stores = [MemoryStore(ensemble) for _ in range(2)]
    for store in stores:
        await store.start()
    stands = (
        controller_election.try_to_become_controller(store, BrokerId(id), WallMs(0))
        for id, store in enumerate(stores)
    )
    terms = await asyncio.gather(*stands)
    assert sorted(map(bool, terms)) == [False, True]


@pytest.mark.spec("CTL-01", "CTL-15")
async def test_a_broker_whose_reply_was_lost_recognises_the_election_it_has_won() -> None:
    store = MemoryStore(Ensemble(), faults=StoreFaults(Random(1), lost_replies=1))
    await store.start()
    with pytest.raises(StoreUnavailable):
        await controller_election.try_to_become_controller(store, BrokerId(1), WallMs(0))
    await asyncio.sleep(1)
    store._faults = None
    term = await controller_election.try_to_become_controller(store, BrokerId(1), WallMs(0))
    assert term == ControllerTerm(1, 0)  # type: ignore[arg-type]


@pytest.mark.spec("CTL-01", "CTL-15")
async def test_a_node_of_our_own_expired_session_is_replaced_under_a_new_epoch() -> None:
    ensemble = Ensemble()
    store, other = MemoryStore(ensemble), MemoryStore(ensemble)
    await store.start()
    await other.start()
    await controller_election.try_to_become_controller(store, BrokerId(1), WallMs(0))
    ensemble.expire(store, keep_nodes=True)
    await store.start()
    assert await controller_election.try_to_become_controller(other, BrokerId(2), WallMs(0)) is None
    term = await controller_election.try_to_become_controller(store, BrokerId(1), WallMs(0))
    assert term == ControllerTerm(2, 1)  # type: ignore[arg-type]
    node = await other.get(paths.CONTROLLER)
    assert node is not None
    assert node.owner == store.session


@pytest.mark.spec("CTL-02", "CTL-03")
@pytest.mark.parametrize("seed", range(30))
async def test_no_two_brokers_have_the_same_epoch_however_unkind_the_store_is(seed: int) -> None:
    ensemble, terms = Ensemble(), set[tuple[int, ControllerTerm]]()
    dice = Random(seed)
    faults = StoreFaults(dice, lost_requests=0.1, lost_replies=0.2, lag_s=1, reply_s=0.2)

    async def stand(id: int) -> None:
        store = MemoryStore(ensemble, faults=faults)
        await store.start()
        for _ in range(50):
            try:
                won = await controller_election.try_to_become_controller(
                    store, BrokerId(id), WallMs(0)
                )
                if won is not None:
                    terms.add((id, won))
                    await store.delete(paths.CONTROLLER)
            except (StoreUnavailable, NoNode):
                await asyncio.sleep(dice.random() * 0.3)

    await asyncio.gather(*(stand(id) for id in range(3)))
    assert len({term.epoch for _, term in terms}) == len(terms) > 10
    assert all(term.version == term.epoch - 1 for _, term in terms)
