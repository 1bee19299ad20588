"""What every partition of one broker shares: the broker id, the clock and the thread pool.

One object, so that ten thousand partitions hold one reference each.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop, Future
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from ottla.model.clock import Clock
from ottla.model.ids import BrokerId
from ottla.replica.producer_id_limit import ProducerIdLimit

Result = TypeVar("Result")


class ThreadPool(NamedTuple):
    """Runs blocking work outside the event loop."""

    loop: AbstractEventLoop
    pool: Executor | None

    def run(self, work: Callable[..., Result], *arguments: object) -> Future[Result]:
        return self.loop.run_in_executor(self.pool, work, *arguments)


@dataclass(slots=True)
class StoreContact:
    """Whether the metadata store may have ended this broker's session."""

    is_overdue: bool = False
    """Its leaders may have successors by now; they go on serving until they learn of them."""


@dataclass(frozen=True, slots=True)
class ReplicaEnvironment:
    broker_id: BrokerId
    clock: Clock
    thread_pool: ThreadPool
    lag_max_ms: int
    """A follower behind for longer than this leaves the in-sync set."""
    store_contact: StoreContact = field(default_factory=StoreContact)
    producer_ids: ProducerIdLimit = field(default_factory=ProducerIdLimit)
