"""One broker: the connection to it and the API versions it supports.

Owns: correlation ids, request headers, and the ApiVersions handshake of every new connection.
 Never retries, never chooses a broker.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Any, Final, NamedTuple

from kio.schema.index import api_key_map

from ottla.client.cluster_view import Node
from ottla.client.errors import UnsupportedVersion, refusal
from ottla.config.client import ClientConfig
from ottla.config.listeners import ENCRYPTED, WITH_LOGIN
from ottla.model.clock import Clock
from ottla.model.errors import AuthenticationFailed, Disconnect, ErrorCode
from ottla.net.bulk_receiver import BUFFER_BYTES
from ottla.net.limits import NetLimits
from ottla.net.outbound_connection import Ask, OutboundConnection, OutboundLimits
from ottla.protocol import schema, wire
from ottla.protocol.records.compression import Bytes
from ottla.protocol.wire import Fields
from ottla.security.sasl.client import ClientLogin
from ottla.security.tls.contexts import ClientTls


class ClientSecurity(NamedTuple):
    """How connections of one client are encrypted and logged in."""

    tls: ClientTls | None
    login: ClientLogin | None

    @classmethod
    def of(cls, config: ClientConfig, clock: Clock) -> ClientSecurity:
        """Reads key stores; a UserError names the setting that is wrong."""
        protocol = config.security_protocol
        return cls(
            ClientTls(config) if protocol in ENCRYPTED else None,
            ClientLogin(config, clock) if protocol in WITH_LOGIN else None,
        )


@dataclass(frozen=True, slots=True)
class Versions:
    """What a broker supports: version ranges by API key (inclusive), and features."""

    ranges: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    finalized: Mapping[str, int] = field(default_factory=dict)
    """The finalized level of each feature."""
    supported: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, reply: Any) -> Versions:
        """From an ApiVersions response."""
        return cls(
            {entry.api_key: (entry.min_version, entry.max_version) for entry in reply.api_keys},
            {entry.name: entry.max_version_level for entry in reply.finalized_features},
            {
                entry.name: (entry.min_version, entry.max_version)
                for entry in reply.supported_features
            },
        )

    def offers(self, key: int, version: int = 0) -> bool:
        """Whether the broker supports this API in `version` or newer."""
        return key in self.ranges and self.ranges[key][1] >= version

    def pick(self, key: int, at_most: int | None = None) -> int:
        """The newest version that both sides support."""
        supported = [
            version for version in schema.versions(key) if at_most is None or version <= at_most
        ]
        low, high = self.ranges.get(key, (0, -1))
        shared = [version for version in supported if low <= version <= high]
        if shared:
            return shared[-1]
        name = api_key_map.get(key, f"api {key}")
        offered = (
            f"supports versions {low} to {high}" if key in self.ranges else "does not support it"
        )
        own = f"{supported[0]} to {supported[-1]}" if supported else "none"
        raise UnsupportedVersion(
            f"no common version of {name}: the broker {offered}, this client supports {own}"
        )


SASL_HANDSHAKE: Final = 17
API_VERSIONS: Final = 18
SASL_AUTHENTICATE: Final = 36
MS: Final = timedelta(milliseconds=1)
NEWEST_API_VERSIONS: Final = 4
SOFTWARE: Final = "ottla"
READ_BYTES: Final = 256 << 10
_HEADER: Final = struct.Struct(">ihhih")
_ERROR: Final = struct.Struct(">ih")


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
        self.session_lifetime_ms = 0  # how long a login is good for; 0: for ever
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

    async def ask(self, key: int, version: int, fields: Fields, timeout_ms: int) -> Any:
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
        reply = await self.peer.call(b"".join(self._framed(key, version, body)), timeout_ms)
        self.used_ms = self._clock.mono_ms()
        return reply

    def post(
        self, key: int, version: int, body: Sequence[Bytes]
    ) -> asyncio.Future[memoryview] | None:
        """As `ask_bytes`, without waiting; None without a connection. Callers apply the timeout."""
        self.used_ms = self._clock.mono_ms()
        return self.peer.post(self._framed(key, version, body))

    def put(self, key: int, version: int, body: Sequence[Bytes]) -> bool:
        """Send a request that has no response, without waiting; False without a connection."""
        self.used_ms = self._clock.mono_ms()
        return self.peer.put(self._framed(key, version, body))

    def _framed(self, key: int, version: int, body: Sequence[Bytes]) -> list[Bytes]:
        tags = b"\0" if version >= wire.FLEXIBLE_SINCE.get(key, wire.NEVER) else b""
        name = self._client_id
        size = _HEADER.size - 4 + len(name) + len(tags) + sum(map(len, body))
        head = _HEADER.pack(size, key, version, self._next_correlation_id(), len(name))
        return [head + name + tags, *body]

    async def _handshake(self, ask: Ask) -> None:
        """Ask for the API versions, then log in."""
        self.versions = Versions.of(await self._request_versions(ask))
        if self._login is not None:
            await self._log_in(ask, self._login)

    async def _log_in(self, ask: Ask, login: ClientLogin) -> None:
        mechanism = login.mechanism
        reply = await self._asked(ask, SASL_HANDSHAKE, {"mechanism": mechanism}, at_least=1)
        if reply.error_code == ErrorCode.unsupported_sasl_mechanism:
            raise AuthenticationFailed(
                f"{self.node}: mechanism {mechanism} is not enabled on the broker; it offers "
                f"{', '.join(reply.mechanisms) or 'none'}"
            )
        self._check_login(reply.error_code, None, mechanism)
        exchange = login.exchange()
        token: bytes | None = await exchange.first()
        while token is not None:
            reply = await self._asked(ask, SASL_AUTHENTICATE, {"auth_bytes": token})
            self._check_login(reply.error_code, reply.error_message, mechanism)
            token = await exchange.evaluate(bytes(reply.auth_bytes))
        self.session_lifetime_ms = getattr(reply, "session_lifetime", timedelta(0)) // MS

    async def _asked(self, ask: Ask, key: int, fields: Fields, *, at_least: int = 0) -> Any:
        version = self.versions.pick(key)
        if version < at_least:
            raise UnsupportedVersion(f"{self.node}: version {version} of API {key} is too old")
        correlation_id = self._next_correlation_id()
        client_id = self._config.client_id
        request = wire.encode_request(key, version, correlation_id, client_id, fields)
        return self.read(key, version, await ask(request))

    def _check_login(self, code: int, message: str | None, mechanism: str) -> None:
        if code:
            reason = message or ErrorCode(code).name
            raise AuthenticationFailed(f"{self.node}: login by {mechanism} failed: {reason}")

    async def _request_versions(self, ask: Ask) -> Any:
        version = NEWEST_API_VERSIONS
        while True:
            fields = {"client_software_name": SOFTWARE, "client_software_version": _version()}
            request = wire.encode_request(
                API_VERSIONS, version, self._next_correlation_id(), self._config.client_id, fields
            )
            frame = await ask(request)
            _, code = _ERROR.unpack_from(frame)
            if code != ErrorCode.unsupported_version:
                reply = self.read(API_VERSIONS, version, frame)
                if reply.error_code:
                    raise ConnectionError(f"{self.node}: {refusal(reply.error_code)}")
                return reply
            # An older broker answers in version 0, and lists the versions it supports.
            offered = Versions.of(self.read(API_VERSIONS, 0, frame)).ranges.get(API_VERSIONS)
            version = min(version - 1, offered[1] if offered else 0)
            if version < 0:
                raise ConnectionError(f"{self.node}: no common version of ApiVersions")

    def read(self, key: int, version: int, frame: memoryview) -> Any:
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


def _version() -> str:
    from ottla import __version__

    return __version__


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
