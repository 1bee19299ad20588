"""The listeners of a broker: opened at the start and changed while it runs.

Owns the listening sockets and the endpoints advertised to clients and other brokers. Never decides
which settings may change (`config/changes.py` does): applies the settings as they are now.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from ottla.broker.listener_security import ListenerSecurity
from ottla.config.broker import BrokerConfig
from ottla.config.dynamic import DynamicConfig
from ottla.config.listeners import Endpoint, Listeners
from ottla.model.errors import UserError
from ottla.net.listener import Listener
from ottla.net.network import Network
from ottla.net.request_slot import Answer

log = logging.getLogger(__name__)

DRAIN_MS: Final = 5_000
"""How long a closing listener waits for running requests."""

Publish: TypeAlias = Callable[[tuple[Endpoint, ...]], Awaitable[None]]


class ListenerSet:
    """The listening sockets. `advertised`: endpoints sent to clients, with their actual ports."""

    def __init__(
        self,
        network: Network,
        answer: Answer,
        host_name: Callable[[], str],
        security: ListenerSecurity | None = None,
    ) -> None:
        self._security = security
        self._network = network
        self._answer = answer
        self._host_name = host_name
        self._open: dict[Endpoint, Listener] = {}
        self._ports: dict[Endpoint, int] = {}
        self._changed = asyncio.Event()
        self.advertised: tuple[Endpoint, ...] = ()

    async def bind(self, listeners: Listeners) -> None:
        """Bind every port before any endpoint is advertised; connections are not accepted yet."""
        for endpoint in listeners.bound:
            if endpoint not in self._open:
                await self._bind(endpoint, control_plane=endpoint.name == listeners.control_plane)
        ports = {endpoint.name: self._ports[endpoint] for endpoint in listeners.bound}
        self.advertised = listeners.advertised_endpoints(ports, host=self._host_name())

    async def serve(self) -> None:
        for listener in self._open.values():
            await listener.serve()

    async def stop(self) -> None:
        for endpoint in list(self._open):
            await self._close(endpoint)

    async def apply_changes(self, config: DynamicConfig, publish: Publish) -> None:
        """Until cancelled: open and close listeners when their settings change."""
        config.on_broker(self._on_config_changed)
        while True:
            await self._changed.wait()
            self._changed.clear()
            before = self.advertised
            try:
                await self.change(Listeners.of(config.current))
            except UserError as error:
                log.error("cannot change the listeners, keeping the current ones: %s", error)
                continue
            if self.advertised != before:
                endpoints = ", ".join(map(str, self.advertised))
                log.info("advertised listeners changed: %s", endpoints)
                await publish(self.advertised)

    async def change(self, listeners: Listeners) -> None:
        """Open new listeners, close removed ones, keep the rest; all changes are made or none.

        New ports are bound before old ones are closed, but accept connections only afterwards, so
        that two listeners of one name never serve at the same time.
        """
        open_before = set(self._open)
        try:
            await self.bind(listeners)
        except UserError:
            for endpoint in self._open.keys() - open_before:
                await self._close(endpoint)
            raise
        for endpoint in open_before.difference(listeners.bound):
            await self._close(endpoint)
        await self.serve()

    def _on_config_changed(self, before: BrokerConfig, now: BrokerConfig) -> None:
        if Listeners.of(before) != Listeners.of(now):
            self._changed.set()

    async def _bind(self, endpoint: Endpoint, *, control_plane: bool) -> None:
        security = self._security
        listener = Listener(
            endpoint,
            self._answer,
            self._network,
            control_plane=control_plane,
            tls=None if security is None else security.tls(endpoint),
            login=None if security is None else await security.login(endpoint),
        )
        try:
            self._ports[endpoint] = await listener.bind()
        except OSError as error:
            raise UserError(f"listeners: cannot bind {endpoint}: {error}") from None
        self._open[endpoint] = listener

    async def _close(self, endpoint: Endpoint) -> None:
        del self._ports[endpoint]
        await self._open.pop(endpoint).stop(DRAIN_MS)
