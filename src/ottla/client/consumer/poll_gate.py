"""Work that may only be done while the user is inside `poll`.

Owns the queue between the loops in the background and the user's call: listeners must be called,
and partitions change hands, at a time the user knows of. Never does the work itself.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeAlias

Work: TypeAlias = Callable[[], Awaitable[None]]


class PollCall(NamedTuple):
    work: Work
    done: asyncio.Future[None]


class PollGate:
    """A loop hands in work and waits; a poll does it."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._waiting: deque[PollCall] = deque()
        self._failures: deque[Exception] = deque()

    @property
    def is_quiet(self) -> bool:
        return not self._waiting and not self._failures

    async def call(self, work: Work) -> None:
        """Have a poll do this, and wait until it has."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(PollCall(work, done))
        self._ring()
        await done

    def fail(self, error: Exception) -> None:
        """Let the next poll raise this."""
        self._failures.append(error)
        self._ring()

    async def tend(self) -> None:
        """Inside a poll: do what waits, then raise what has failed."""
        while self._waiting:
            errand = self._waiting.popleft()
            if errand.done.done():  # whoever wanted it is gone
                continue
            try:
                await errand.work()
            except asyncio.CancelledError:  # the poll was cut short: the next one does it
                self._waiting.appendleft(errand)
                raise
            except Exception as error:  # the listener's own: the user shall see it
                self._failures.append(error)
            if not errand.done.done():
                errand.done.set_result(None)
        if self._failures:
            raise self._failures.popleft()
