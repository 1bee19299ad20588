"""Waits until this broker's metadata cache shows a change.

Owns the waiting requests. The controller's reply says that a change is decided; a client that gets
the reply must also see the change with its next request to this broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

from ottla.metadata.cache import MetadataCache
from ottla.metadata.image import Image

Condition: TypeAlias = Callable[[Image], bool]


class MetadataWaiter:
    def __init__(self, metadata: MetadataCache) -> None:
        self._metadata = metadata
        self._waiting: list[tuple[Condition, asyncio.Future[None]]] = []

    @property
    def image(self) -> Image:
        return self._metadata.image

    async def wait_for(self, condition: Condition) -> None:
        """Return once the condition is true of the image; the caller sets the timeout."""
        if condition(self._metadata.image):
            return
        entry = (condition, asyncio.get_running_loop().create_future())
        self._waiting.append(entry)
        try:
            await entry[1]
        finally:
            if entry in self._waiting:
                self._waiting.remove(entry)

    async def wait_for_brokers(self, timeout_ms: int) -> None:
        """Return once the controller has sent the live brokers, or after the timeout."""
        if self._metadata.image.brokers:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_ms / 1000):
                await self.wait_for(lambda image: bool(image.brokers))

    def on_image_changed(self) -> None:
        if not self._waiting:
            return
        image, waiting = self._metadata.image, self._waiting
        self._waiting = []
        for condition, done in waiting:
            if not condition(image):
                self._waiting.append((condition, done))
            elif not done.done():
                done.set_result(None)
