"""A connection of ours to another broker: calls out, replies back in the same order.

Owns: one connection at a time, the calls that wait on it, and when it may be tried again.
Never: retries a call (whether that is safe only the caller knows) or reads what a reply says.

A call that runs out of time takes the connection with it: its reply may never come, and every
later reply waits behind it. Calls that waited there fail with ConnectionError and may be made anew.

Each new connection starts with a handshake: API versions and authentication, before any call.
"""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Final, Protocol, TypeAlias, TypeVar, cast

from ottla.model.clock import Clock, MonoMs
from ottla.model.errors import AuthenticationFailed, Disconnect
from ottla.net.bulk_receiver import receive_in_bulk
from ottla.net.limits import NetLimits
from ottla.net.reply_reader import ReplyReader
from ottla.net.reply_writer import ReplyWriter
from ottla.net.request_slot import Bytes
from ottla.net.tls.connection import TlsConnection
from ottla.net.tls.failures import is_final
from ottla.net.transports import CopyingTransport, transport_of, tune

T = TypeVar("T")
CORRELATION: Final = struct.Struct(">i")
REQUEST_CORRELATION_AT: Final = 8  # after size, API key and version


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundLimits:
    """The bounds of one outgoing connection."""

    max_inflight_requests: int = 100
    max_reply_bytes: int = 100 << 20
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000
    connect_timeout_ms: int = 10_000
    read_bytes: int = 64 << 10
    sockets: NetLimits | None = None  # buffer sizes; None: as the system makes them
    bulk_buffer_bytes: int | None = None
    """Large replies are received by a thread, from a socket's buffer of so much (0: as it is).
    None: by the event loop, as all others are."""


Ask: TypeAlias = Callable[[bytes], Awaitable[memoryview]]
Handshake: TypeAlias = Callable[[Ask], Awaitable[int | None]]
"""The first requests on a new connection; an OSError or a KafkaError closes it. How long the
broker accepts the login, in ms; None or 0: for ever."""
RENEW_FROM: Final = 0.85
RENEW_TO: Final = 0.95
"""Of a session's lifetime: when a new connection takes the place of one that is about to end."""


class TlsClient(Protocol):
    """TLS of outgoing connections, with the certificates in force now."""

    def session(
        self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, host: str
    ) -> ssl.SSLObject: ...


def backoff_ms(failures: int, limits: OutboundLimits, random: Random) -> int:
    """How long to wait before the next attempt: exponential backoff with jitter, bounded."""
    if not failures:
        return 0
    base = limits.reconnect_backoff_ms * 2 ** min(failures - 1, 16)
    ceiling = min(base, limits.reconnect_backoff_max_ms)
    return random.randint(ceiling // 2, ceiling)


class OutboundConnection:
    """Calls to one address, over one connection that is made when it is needed."""

    def __init__(
        self,
        host: str,
        port: int,
        clock: Clock,
        random: Random,
        limits: OutboundLimits | None = None,
        *,
        handshake: Handshake | None = None,
        tls: TlsClient | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self._address = f"{host}:{port}"
        self._handshake = handshake
        self._tls = tls
        self._clock = clock
        self._random = random
        self._limits = limits or OutboundLimits()
        self._room = asyncio.Semaphore(self._limits.max_inflight_requests)
        self._exchange: Exchange | None = None
        self._opening: asyncio.Future[None] | None = None
        self._failures = 0
        self._not_before_ms = MonoMs(0)
        self._renew_ms: MonoMs | None = None  # when the login has to be renewed
        self._closed = False

    async def call(self, request: bytes, timeout_ms: int = 30_000) -> memoryview:
        """Send a framed request; its reply, without the size.

        Raises ConnectionError or another OSError when the peer cannot be reached or goes away,
        TimeoutError when it takes too long.
        """
        exchange: Exchange | None = None
        try:
            async with asyncio.timeout(timeout_ms / 1e3), self._room:
                exchange = await self._connected()
                return await exchange.ask(request)
        except TimeoutError:
            if exchange is not None:
                exchange.end(f"no reply from {self._address} within {timeout_ms} ms")
            raise

    def post(self, request: Sequence[Bytes]) -> asyncio.Future[memoryview] | None:
        """Send over the connection there is, unbounded in number and time; None without one.

        The request comes in parts, its header whole in the first, and is sent without a copy:
        nobody may change them before the reply is there.
        """
        if self._exchange is None or not self.is_ready:
            return None
        return self._exchange.ask_parts(request)

    def put(self, request: Sequence[Bytes]) -> bool:
        """Send what will not be answered over the connection there is; False without one."""
        if self._exchange is None or not self.is_ready:
            return False
        self._exchange.put(request)
        return True

    async def connect(self) -> None:
        """Connect and complete the handshake now instead of at the first call."""
        await self._connected()

    @property
    def in_flight(self) -> int:
        """How many calls wait for their replies."""
        return 0 if self._exchange is None else self._exchange.in_flight

    @property
    def is_open(self) -> bool:
        return self._exchange is not None and self._exchange.open

    @property
    def is_ready(self) -> bool:
        """Whether requests are sent over the connection there is: its login is not about to end."""
        return self.is_open and not self._is_due

    @property
    def not_before_ms(self) -> int:
        """When, on the clock for waiting, the next try may be made after one that failed."""
        return self._not_before_ms if self._failures else 0

    def close(self) -> None:
        """No more calls; those under way fail."""
        self._closed = True
        self.hang_up()

    def hang_up(self) -> None:
        """End the connection there is; the next call makes another."""
        if self._exchange is not None:
            self._exchange.end(f"connection to {self._address} was closed locally")

    async def _connected(self) -> Exchange:
        """The open connection; the first caller opens it, others wait for that one."""
        while not self._closed:
            if self._exchange is not None and self.is_ready:
                return self._exchange
            if self._opening is not None:
                await asyncio.shield(self._opening)
                continue
            self._opening = asyncio.get_running_loop().create_future()
            try:
                if self._exchange is not None and self._exchange.open:
                    await self._exchange.wait_idle()
                    self._exchange.end(f"the login at {self._address} is renewed")
                self._exchange = await self._open()
            finally:
                self._opening.set_result(None)
                self._opening = None
        raise ConnectionError(f"connection to {self._address} was closed locally")

    @property
    def _is_due(self) -> bool:
        """The login is about to expire: replies still come, but nothing more is sent."""
        return self._renew_ms is not None and self._clock.mono_ms() >= self._renew_ms

    async def _open(self) -> Exchange:
        wait_ms = self._not_before_ms - self._clock.mono_ms()
        if wait_ms > 0:
            await asyncio.sleep(wait_ms / 1e3)
        try:
            async with asyncio.timeout(self._limits.connect_timeout_ms / 1e3):
                exchange = await self._connect()
        except (OSError, AuthenticationFailed):
            self._failures += 1
            pause_ms = backoff_ms(self._failures, self._limits, self._random)
            self._not_before_ms = MonoMs(self._clock.mono_ms() + pause_ms)
            raise
        self._failures = 0
        return exchange

    async def _connect(self) -> Exchange:
        replies = ReplyReader(self._limits.read_bytes, self._limits.max_reply_bytes)
        exchange = Exchange(replies, self._address)
        transport, _ = await asyncio.get_running_loop().create_connection(
            lambda: exchange if self._tls is None else self._over_tls(exchange, self._tls),
            self.host,
            self.port,
        )
        try:
            if self._limits.sockets is not None:
                tune(transport, self._limits.sockets)
            if self._tls is not None:
                await exchange.secured
            if self._handshake is not None:
                self._renew_after(await self._handshake(exchange.ask))
            if self._limits.bulk_buffer_bytes is not None and self._tls is None:
                receive_in_bulk(transport, self._limits.bulk_buffer_bytes)
        except BaseException:
            exchange.end(f"handshake with {self._address} failed")
            raise
        return exchange

    def _renew_after(self, lifetime_ms: int | None) -> None:
        self._renew_ms = None
        if lifetime_ms:
            share = self._random.uniform(RENEW_FROM, RENEW_TO)
            self._renew_ms = MonoMs(self._clock.mono_ms() + int(lifetime_ms * share))

    def _over_tls(self, exchange: Exchange, tls: TlsClient) -> TlsConnection:
        return TlsConnection(exchange, partial(tls.session, host=self.host))


class Exchange(asyncio.BufferedProtocol):
    """Requests and replies on one connection, matched by order and checked by correlation id."""

    def __init__(self, replies: ReplyReader, address: str) -> None:
        self.open = False
        self._address = address
        self._replies = replies
        self._waiting: deque[tuple[bytes, asyncio.Future[memoryview]]] = deque()
        self._idle: asyncio.Event | None = None  # somebody waits until no reply is due
        self.secured: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def in_flight(self) -> int:
        return len(self._waiting)

    async def wait_idle(self) -> None:
        """Until every request is answered, or the connection is gone."""
        if self._waiting:
            self._idle = asyncio.Event()
            await self._idle.wait()

    def put(self, request: Sequence[Bytes]) -> None:
        """Send what will not be answered."""
        try:
            self._writer.send(request)
        except OSError as error:
            self.end(f"{self._address} closed the connection: {error}")

    def ask(self, request: bytes) -> asyncio.Future[memoryview]:
        return self.ask_parts((request,))

    def ask_parts(self, request: Sequence[Bytes]) -> asyncio.Future[memoryview]:
        end = REQUEST_CORRELATION_AT + CORRELATION.size
        correlation = bytes(request[0][REQUEST_CORRELATION_AT:end])
        reply: asyncio.Future[memoryview] = asyncio.get_running_loop().create_future()
        self._waiting.append((correlation, reply))
        self.put(request)
        return reply

    def end(self, reason: str, failure: Exception | None = None) -> None:
        """Close the connection; calls that wait on it fail with the reason."""
        if self.open:
            self.open = False
            self._writer.close()  # before the descriptor can be reused
            self._transport.abort()
        waiting, self._waiting = self._waiting, deque()
        if self._idle is not None:
            self._idle.set()
        for _, reply in waiting:
            if not reply.done():
                reply.set_exception(failure or ConnectionError(reason))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._sender = transport_of(self._transport, asyncio.get_running_loop())
        self._writer = ReplyWriter(self._sender, self._on_progress, _has_no_files)
        self.open = True

    def on_secured(self, session: ssl.SSLObject) -> None:
        """The TLS handshake is done."""
        if not self.secured.done():
            self.secured.set_result(None)

    def on_insecure(self, reason: str, error: Exception | None) -> None:
        """TLS has failed: in the handshake, or later, when the broker refuses our certificate."""
        text = f"{self._address}: {reason}"
        final = error is not None and is_final(error)
        failure = AuthenticationFailed(text) if final else ConnectionError(text)
        if not self.secured.done():
            self.secured.set_exception(failure)
            self.secured.exception()  # seen: its caller may have given up
        self.end(text, failure)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._replies.space()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            for frame in self._replies.filled(nbytes):
                if self.open:
                    self._on_reply(frame)
        except Disconnect as fault:
            self.end(str(fault))

    def pause_writing(self) -> None:
        if isinstance(self._sender, CopyingTransport):
            self._sender.on_paused()

    def resume_writing(self) -> None:
        if isinstance(self._sender, CopyingTransport):
            self._sender.on_resumed()

    def _on_progress(self) -> None:
        if self._writer.failed is not None:
            self.end(f"{self._address} closed the connection: {self._writer.failed}")

    def connection_lost(self, exc: Exception | None) -> None:
        self.end(f"{self._address} closed the connection" + (f": {exc}" if exc else ""))

    def _on_reply(self, frame: memoryview) -> None:
        if not self._waiting:
            raise Disconnect(
                f"unexpected reply from {self._address}: no request is waiting for one"
            )
        correlation, reply = self._waiting.popleft()
        if frame[: CORRELATION.size] != correlation:
            self._waiting.appendleft((correlation, reply))
            raise Disconnect(
                f"wrong correlation id in a reply from {self._address}: "
                f"expected {_number(correlation)}, received {_number(frame)}"
            )
        if not reply.done():  # its caller may have stopped waiting
            reply.set_result(frame)
        if self._idle is not None and not self._waiting:
            self._idle.set()


def _number(correlation: Bytes) -> int:
    number: int = CORRELATION.unpack_from(correlation)[0]
    return number


def _has_no_files(work: Callable[[], T]) -> asyncio.Future[T]:
    raise AssertionError("requests contain no files: nothing has to be read from disk")
