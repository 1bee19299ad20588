"""Waiting until the metadata shows it."""

from __future__ import annotations

import asyncio

import pytest

from ottla.controller.events import ElectionKind
from ottla.controller.runtime.metadata_waiter import MetadataWaiter
from ottla.metadata.cache import MetadataCache
from ottla.metadata.image import Image, Update
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId, ControllerEpoch
from ottla.store import paths
from ottla.store.nodes import PartitionsNode, StateNode
from tests.controller.runtime.topic_state import T0, create, leader, stored
from tests.fakes.control_plane import control_plane, settle, until
from tests.fakes.manual_time import ManualClock


def second(image: Image) -> bool:
    return image.controller_id == 2


async def test_who_waits_goes_on_when_the_image_shows_it_and_not_before() -> None:
    cache = MetadataCache(BrokerId(1), ManualClock())
    waiter = MetadataWaiter(cache)
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(waiter.wait_for(second))
        for controller in (1, 2):
            await asyncio.sleep(0)
            assert not waiting.done()
            cache.apply(Update(BrokerId(controller), ControllerEpoch(1), ()))
            waiter.on_image_changed()
    await waiter.wait_for(second)


async def test_who_gives_up_is_forgotten() -> None:
    cache = MetadataCache(BrokerId(1), ManualClock())
    waiter = MetadataWaiter(cache)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await waiter.wait_for(second)
    assert waiter._waiting == []


@pytest.mark.spec("DLY-31")
async def test_an_election_is_answered_when_the_metadata_shows_it_or_with_a_timeout() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await plane.start(2)
        await settle()
        await create(one, "t", 2, 1)
        for hears_of_it in (True, False):
            await plane.kill(2)
            await until(lambda: leader(one) == 1)
            await plane.start(2)
            path = paths.partition_state(T0)
            state = StateNode.decode((await stored(one, path)).data)
            await one.store.set(path, state._replace(isr=(BrokerId(1), BrokerId(2))).encode())
            note = f"{paths.ISR_CHANGES}/{paths.ISR_CHANGE_PREFIX}"
            await one.store.create(note, PartitionsNode((T0,)).encode(), sequential=True)
            await settle()
            if not hears_of_it:
                plane.wires.cut.add(BrokerId(1))
            codes = await one.controller.elect_leaders(ElectionKind.PREFERRED, [T0], 3_000)
            expected = ErrorCode.none if hears_of_it else ErrorCode.request_timed_out
            assert codes == {T0: expected}
            assert leader(one) == (2 if hears_of_it else 1)
        plane.wires.cut.clear()
