"""One ordered request queue per broker; each request is sent until the broker replies.

Owns the queues: one per live broker. One request per broker is in flight, so a broker gets requests
in the order of the decisions. Never decides what to send, never writes to the store: the decisions
behind the requests have been written.

A request that the broker refuses as a whole, because of a stale epoch for instance, was not
delivered either: it is sent again until the broker accepts it, or until the queue is closed because
the broker left, has a new epoch, or this controller resigned.

A broker that shuts down hears last. Its clients look for the new leaders as soon as it refuses
them, and one that does not know yet that it leads would refuse them again: they would back off.

A queue is bounded. When a broker is so slow that its queue is full, the queue is dropped and the
controller notified: it sends its full state once, instead of every step in between. Before that,
requests that wait are merged where that is safe (`request_queue.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Set
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Final, Protocol

from ottla.controller.events import BrokerBehind, Event
from ottla.controller.runtime.broker_requests import NOT_DELIVERED, Request
from ottla.controller.runtime.metrics import ControllerMetrics
from ottla.controller.runtime.request_queue import RequestQueue
from ottla.controller.state import BrokerState
from ottla.model.errors import Disconnect, ErrorCode
from ottla.model.ids import BrokerId
from ottla.protocol.schema import KioMessage
from ottla.protocol.wire import Fields

log = logging.getLogger(__name__)

QUEUE_MAX: Final = 1_000
RETRY_S: Final = 0.1
DELIVERY_S: Final = 1.0
"""How long a reply to a client waits for brokers that are slow or gone."""
OTHERS_FIRST_S: Final = 0.1
"""How long a request to a broker that shuts down waits for the others."""

OnEvent = Callable[[Event], None]


class LinkReply(Protocol):
    @property
    def body(self) -> KioMessage:
        """The decoded reply."""


class BrokerLink(Protocol):
    """A connection to one broker, which chooses the version of each request."""

    async def ask(self, key: int, fields: Fields, timeout_ms: int) -> LinkReply:
        """The reply; OSError on failure."""

    def close(self) -> None: ...


class BrokerLinks(Protocol):
    reply_ms: int
    """How long a reply may take."""

    def open(self, broker: BrokerState) -> BrokerLink:
        """Connects at the first request; OSError if the broker has no address for us."""


class BrokerQueue:
    """The request queue of one broker and the task that sends from it."""

    def __init__(
        self,
        broker: BrokerState,
        links: BrokerLinks,
        on_event: OnEvent,
        metrics: ControllerMetrics,
    ) -> None:
        self.broker = broker
        self._links = links
        self._link: BrokerLink | None = None
        self._on_event = on_event
        self._metrics = metrics
        self.wait_for_others: Callable[[], Awaitable[None]] | None = None
        """Set while the broker shuts down: called before each request."""
        self._queue = RequestQueue()
        self._arrived = asyncio.Event()
        self._idle = asyncio.Event()
        """Nothing waits and nothing is in flight."""
        self._idle.set()

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def put(self, request: Request) -> None:
        if self.waiting == QUEUE_MAX:
            log.warning(
                "request queue of broker %d is full (%d requests), dropping it and sending the "
                "full state again",
                self.broker.id,
                self.waiting,
            )
            self._queue.clear()
            self._on_event(BrokerBehind(self.broker.id))
            return
        self._queue.put(request)
        self._idle.clear()
        self._arrived.set()

    async def run(self) -> None:
        try:
            while True:
                while self.waiting:
                    if self.wait_for_others is not None:
                        await self.wait_for_others()
                    await self._deliver(self._queue.pop())
                self._idle.set()
                self._arrived.clear()
                await self._arrived.wait()
        finally:
            if self._link is not None:
                self._link.close()

    async def delivered(self) -> None:
        """Wait until the broker has replied to everything in the queue."""
        await self._idle.wait()

    async def _deliver(self, request: Request) -> None:
        for attempt in count():
            try:
                reply = await self._ask(request)
                code: ErrorCode = reply.error_code
                if code not in NOT_DELIVERED:
                    break
                problem = f"refused with {code.name}"
            except (OSError, Disconnect) as error:
                problem = f"no reply: {error}"
            if attempt == 0:
                log.info("request to broker %d failed, retrying: %s", self.broker.id, problem)
            await asyncio.sleep(RETRY_S)  # until its registration ends
        event = request.event(reply)
        if event is not None:
            self._on_event(event)

    async def _ask(self, request: Request) -> KioMessage:
        if self._link is None:
            self._link = self._links.open(self.broker)
        with self._metrics.request(self.broker.id):
            reply = await self._link.ask(request.key, request.fields, self._links.reply_ms)
        return reply.body


class Outbox:
    def __init__(
        self,
        links: BrokerLinks,
        on_event: OnEvent,
        tasks: asyncio.TaskGroup,
        metrics: ControllerMetrics,
    ) -> None:
        self._links = links
        self._on_event = on_event
        self._tasks = tasks
        self._metrics = metrics
        self._queues: dict[BrokerId, tuple[BrokerQueue, asyncio.Task[None]]] = {}

    def update(
        self, brokers: Mapping[BrokerId, BrokerState], leaving: Set[BrokerId] = frozenset()
    ) -> None:
        """Open the queues of new brokers, close those of removed and changed ones.

        `leaving`: those that shut down.
        """
        for id, (queue, task) in list(self._queues.items()):
            if brokers.get(id) != queue.broker:
                task.cancel()
                self._metrics.remove_queue(id)
                del self._queues[id]
        for id, broker in brokers.items():
            if id not in self._queues:
                queue = BrokerQueue(broker, self._links, self._on_event, self._metrics)
                self._metrics.add_queue(id, partial(_waiting, queue))
                self._queues[id] = (queue, self._tasks.create_task(queue.run()))
        for id, (queue, _) in self._queues.items():
            queue.wait_for_others = partial(self._deliver_to_others, id) if id in leaving else None

    def send(self, requests: Iterable[Request]) -> None:
        for request in requests:
            self._queues[request.broker.id][0].put(request)

    def after_delivery(self, act: Callable[[], None]) -> None:
        """Call `act` once all brokers have replied to what was sent so far, or after a second."""
        self._tasks.create_task(self._act_after_delivery(act))

    async def _act_after_delivery(self, act: Callable[[], None]) -> None:
        await _wait_delivered([queue for queue, _ in self._queues.values()], DELIVERY_S)
        act()

    async def _deliver_to_others(self, id: BrokerId) -> None:
        others = [queue for other, (queue, _) in self._queues.items() if other != id]
        await _wait_delivered(others, OTHERS_FIRST_S)

    def close(self) -> None:
        self.update({})


async def _wait_delivered(queues: Iterable[BrokerQueue], within_s: float) -> None:
    """Until all these brokers have replied to what was sent so far, or the time is over."""
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            for queue in queues:
                await queue.delivered()


def _waiting(queue: BrokerQueue) -> int:
    return queue.waiting
