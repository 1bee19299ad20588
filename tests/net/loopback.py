"""A listener on a real socket of this machine, and its clients.

Owns: one network, its listener and the connections that a test opened. Needs a real loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import struct
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from ottla.model.clock import SystemClock
from ottla.model.metrics import Registry
from ottla.net.channel import TlsServer
from ottla.net.limits import NetLimits
from ottla.net.listener import Answer, Listener
from ottla.net.network import Network
from ottla.net.request_metrics import RequestMetrics
from tests.net.frames import numbers_in
from tests.net.rig import a_pass


class Place(NamedTuple):
    name: str = "PLAINTEXT"
    host: str = "127.0.0.1"
    port: int = 0
    protocol: str = "PLAINTEXT"


class Client:
    """The other side, with asyncio's own streams."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @property
    def tls(self) -> ssl.SSLObject:
        session: ssl.SSLObject = self.writer.get_extra_info("ssl_object")
        return session

    async def reply(self) -> bytes:
        head = await self.reader.readexactly(4)
        return head + await self.reader.readexactly(struct.unpack(">i", head)[0])

    async def numbers(self, count: int) -> list[int]:
        return [numbers_in(await self.reply())[0] for _ in range(count)]

    async def hung_up(self) -> bool:
        """True once the server has closed."""
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            return await self.reader.read(1) == b""
        return True


class Served:
    """A listener, what it shares, and the clients that were connected."""

    def __init__(
        self,
        network: Network,
        listener: Listener,
        port: int,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.network = network
        self.listener = listener
        self.port = port
        self._tls = tls
        self._clients: list[Client] = []

    async def client(self) -> Client:
        client = Client(*await asyncio.open_connection("127.0.0.1", self.port, ssl=self._tls))
        self._clients.append(client)
        return client

    async def hang_up(self) -> None:
        for client in self._clients:
            client.writer.close()
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                await client.writer.wait_closed()


@contextlib.asynccontextmanager
async def serving(
    answer: Answer,
    limits: NetLimits | None = None,
    *,
    tls: TlsServer | None = None,
    client_tls: ssl.SSLContext | None = None,
) -> AsyncIterator[Served]:
    clock = SystemClock()
    metrics = RequestMetrics(Registry(), {0: "Produce"}, clock)
    network = Network(limits or NetLimits(), clock, metrics)
    place = Place() if tls is None else Place("SSL", protocol="SSL")
    listener = Listener(place, answer, network, tls=tls)
    served = Served(network, listener, await listener.start(), client_tls)
    try:
        yield served
    finally:
        await served.hang_up()
        await listener.stop(1_000)
        assert network.connection_counts.total == 0
        assert network.buffers.kept_bytes == 0


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await a_pass()
