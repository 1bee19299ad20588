"""Requests from one broker to another, over one connection that reconnects by itself.

Owns: correlation ids, the ApiVersions exchange of every new connection, and the choice of the
version, so that brokers of two releases can work together during a rolling upgrade. Never retries:
only the caller knows which errors may be retried.

Replies come in the order of the requests, so each purpose has a link of its own: replica fetches,
the controller's requests, requests to the controller, transaction markers. A fetch that waits for
data must not delay anything else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import NamedTuple, TypeAlias

from ottla.model.clock import Clock
from ottla.model.errors import AuthenticationFailed, Disconnect
from ottla.net.outbound_connection import Ask, OutboundConnection, OutboundLimits, TlsClient
from ottla.net.request_slot import Bytes
from ottla.net.version_handshake import SupportedVersions, request_versions
from ottla.protocol import wire
from ottla.protocol.interbroker import OLDEST_SENT
from ottla.protocol.schema import KioMessage
from ottla.protocol.wire import Fields


class LinkReply(NamedTuple):
    """A decoded reply, and the version of the API it was exchanged in."""

    version: int
    body: KioMessage


class RawReply(NamedTuple):
    """A reply that the caller decodes itself; `frame` begins with the correlation id."""

    version: int
    frame: memoryview


LinkLogin: TypeAlias = "Callable[[BrokerLink, Ask], Awaitable[int]]"
"""Logs in on a new connection; how long the login lasts, in ms; 0: for ever."""


@contextmanager
def _as_connection_error() -> Iterator[None]:
    """Callers retry a broker that refuses our login as one that cannot be reached."""
    try:
        yield
    except AuthenticationFailed as error:
        raise ConnectionError(str(error)) from None


class BrokerLink:
    """One connection to one broker. OSError (ConnectionError, TimeoutError) when it fails."""

    def __init__(
        self,
        host: str,
        port: int,
        clock: Clock,
        dice: Random,
        client_id: str,
        *,
        limits: OutboundLimits | None = None,
        login: LinkLogin | None = None,
        tls: TlsClient | None = None,
    ) -> None:
        self.host = host
        self.address = f"{host}:{port}"
        self.versions = SupportedVersions()
        """Of the current connection, or of the last one."""
        self._newest: dict[int, int] = {}  # of each API, found in `versions`
        self.client_id = client_id
        self._login = login
        self._correlation_id = 0
        self._connection = OutboundConnection(
            host, port, clock, dice, limits, handshake=self._handshake, tls=tls
        )

    async def version(self, key: int) -> int:
        """The newest version of an API that both brokers support; connects if necessary."""
        if not self._connection.is_ready:
            with _as_connection_error():
                await self._connection.connect()
        version = self._newest.get(key)
        if version is None:
            version = self.versions.newest_common(key)
            if version is None or version < OLDEST_SENT.get(key, 0):
                raise ConnectionError(f"no common version of api {key} with {self.address}")
            self._newest[key] = version
        return version

    async def ask(self, key: int, fields: Fields, timeout_ms: int) -> LinkReply:
        """Send a request in the newest common version; fields the version lacks are left out."""
        version = await self.version(key)
        frame = await self.call(
            wire.encode_request(key, version, self.next_id(), self.client_id, fields), timeout_ms
        )
        return LinkReply(version, self.decode(key, version, frame))

    async def ask_encoded(
        self, key: int, encode: Callable[[int], Sequence[Bytes]], timeout_ms: int
    ) -> RawReply:
        """Send a request whose body `encode(version)` returns; the reply is not decoded."""
        version = await self.version(key)
        head = wire.request_header(key, version, self.next_id(), self.client_id)
        body = encode(version)
        size = len(head) + sum(map(len, body))
        request = b"".join([size.to_bytes(4, "big"), head, *body])
        return RawReply(version, await self.call(request, timeout_ms))

    async def call(self, request: bytes, timeout_ms: int) -> memoryview:
        """Send a whole request, size included; its reply, without the size."""
        with _as_connection_error():
            return await self._connection.call(request, timeout_ms)

    def decode(self, key: int, version: int, frame: memoryview) -> KioMessage:
        """Decode a reply; closes the connection if that fails."""
        try:
            return wire.decode_reply(key, version, frame)
        except Disconnect as fault:
            self._connection.hang_up()
            raise ConnectionError(f"cannot decode reply from {self.address}: {fault}") from None

    def close(self) -> None:
        """No more requests; those in flight fail with ConnectionError."""
        self._connection.close()

    async def _handshake(self, ask: Ask) -> int:
        self.versions = await request_versions(ask, self.next_id, self.client_id, self.address)
        self._newest.clear()
        return 0 if self._login is None else await self._login(self, ask)

    def next_id(self) -> int:
        self._correlation_id = (self._correlation_id + 1) & 0x7FFF_FFFF
        return self._correlation_id
