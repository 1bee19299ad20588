"""One broker: the connection to it and the versions it speaks.

Owns: correlation ids, request headers, and the greeting that settles versions on every new
connection. Never retries, never chooses a broker.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from kio.schema.index import api_key_map

from ottla.client.cluster_view import Node
from ottla.client.errors import UnsupportedVersion, refusal
from ottla.config.client import ClientConfig
from ottla.model.clock import Clock
from ottla.model.errors import Disconnect, ErrorCode
from ottla.net.bulk_receiver import BUFFER_BYTES
from ottla.net.limits import NetLimits
from ottla.net.outbound_connection import Ask, OutboundConnection, OutboundLimits
from ottla.protocol import schema, wire
from ottla.protocol.records.compression import Bytes
from ottla.protocol.wire import Fields


@dataclass(frozen=True, slots=True)
class Versions:
    """What a broker offers: ranges of versions by API key (inclusive), and features."""

    ranges: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    finalized: Mapping[str, int] = field(default_factory=dict)
    """Level of each feature that the whole cluster has."""
    supported: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, reply: Any) -> Versions:
        """As an ApiVersions reply says it."""
        return cls(
            {each.api_key: (each.min_version, each.max_version) for each in reply.api_keys},
            {each.name: each.max_version_level for each in reply.finalized_features},
            {each.name: (each.min_version, each.max_version) for each in reply.supported_features},
        )

    def offers(self, key: int, version: int = 0) -> bool:
        """Whether the broker speaks this API in `version` or newer."""
        return key in self.ranges and self.ranges[key][1] >= version

    def pick(self, key: int, at_most: int | None = None) -> int:
        """The newest version that both sides speak."""
        ours = [each for each in schema.versions(key) if at_most is None or each <= at_most]
        low, high = self.ranges.get(key, (0, -1))
        shared = [each for each in ours if low <= each <= high]
        if shared:
            return shared[-1]
        name = api_key_map.get(key, f"api {key}")
        offered = f"offers versions {low} to {high}" if key in self.ranges else "does not offer it"
        spoken = f"{ours[0]} to {ours[-1]}" if ours else "none"
        raise UnsupportedVersion(f"{name}: the broker {offered}; this client speaks {spoken}")


API_VERSIONS: Final = 18
NEWEST_API_VERSIONS: Final = 4
SOFTWARE: Final = "ottla"
READ_BYTES: Final = 256 << 10
_HEADER: Final = struct.Struct(">ihhih")
_ERROR: Final = struct.Struct(">ih")


class BrokerConnection:
    """Questions to one broker, over one connection that comes back by itself."""

    def __init__(self, node: Node, config: ClientConfig, clock: Clock, dice: Random) -> None:
        self.node = node
        self.versions = Versions()  # of the connection there is, or was last
        self.used_ms = clock.mono_ms()
        self._config = config
        self._clock = clock
        self._client_id = config.client_id.encode()
        self._correlation = 0
        self.peer = OutboundConnection(
            node.host, node.port, clock, dice, _limits(config), handshake=self._handshake
        )

    async def ready(self) -> Versions:
        """The versions the broker speaks; connects if there is no connection."""
        self.used_ms = self._clock.mono_ms()
        await self.peer.connect()
        return self.versions

    async def ask(self, key: int, version: int, fields: Fields, timeout_ms: int) -> Any:
        """One question and its answer, as kio's class of that version."""
        request = wire.encode_request(key, version, self._next(), self._config.client_id, fields)
        reply = await self.peer.call(request, timeout_ms)
        self.used_ms = self._clock.mono_ms()
        return self.read(key, version, reply)

    async def ask_bytes(
        self, key: int, version: int, body: Sequence[Bytes], timeout_ms: int
    ) -> memoryview:
        """One question whose body is encoded already; the answer's frame without its size."""
        reply = await self.peer.call(b"".join(self._framed(key, version, body)), timeout_ms)
        self.used_ms = self._clock.mono_ms()
        return reply

    def post(
        self, key: int, version: int, body: Sequence[Bytes]
    ) -> asyncio.Future[memoryview] | None:
        """As `ask_bytes`, at once: None without a connection. The caller minds the time."""
        self.used_ms = self._clock.mono_ms()
        return self.peer.post(self._framed(key, version, body))

    def put(self, key: int, version: int, body: Sequence[Bytes]) -> bool:
        """A request that the broker does not answer, at once; False without a connection."""
        self.used_ms = self._clock.mono_ms()
        return self.peer.put(self._framed(key, version, body))

    def _framed(self, key: int, version: int, body: Sequence[Bytes]) -> list[Bytes]:
        tags = b"\0" if version >= wire.FLEXIBLE_SINCE.get(key, wire.NEVER) else b""
        name = self._client_id
        size = _HEADER.size - 4 + len(name) + len(tags) + sum(map(len, body))
        head = _HEADER.pack(size, key, version, self._next(), len(name))
        return [head + name + tags, *body]

    async def _handshake(self, ask: Ask) -> None:
        """Learn what the broker speaks. A handshake that proves who we are would follow here."""
        self.versions = Versions.of(await self._learn(ask))

    async def _learn(self, ask: Ask) -> Any:
        version = NEWEST_API_VERSIONS
        while True:
            fields = {"client_software_name": SOFTWARE, "client_software_version": _version()}
            request = wire.encode_request(
                API_VERSIONS, version, self._next(), self._config.client_id, fields
            )
            frame = await ask(request)
            _, code = _ERROR.unpack_from(frame)
            if code != ErrorCode.unsupported_version:
                reply = self.read(API_VERSIONS, version, frame)
                if reply.error_code:
                    raise ConnectionError(f"{self.node}: {refusal(reply.error_code)}")
                return reply
            # An older broker answers in the oldest format, and says what it would understand.
            offered = Versions.of(self.read(API_VERSIONS, 0, frame)).ranges.get(API_VERSIONS)
            version = min(version - 1, offered[1] if offered else 0)
            if version < 0:
                raise ConnectionError(f"{self.node} speaks no version of ApiVersions we know")

    def read(self, key: int, version: int, frame: memoryview) -> Any:
        """An answer's frame as kio's class; one that makes no sense ends the connection."""
        try:
            return wire.decode_reply(key, version, frame)
        except Disconnect as fault:
            self.peer.hang_up()
            raise ConnectionError(f"{self.node} sent a reply that does not read: {fault}") from None

    def _next(self) -> int:
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
