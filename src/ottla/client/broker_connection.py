"""One broker: the connection to it and the API versions it supports.

Owns: correlation ids, request headers, and the ApiVersions handshake of every new connection.
 Never retries, never chooses a broker.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

from kio.schema.index import api_key_map

from ottla.client.cluster_view import Node
from ottla.client.errors import UnsupportedVersion
from ottla.config.client import ClientConfig
from ottla.config.listeners import ENCRYPTED, WITH_LOGIN
from ottla.model.clock import Clock
from ottla.model.errors import Disconnect
from ottla.net.bulk_receiver import BUFFER_BYTES
from ottla.net.limits import NetLimits
from ottla.net.outbound_connection import Ask, OutboundConnection, OutboundLimits
from ottla.net.version_handshake import SupportedVersions, request_versions
from ottla.protocol import schema, wire
from ottla.protocol.records.compression import Bytes
from ottla.protocol.schema import KioMessage
from ottla.protocol.wire import Fields
from ottla.security.tls.contexts import ClientTls

if TYPE_CHECKING:
    from ottla.security.sasl.client import ClientLogin


class ClientSecurity(NamedTuple):
    """How connections of one client are encrypted and logged in."""

    tls: ClientTls | None
    login: ClientLogin | None

    @classmethod
    def of(cls, config: ClientConfig, clock: Clock) -> ClientSecurity:
        """Reads key stores; a UserError names the setting that is wrong."""
        protocol = config.security_protocol
        tls = ClientTls(config) if protocol in ENCRYPTED else None
        if protocol not in WITH_LOGIN:
            return cls(tls, None)
        from ottla.security.sasl.client import ClientLogin  # a tenth of the client's imports

        return cls(tls, ClientLogin(config, clock))


class Versions(SupportedVersions):
    """What a broker supports; asking for a version that it lacks is an error for the user."""

    def pick(self, key: int, at_most: int | None = None) -> int:
        """The newest version that both sides support."""
        common = self.newest_common(key, at_most)
        if common is not None:
            return common
        supported = [
            version for version in schema.versions(key) if at_most is None or version <= at_most
        ]
        low, high = self.ranges.get(key, (0, -1))
        name = api_key_map.get(key, f"api {key}")
        offered = (
            f"supports versions {low} to {high}" if key in self.ranges else "does not support it"
        )
        own = f"{supported[0]} to {supported[-1]}" if supported else "none"
        raise UnsupportedVersion(
            f"no common version of {name}: the broker {offered}, this client supports {own}"
        )


READ_BYTES: Final = 256 << 10
_HEADER: Final = struct.Struct(">ihhih")


class BrokerConnection:
    """Requests to one broker, over one connection that reconnects by itself."""

    def __init__(
        self,
        node: Node,
        config: ClientConfig,
        clock: Clock,
        dice: Random,
        security: ClientSecurity | None = None,
    ) -> None:
        self.node = node
        self._login = None if security is None else security.login
        self.versions = Versions()  # of the current connection, or of the last one
        self.used_ms = clock.mono_ms()
        self._config = config
        self._clock = clock
        self._client_id = config.client_id.encode()
        self._correlation = 0
        self.peer = OutboundConnection(
            node.host, node.port, clock, dice, _limits(config), handshake=self._handshake,
            tls=None if security is None else security.tls,
        )  # fmt: skip

    async def ready(self) -> Versions:
        """The versions the broker supports; connects if there is no connection."""
        self.used_ms = self._clock.mono_ms()
        await self.peer.connect()
        return self.versions

    async def ask(self, key: int, version: int, fields: Fields, timeout_ms: int) -> KioMessage:
        """Send one request and return its response, as kio's class of that version."""
        request = wire.encode_request(
            key, version, self._next_correlation_id(), self._config.client_id, fields
        )
        reply = await self.peer.call(request, timeout_ms)
        self.used_ms = self._clock.mono_ms()
        return self.read(key, version, reply)

    async def ask_bytes(
        self, key: int, version: int, body: Sequence[Bytes], timeout_ms: int
    ) -> memoryview:
        """Send a request whose body is encoded already; the response frame without its size."""
        reply = await self.peer.call(b"".join(self._frame(key, version, body)), timeout_ms)
        self.used_ms = self._clock.mono_ms()
        return reply

    def post(
        self, key: int, version: int, body: Sequence[Bytes]
    ) -> asyncio.Future[memoryview] | None:
        """As `ask_bytes`, without waiting; None without a connection. Callers apply the timeout."""
        self.used_ms = self._clock.mono_ms()
        return self.peer.post(self._frame(key, version, body))

    def put(self, key: int, version: int, body: Sequence[Bytes]) -> bool:
        """Send a request that has no response, without waiting; False without a connection."""
        self.used_ms = self._clock.mono_ms()
        return self.peer.put(self._frame(key, version, body))

    def _frame(self, key: int, version: int, body: Sequence[Bytes]) -> list[Bytes]:
        tags = b"\0" if version >= wire.FLEXIBLE_SINCE.get(key, wire.NEVER) else b""
        name = self._client_id
        size = _HEADER.size - 4 + len(name) + len(tags) + sum(map(len, body))
        head = _HEADER.pack(size, key, version, self._next_correlation_id(), len(name))
        return [head + name + tags, *body]

    async def _handshake(self, ask: Ask) -> int:
        """Ask for the API versions, then log in."""
        supported = await request_versions(
            ask, self._next_correlation_id, self._config.client_id, str(self.node)
        )
        self.versions = Versions(supported.ranges, supported.finalized, supported.supported)
        if self._login is None:
            return 0
        from ottla.security.sasl.login_requests import Requests, log_in

        requests = Requests(
            ask, self._next_correlation_id, self._config.client_id, supported.newest_common,
            str(self.node), self.node.host,
        )  # fmt: skip
        return await log_in(requests, self._login)

    def read(self, key: int, version: int, frame: memoryview) -> KioMessage:
        """Decode a response frame to kio's class; closes the connection if that fails."""
        try:
            return wire.decode_reply(key, version, frame)
        except Disconnect as fault:
            self.peer.hang_up()
            raise ConnectionError(
                f"cannot decode response from {self.node}: {fault}; connection closed"
            ) from None

    def _next_correlation_id(self) -> int:
        self._correlation = (self._correlation + 1) & 0x7FFF_FFFF
        return self._correlation


def _limits(config: ClientConfig) -> OutboundLimits:
    return OutboundLimits(
        max_reply_bytes=(1 << 31) - 1,
        reconnect_backoff_ms=config.reconnect_backoff_ms,
        reconnect_backoff_max_ms=config.reconnect_backoff_max_ms,
        connect_timeout_ms=config.socket_connection_setup_timeout_ms,
        read_bytes=READ_BYTES,
        sockets=NetLimits(
            socket_send_buffer_bytes=config.send_buffer_bytes,
            socket_receive_buffer_bytes=config.receive_buffer_bytes,
        ),
        bulk_buffer_bytes=0 if config.is_given("receive_buffer_bytes") else BUFFER_BYTES,
    )
