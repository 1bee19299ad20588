"""Background tasks of the sender: metadata, connections, producer ids.

Owns: at most one task of each name at a time, and the backoff after a failure. Never raises: a
failed task is run again when it is next requested, after the backoff.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Hashable
from typing import Final

from ottla.client.errors import KafkaError
from ottla.client.retry import Backoff, error_text
from ottla.model.clock import Clock, MonoMs

log: Final = logging.getLogger("ottla.producer")


class BackgroundTasks:
    """The background tasks of one producer."""

    def __init__(self, clock: Clock, backoff: Backoff, done: Callable[[], object]) -> None:
        self._clock = clock
        self._backoff = backoff
        self._on_done = done
        self._tasks: asyncio.TaskGroup | None = None
        self._busy: dict[Hashable, asyncio.Task[None]] = {}
        self._failures: dict[Hashable, tuple[int, MonoMs]] = {}

    async def open(self) -> None:
        self._tasks = asyncio.TaskGroup()
        await self._tasks.__aenter__()

    async def close(self) -> None:
        """Cancel all tasks."""
        if self._tasks is not None:
            tasks, self._tasks = self._tasks, None
            for task in self._busy.values():
                task.cancel()
            await tasks.__aexit__(None, None, None)

    def start(self, name: Hashable, work: Callable[[], Coroutine[object, None, object]]) -> int:
        """Start a task unless it is running or in backoff; the remaining backoff in ms."""
        if self._tasks is None or name in self._busy:
            return 0
        _, not_before_ms = self._failures.get(name, (0, MonoMs(0)))
        wait_ms = not_before_ms - self._clock.mono_ms()
        if wait_ms > 0:
            return wait_ms
        self._busy[name] = self._tasks.create_task(self._attempt(name, work))
        return 0

    async def _attempt(
        self, name: Hashable, work: Callable[[], Coroutine[object, None, object]]
    ) -> None:
        try:
            await work()
        except Exception as error:
            if not isinstance(error, KafkaError | OSError):
                log.exception("producer background task %s failed", name)
            count = self._failures.get(name, (0, MonoMs(0)))[0] + 1
            pause_ms = self._backoff.after(count)
            self._failures[name] = (count, MonoMs(self._clock.mono_ms() + pause_ms))
            log.debug(
                "producer background task %s failed, retry in %s ms: %s",
                name,
                pause_ms,
                error_text(error),
            )
        else:
            self._failures.pop(name, None)
        finally:
            self._busy.pop(name, None)
            self._on_done()
