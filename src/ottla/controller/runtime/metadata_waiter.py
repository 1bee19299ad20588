"""Waiting until this broker's metadata shows what was asked for.

Owns who waits. The controller's answer says that something has been decided; a client that hears
of it must also find it, here, with its next request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

from ottla.metadata.cache import MetadataCache
from ottla.metadata.image import Image

Condition: TypeAlias = Callable[[Image], bool]


class MetadataWaiter:
    def __init__(self, metadata: MetadataCache) -> None:
        self._metadata = metadata
        self._waiting: list[tuple[Condition, asyncio.Future[None]]] = []

    async def until(self, condition: Condition) -> None:
        """Return once the image fulfils it; the caller sets the time limit."""
        if condition(self._metadata.image):
            return
        entry = (condition, asyncio.get_running_loop().create_future())
        self._waiting.append(entry)
        try:
            await entry[1]
        finally:
            if entry in self._waiting:
                self._waiting.remove(entry)

    def changed(self) -> None:
        """The image is a new one."""
        if not self._waiting:
            return
        image, waiting = self._metadata.image, self._waiting
        self._waiting = []
        for condition, done in waiting:
            if not condition(image):
                self._waiting.append((condition, done))
            elif not done.done():
                done.set_result(None)
