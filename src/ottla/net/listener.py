"""One end point: accepts connections and hands them to channels.

Owns: the listening socket, and the connections that came through it until they are gone.
Never: reads or writes on a connection.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Protocol

from ottla.net.acceptor import Acceptor
from ottla.net.channel import Channel, ChannelContext, TlsServer
from ottla.net.connection import Connection, Login
from ottla.net.network import Network
from ottla.net.request_slot import Answer, FileSlice, Part, Peer, RequestSlot
from ottla.net.tls.connection import TlsConnection
from ottla.net.transports import tune_socket

__all__ = ["Answer", "Endpoint", "FileSlice", "Listener", "Part", "Peer", "RequestSlot"]


class Endpoint(Protocol):
    """Where to listen: a name, a host (empty: all), a port (0: a free one), a protocol."""

    @property
    def name(self) -> str: ...

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...

    @property
    def protocol(self) -> str: ...


class Listener:
    """Serves one end point until it is stopped."""

    def __init__(
        self,
        endpoint: Endpoint,
        answer: Answer,
        network: Network,
        *,
        control_plane: bool = False,
        tls: TlsServer | None = None,
        login: Callable[[Connection], Login] | None = None,
    ) -> None:
        self.endpoint = endpoint
        self._network = network
        self._context = ChannelContext(
            endpoint.name, str(endpoint.protocol), answer, control_plane, tls, login
        )
        self._server: asyncio.AbstractServer | None = None
        self._acceptors: list[Acceptor] = []

    @property
    def connection_count(self) -> int:
        return self._network.connection_counts.of_listener(self.endpoint.name)

    async def start(self) -> int:
        """Listen and accept; the port it really has."""
        port = await self.bind()
        await self.serve()
        return port

    async def bind(self) -> int:
        """Take the address, so that others can be told of it; nobody can connect yet."""
        network = self._network
        host = self.endpoint.host or ("0.0.0.0" if self.endpoint.port == 0 else None)
        make = self._channel if self._context.tls is None else self._tls_channel
        self._server = await asyncio.get_running_loop().create_server(
            make, host, self.endpoint.port, start_serving=False
        )
        network.on_listener_opened()
        network.metrics.registry.gauge(
            "kafka_server_socketservermetrics_connection_count",
            "Open connections of one listener.",
            lambda: self.connection_count,
            listener=self.endpoint.name,
        )
        network.refused_counter(self.endpoint.name)  # shown as 0 from the start
        sockets = getattr(self._server, "sockets", ())
        self._acceptors = [Acceptor(each.fileno(), make, self._prepare) for each in sockets]
        return int(sockets[0].getsockname()[1]) if sockets else self.endpoint.port

    def _prepare(self, accepted: socket.socket) -> None:
        tune_socket(accepted, self._network.limits)

    def _channel(self) -> Channel:
        return Channel(self._network, self._context)

    def _tls_channel(self) -> TlsConnection:
        network, tls = self._network, self._context.tls
        assert tls is not None
        return TlsConnection(
            self._channel(), tls.session, room=network.tls.room, run=network.tls.run,
            is_server=True, counts=network.connection_counts,
        )  # fmt: skip

    async def serve(self) -> None:
        """Accept connections from now on."""
        assert self._server is not None, "call bind() before serve()"
        for acceptor in self._acceptors:
            acceptor.start(self._network.limits.socket_listen_backlog_size)
        if not self._acceptors:  # a simulated network
            await self._server.start_serving()

    async def stop(self, drain_ms: int) -> None:
        """Accept nothing more, answer what was started within `drain_ms`, close everything."""
        server, self._server = self._server, None
        if server is None:
            return
        for acceptor in self._acceptors:
            await acceptor.stop()
        server.close()
        name = self.endpoint.name
        self._network.waiting_connections.close_waiting(name, f"listener {name} is closed")
        for live in self._network.connections_of(name):
            live.drain()
        try:
            async with asyncio.timeout(drain_ms / 1e3):
                await self._network.wait_until_empty(name)
        except TimeoutError:
            for live in self._network.connections_of(name):
                live.evict(f"listener {name} stops; not finished within {drain_ms} ms")
            await self._network.wait_until_empty(name)
        self._network.on_listener_closed()
