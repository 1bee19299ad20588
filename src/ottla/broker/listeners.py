"""Where a broker can be reached: its listeners, opened at the start and changed while it runs.

Owns the listening sockets, and what clients and other brokers are told of them. Never decides what
may change (`config/changes.py` does): what the settings say now is carried out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from ottla.config.broker import BrokerConfig
from ottla.config.dynamic import DynamicConfig
from ottla.config.listeners import Endpoint, Listeners
from ottla.model.errors import UserError
from ottla.net.listener import Listener
from ottla.net.network import Network
from ottla.net.request_slot import Answer

log = logging.getLogger(__name__)

DRAIN_MS: Final = 5_000
"""How long a listener that closes waits for requests that have begun."""

Publish: TypeAlias = Callable[[tuple[Endpoint, ...]], Awaitable[None]]


class ListenerSet:
    """`told` are the endpoints for others, with the ports that were really taken."""

    def __init__(self, network: Network, answer: Answer, host_name: Callable[[], str]) -> None:
        self._network = network
        self._answer = answer
        self._host_name = host_name
        self._open: dict[Endpoint, Listener] = {}
        self._ports: dict[Endpoint, int] = {}
        self._changed = asyncio.Event()
        self.told: tuple[Endpoint, ...] = ()

    async def bind(self, listeners: Listeners) -> None:
        """Take every port before anybody is told of one; nobody can connect yet."""
        for endpoint in listeners.bound:
            if endpoint not in self._open:
                await self._bind(endpoint, control_plane=endpoint.name == listeners.control_plane)
        ports = {endpoint.name: self._ports[endpoint] for endpoint in listeners.bound}
        self.told = listeners.advertised_endpoints(ports, host=self._host_name())

    async def serve(self) -> None:
        for listener in self._open.values():
            await listener.serve()

    async def stop(self) -> None:
        for endpoint in list(self._open):
            await self._close(endpoint)

    async def follow(self, config: DynamicConfig, publish: Publish) -> None:
        """Go on for ever: where the broker listens is what its settings say."""
        config.on_broker(self._note)
        while True:
            await self._changed.wait()
            self._changed.clear()
            before = self.told
            try:
                await self.change(Listeners.of(config.current))
            except UserError as error:
                log.error("the listeners stay as they were: %s", error)
                continue
            if self.told != before:
                log.info("now reached at %s", ", ".join(map(str, self.told)))
                await publish(self.told)

    async def change(self, listeners: Listeners) -> None:
        """Open what is new, close what is gone, leave the rest alone; all of it, or nothing.

        A new port is taken before an old one is given up, but serves only afterwards: connections
        of one name belong together.
        """
        known = set(self._open)
        try:
            await self.bind(listeners)
        except UserError:
            for endpoint in self._open.keys() - known:
                await self._close(endpoint)
            raise
        for endpoint in known.difference(listeners.bound):
            await self._close(endpoint)
        await self.serve()

    def _note(self, before: BrokerConfig, now: BrokerConfig) -> None:
        if Listeners.of(before) != Listeners.of(now):
            self._changed.set()

    async def _bind(self, endpoint: Endpoint, *, control_plane: bool) -> None:
        listener = Listener(endpoint, self._answer, self._network, control_plane=control_plane)
        try:
            self._ports[endpoint] = await listener.bind()
        except OSError as error:
            raise UserError(f"listeners: {endpoint} cannot be bound: {error}") from None
        self._open[endpoint] = listener

    async def _close(self, endpoint: Endpoint) -> None:
        del self._ports[endpoint]
        await self._open.pop(endpoint).stop(DRAIN_MS)
