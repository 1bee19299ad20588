"""Work that may only run inside a user's `poll`.

Owns the queue between the background loops and the user's call: listeners are called, and
assignments change, only during a poll. Never decides what the work is.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeAlias

Work: TypeAlias = Callable[[], Awaitable[None]]


class PollCall(NamedTuple):
    work: Work
    future: asyncio.Future[None]


class PollGate:
    """A loop submits work and waits; a poll runs it."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._wake_poll = ring
        self._waiting: deque[PollCall] = deque()
        self._failures: deque[Exception] = deque()

    @property
    def is_quiet(self) -> bool:
        return not self._waiting and not self._failures

    async def call(self, work: Work) -> None:
        """Have a poll run `work`, and wait until it has."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(PollCall(work, future))
        self._wake_poll()
        await future

    def fail(self, error: Exception) -> None:
        """Make the next poll raise `error`."""
        self._failures.append(error)
        self._wake_poll()

    async def run_pending(self) -> None:
        """Inside a poll: run the submitted work, then raise the first failure."""
        while self._waiting:
            call = self._waiting.popleft()
            if call.future.done():  # the submitter was cancelled
                continue
            try:
                await call.work()
            except asyncio.CancelledError:  # the poll was cancelled: the next one runs it
                self._waiting.appendleft(call)
                raise
            except Exception as error:  # of the user's listener: raised by the poll
                self._failures.append(error)
            if not call.future.done():
                call.future.set_result(None)
        if self._failures:
            raise self._failures.popleft()
