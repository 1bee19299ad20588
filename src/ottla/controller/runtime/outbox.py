"""One ordered queue of requests per broker, each sent until it is answered.

Owns the channels: they follow the live brokers. One request is in flight per broker, so a broker
hears things in the order they were decided. Never decides what to send, never writes to the store:
whatever is put here has been written.

A channel's queue is bounded. When a broker is so slow that it fills, what waits is dropped and the
controller is told: it will say everything again, once, instead of every step in between.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, Protocol

from ottla.controller.events import BrokerBehind, Event
from ottla.controller.runtime.broker_requests import Request
from ottla.controller.runtime.metrics import ControllerMetrics
from ottla.controller.state import BrokerState
from ottla.model.errors import Disconnect
from ottla.model.ids import BrokerId

log = logging.getLogger(__name__)

CLIENT_ID: Final = "controller"
QUEUE_MAX: Final = 1_000
RETRY_S: Final = 0.1

Tell = Callable[[Event], None]


class BrokerLink(Protocol):
    """A way to one broker. The reply comes without its size; OSError when there is none."""

    async def call(self, frame: bytes) -> bytes | memoryview: ...

    async def close(self) -> None: ...


class BrokerLinks(Protocol):
    def open(self, broker: BrokerState) -> BrokerLink:
        """Connecting happens at the first call."""


class BrokerQueue:
    """The task of one broker."""

    def __init__(
        self, broker: BrokerState, link: BrokerLink, tell: Tell, measures: ControllerMetrics
    ) -> None:
        self.broker = broker
        self._link = link
        self._tell = tell
        self._measures = measures
        self._queue: asyncio.Queue[Request] = asyncio.Queue(QUEUE_MAX)
        self._correlation_id = 0

    @property
    def waiting(self) -> int:
        return self._queue.qsize()

    def put(self, request: Request) -> None:
        if self._queue.full():
            log.warning("broker %d is %d requests behind", self.broker.id, self.waiting)
            while not self._queue.empty():
                self._queue.get_nowait()
            self._tell(BrokerBehind(self.broker.id))
            return
        self._queue.put_nowait(request)

    async def run(self) -> None:
        try:
            while True:
                await self._deliver(await self._queue.get())
        finally:
            await self._link.close()

    async def _deliver(self, request: Request) -> None:
        while True:
            self._correlation_id += 1
            frame = request.frame(self._correlation_id, CLIENT_ID)
            try:
                with self._measures.request(self.broker.id):
                    reply = await self._link.call(frame)
                event = request.event(memoryview(reply))
            except (OSError, Disconnect) as gone:
                log.info("broker %d did not answer: %s", self.broker.id, gone)
                await asyncio.sleep(RETRY_S)  # as long as it is registered, it must hear this
                continue
            if event is not None:
                self._tell(event)
            return


class Outbox:
    def __init__(
        self, links: BrokerLinks, tell: Tell, tasks: asyncio.TaskGroup, measures: ControllerMetrics
    ) -> None:
        self._links = links
        self._tell = tell
        self._tasks = tasks
        self._measures = measures
        self._channels: dict[BrokerId, tuple[BrokerQueue, asyncio.Task[None]]] = {}

    def follow(self, brokers: Mapping[BrokerId, BrokerState]) -> None:
        """Channels for those who came, none for those who left, new ones for those who moved."""
        for id, (channel, task) in list(self._channels.items()):
            if brokers.get(id) != channel.broker:
                task.cancel()
                self._measures.channel_gone(id)
                del self._channels[id]
        for id, broker in brokers.items():
            if id not in self._channels:
                link = self._links.open(broker)
                channel = BrokerQueue(broker, link, self._tell, self._measures)
                self._measures.channel(id, partial(_waiting, channel))
                self._channels[id] = (channel, self._tasks.create_task(channel.run()))

    def send(self, requests: Iterable[Request]) -> None:
        for request in requests:
            self._channels[request.broker.id][0].put(request)

    def close(self) -> None:
        self.follow({})


def _waiting(channel: BrokerQueue) -> int:
    return channel.waiting
