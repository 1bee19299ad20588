"""The controller's event queue: one consumer, first in, first out.

Owns the order, and when an item that could not be handled is tried again. Never looks into items.

The queue needs no bound of its own: a watch fires once, a broker has one request in flight, and
requests wait for their replies.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, NamedTuple, TypeAlias

from ottla.controller.events import Event
from ottla.model.clock import Clock
from ottla.store.changes import Change
from ottla.store.port import Session

Item: TypeAlias = Change | Event | Session

BACKOFF_S: Final = 0.1
BACKOFF_MAX_S: Final = 10.0


class Queued(NamedTuple):
    put_ns: int
    item: Item
    failures: int = 0
    """How often it was put back."""


class EventQueue:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._items: deque[Queued] = deque()
        self._arrived = asyncio.Event()
        self._backing_off: dict[asyncio.TimerHandle, None] = {}

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, item: Item) -> bool:
        return any(queued.item is item for queued in self._items)

    def put(self, item: Item, failures: int = 0) -> None:
        self._items.append(Queued(self._clock.mono_ns(), item, failures))
        self._arrived.set()

    def put_first(self, item: Item) -> None:
        """Before items that would wait for the store."""
        self.put(item)
        self._items.rotate(1)

    def put_back(self, queued: Queued) -> None:
        """Put an item that could not be handled at the end again, later each time."""
        delay_s = min(BACKOFF_MAX_S, BACKOFF_S * 2 ** min(queued.failures, 16))

        def put_again() -> None:
            self._backing_off.pop(timer, None)
            self.put(queued.item, queued.failures + 1)

        timer = asyncio.get_running_loop().call_later(delay_s, put_again)
        self._backing_off[timer] = None

    async def next(self) -> Queued:
        while not self._items:
            self._arrived.clear()
            await self._arrived.wait()
        return self._items.popleft()

    def forget_put_back(self) -> None:
        """For a controller that resigned: the next one reads everything."""
        for timer in self._backing_off:
            timer.cancel()
        self._backing_off.clear()

    def clear(self) -> None:
        self._items.clear()
        self.forget_put_back()
