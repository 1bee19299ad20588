"""An event loop whose time jumps to the next timer: an hour of waiting takes no time at all."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from ottla.model.clock import MonoMs, WallMs

Result = TypeVar("Result")


class VirtualLoop(asyncio.SelectorEventLoop):
    """Never waits: when nothing is ready, time moves to the next timer."""

    _now = 0.0

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        ready, scheduled = self._ready, self._scheduled  # type: ignore[attr-defined]
        if not ready:
            # A cancelled timer stays in the heap; jumping to it would wait for the next in earnest.
            waiting = (timer.when() for timer in scheduled if not timer.cancelled())
            self._now = max(self._now, min(waiting, default=self._now))
        super()._run_once()  # type: ignore[misc]


class LoopClock:
    """The clock of whatever loop is running."""

    def __init__(self) -> None:
        self.busy_ns = 0
        """How long callbacks have taken: virtual time stands still in them, unless a test says."""

    def mono_ns(self) -> int:
        return round(asyncio.get_running_loop().time() * 1e9) + self.busy_ns

    def mono_ms(self) -> MonoMs:
        return MonoMs(self.mono_ns() // 1_000_000)

    def wall_ms(self) -> WallMs:
        return WallMs(self.mono_ms() + 1_700_000_000_000)


def run(work: Coroutine[Any, Any, Result], limit_s: float = 3_600) -> Result:
    """Run a whole test on its own time; fails if it would wait for ever."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(asyncio.wait_for(work, limit_s))
