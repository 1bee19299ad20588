"""Waiting until the metadata shows it."""

from __future__ import annotations

import asyncio

import pytest

from ottla.controller.shown import Shown
from ottla.metadata.cache import MetadataCache
from ottla.metadata.image import Image, Update
from ottla.model.ids import BrokerId, ControllerEpoch
from tests.fakes.virtual_loop import run


def second(image: Image) -> bool:
    return image.controller_id == 2


def test_who_waits_goes_on_when_the_image_shows_it_and_not_before() -> None:
    async def story() -> None:
        cache = MetadataCache(BrokerId(1))
        shown = Shown(cache)
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(shown.until(second))
            for controller in (1, 2):
                await asyncio.sleep(0)
                assert not waiting.done()
                cache.apply(Update(BrokerId(controller), ControllerEpoch(1), ()))
                shown.changed()
        await shown.until(second)

    run(story())


def test_who_gives_up_is_forgotten() -> None:
    async def story() -> None:
        cache = MetadataCache(BrokerId(1))
        shown = Shown(cache)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await shown.until(second)
        assert shown._waiting == []

    run(story())
