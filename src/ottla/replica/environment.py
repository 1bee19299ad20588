"""What every partition of one broker shares: who we are, the clock, and where to do slow work.

Owns nothing that grows. One object, so that ten thousand partitions hold one reference each.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop, Future
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from ottla.model.clock import Clock
from ottla.model.ids import BrokerId

Result = TypeVar("Result")


class ThreadPool(NamedTuple):
    """Where work that may block is done: off the loop."""

    loop: AbstractEventLoop
    pool: Executor | None

    def run(self, work: Callable[..., Result], *arguments: object) -> Future[Result]:
        return self.loop.run_in_executor(self.pool, work, *arguments)


@dataclass(frozen=True, slots=True)
class ReplicaEnvironment:
    me: BrokerId
    clock: Clock
    off: ThreadPool
    lag_max_ms: int
    """A follower behind for longer than this leaves the in-sync set."""
