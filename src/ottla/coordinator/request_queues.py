"""Requests of a coordinator to other brokers: queued by destination, sent in batches.

Owns the queues, how many requests to one broker are in flight, and that a request ends when its
broker is no longer alive: a broker that hangs does not reset its connections. Items that are queued
in one turn of the event loop share a request, and so do those that arrive while `IN_FLIGHT_MAX`
requests wait for their replies. Every item gets exactly one result. Never retries: the caller does,
after it has looked up again which broker to ask.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

from ottla.delay.timers import Call, Timers
from ottla.metadata.cache import MetadataCache
from ottla.model.ids import BrokerId
from ottla.net.broker_link import LinkReply
from ottla.protocol.wire import Fields

log = logging.getLogger(__name__)

Item = TypeVar("Item")
Result = TypeVar("Result")

IN_FLIGHT_MAX: Final = 5
"""A broker answers in order, so a reply that waits for replication delays those behind it. More
requests in flight let it at least begin with their work."""
ALIVE_CHECK_MS: Final = 500
ITEMS_MAX: Final = 100
"""The number of items in one request."""


class Link(Protocol):
    """A connection to another broker; OSError if the request or its reply is lost."""

    async def ask(self, key: int, fields: Fields, timeout_ms: int) -> LinkReply: ...


Connect: TypeAlias = Callable[[BrokerId], Link]
"""The link to a broker; ConnectionError if it is not alive."""
Spawn: TypeAlias = Callable[[Coroutine[object, None, None]], asyncio.Task[None] | None]
"""Starts a task; None if the broker is stopping."""


@dataclass(frozen=True, slots=True)
class OtherBrokers:
    """How a coordinator reaches the other brokers; `connect` gives the link for one purpose."""

    connect: Connect
    metadata: MetadataCache
    timers: Timers
    spawn: Spawn

    async def ask(self, broker: BrokerId, key: int, fields: Fields, timeout_ms: int) -> LinkReply:
        """The reply to a request; OSError if it is lost, or if the broker dies meanwhile."""
        link = self.connect(broker)
        try:
            async with asyncio.timeout(None) as deadline:
                check = self._end_when_dead(broker, deadline)
                try:
                    return await link.ask(key, fields, timeout_ms)
                finally:
                    self.timers.cancel(check)
        except TimeoutError:
            if deadline.expired():
                raise ConnectionError(f"broker {broker} is no longer alive") from None
            raise

    def _end_when_dead(self, broker: BrokerId, deadline: asyncio.Timeout) -> Call:
        def check() -> None:
            if broker in self.metadata.image.brokers:
                self.timers.add(call, ALIVE_CHECK_MS)
            else:
                deadline.reschedule(0)  # now

        call = self.timers.call_later(ALIVE_CHECK_MS, check)
        return call


class RequestQueues(Generic[Item, Result]):
    """`send` sends one request and returns one result for each item, in their order.

    `lost` is the result of an item whose request or reply was lost.
    """

    def __init__(
        self,
        purpose: str,
        send: Callable[[BrokerId, Sequence[Item]], Awaitable[Sequence[Result]]],
        lost: Callable[[Item], Result],
        spawn: Spawn,
    ) -> None:
        self._purpose = purpose
        self._send = send
        self._lost = lost
        self._spawn = spawn
        self._destinations: dict[BrokerId, _Destination[Item, Result]] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}  # in the order of their start
        self._closed = False

    def put(self, broker: BrokerId, item: Item, done: Callable[[Result], object]) -> None:
        """Send the item to a broker; `done` is called once, nearly always in a later turn."""
        if self._closed:
            self._deliver(self._lost(item), done)
            return
        destination = self._destinations.get(broker)
        if destination is None:
            destination = self._destinations[broker] = _Destination()
        destination.waiting.append((item, done))
        if not destination.starting and destination.in_flight < IN_FLIGHT_MAX:
            destination.starting = True
            task = self._spawn(self._run(broker, destination))
            if task is None:  # the broker stops
                self._lose(destination)
                return
            self._tasks[task] = None
            task.add_done_callback(self._tasks.pop)

    def close(self) -> None:
        """The broker stops: requests in flight are lost, and items that wait for them."""
        self._closed = True
        for destination in self._destinations.values():
            self._lose(destination)  # the tasks that would take them may never run again
        for task in list(self._tasks):
            task.cancel()

    def _lose(self, destination: _Destination[Item, Result]) -> None:
        self._closed = True
        while destination.waiting:
            item, done = destination.waiting.popleft()
            self._deliver(self._lost(item), done)

    async def _run(self, broker: BrokerId, destination: _Destination[Item, Result]) -> None:
        destination.starting = False
        destination.in_flight += 1
        try:
            while destination.waiting:
                await self._exchange(broker, destination)
        finally:
            destination.in_flight -= 1
            if not destination.in_flight and not destination.waiting:
                self._destinations.pop(broker, None)

    async def _exchange(self, broker: BrokerId, destination: _Destination[Item, Result]) -> None:
        """One request; raises nothing, because a task that fails stops the broker."""
        waiting = destination.waiting
        batch = [waiting.popleft() for _ in range(min(len(waiting), ITEMS_MAX))]
        items = [item for item, _ in batch]
        results: Sequence[Result] | None = None
        try:
            results = await self._send(broker, items)
            destination.failures = 0
        except OSError as error:
            destination.failures += 1
            if destination.failures & (destination.failures - 1) == 0:  # the 1st, 2nd, 4th ...
                log.info("%s: request to broker %d failed: %s", self._purpose, broker, error)
        except Exception:
            log.exception("%s: request to broker %d failed", self._purpose, broker)
        finally:  # also when the broker stops
            for index, (item, done) in enumerate(batch):
                self._deliver(self._lost(item) if results is None else results[index], done)

    def _deliver(self, result: Result, done: Callable[[Result], object]) -> None:
        try:
            done(result)
        except Exception:  # of one item: the others get their results
            log.exception("%s: failed to process the result of a request", self._purpose)


class _Destination(Generic[Item, Result]):
    """The items for one broker that are not sent yet."""

    __slots__ = ("failures", "in_flight", "starting", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[tuple[Item, Callable[[Result], object]]] = deque()
        self.in_flight = 0
        self.starting = False
        """A task has been created and will take what waits."""
        self.failures = 0
        """Requests in a row that were lost."""
