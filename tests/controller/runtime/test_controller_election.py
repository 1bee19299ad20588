"""The office of controller."""

from __future__ import annotations

import asyncio

import pytest

from ottla.controller.runtime import controller_election
from ottla.controller.runtime.controller_election import ControllerTerm
from ottla.model.ids import BrokerId
from ottla.store import paths
from ottla.store.memory import Ensemble, MemoryStore
from tests.fakes.virtual_loop import run


@pytest.mark.spec("CTL-02", "CTL-03", "CTL-15")
def test_terms_are_counted_from_one_and_the_version_goes_with_them() -> None:
    async def story() -> None:
        store = MemoryStore(Ensemble())
        await store.start()
        assert await controller_election.try_to_become_controller(
            store, BrokerId(1), 7
        ) == ControllerTerm(1, 0)  # type: ignore[arg-type]
        await store.delete(paths.CONTROLLER)
        assert await controller_election.try_to_become_controller(
            store, BrokerId(1), 8
        ) == ControllerTerm(2, 1)  # type: ignore[arg-type]
        node = await store.get(paths.CONTROLLER)
        assert node is not None
        assert node.data == b'{"version":1,"brokerid":1,"timestamp":"8"}'
        assert node.ephemeral

    run(story())


@pytest.mark.spec("CTL-01", "CTL-15")
def test_of_two_who_stand_at_once_one_wins() -> None:
    async def story() -> None:
        ensemble = Ensemble()
        stores = [MemoryStore(ensemble) for _ in range(2)]
        for store in stores:
            await store.start()
        stands = (
            controller_election.try_to_become_controller(store, BrokerId(id), 0)
            for id, store in enumerate(stores)
        )
        terms = await asyncio.gather(*stands)
        assert sorted(map(bool, terms)) == [False, True]

    run(story())
