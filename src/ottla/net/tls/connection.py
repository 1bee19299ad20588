"""The protocol between a socket and a connection that uses TLS.

Owns: the handshake with its deadline, decryption, and the transport that the connection sees.
Never: knows what is sent, or which certificates are trusted: `Sessions` makes the `SSLObject`.

The connection exists from the moment its socket was accepted, so all limits count it during the
handshake. Nothing else is made for a client until its first TLS record is here whole, because
anybody can open connections and send no more. Steps of a handshake run on the threads that are
handed in: they compute signatures.
Ciphertext is read only while the connection reads: what it does not take stays with the peer.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from concurrent.futures import Executor
from enum import Enum, auto
from typing import Final, Protocol, TypeVar

from ottla.net.reply_writer import RunBlocking
from ottla.net.tls.failures import plaintext_hint, reason_of
from ottla.net.tls.sender import TlsSender
from ottla.net.transports import CopyingTransport, DescriptorCount, transport_of

T = TypeVar("T")
HANDSHAKE_MAX_MS: Final = 10_000
READ_BYTES: Final = 256 << 10
RECORD_HEAD_BYTES: Final = 5
RECORD_MAX_BYTES: Final = (16 << 10) + 2048
"""OpenSSL refuses a record that claims more; nothing is kept for one."""


class TlsResources:
    """What the TLS connections of one event loop share."""

    def __init__(self) -> None:
        self.executor: Executor | None = None  # the threads of handshakes
        self._room: memoryview | None = None

    @property
    def room(self) -> memoryview:
        """Where ciphertext is received, by all connections: it is decrypted at once."""
        if self._room is None:
            self._room = memoryview(bytearray(READ_BYTES))
        return self._room

    def run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(self.executor, work)


class Sessions(Protocol):
    """Makes the TLS state of one connection, with the certificates in force now."""

    def __call__(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> ssl.SSLObject: ...


class SecuredProtocol(Protocol):
    """The connection behind TLS: a buffered protocol that learns how the handshake ended."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None: ...

    def get_buffer(self, sizehint: int) -> memoryview: ...

    def buffer_updated(self, nbytes: int) -> None: ...

    def connection_lost(self, exc: Exception | None) -> None: ...

    def on_secured(self, session: ssl.SSLObject) -> None: ...

    def on_insecure(self, reason: str, error: Exception | None) -> None: ...


class TlsPhase(Enum):
    WAITING = auto()  # for bytes of the handshake
    WORKING = auto()  # a step of it runs
    SECURED = auto()
    ENDED = auto()


class TlsConnection(asyncio.BufferedProtocol):
    """TLS of one connection. `run`: executes steps of the handshake; None: on the loop."""

    _transport: asyncio.Transport
    _sender: TlsSender
    _tls: ssl.SSLObject

    def __init__(
        self,
        inner: SecuredProtocol,
        sessions: Sessions,
        *,
        room: memoryview | None = None,
        run: RunBlocking | None = None,
        is_server: bool = False,
        counts: DescriptorCount | None = None,
    ) -> None:
        self._inner = inner
        self._counts = counts
        self._sessions = sessions
        self._room = memoryview(bytearray(READ_BYTES)) if room is None else room
        self._run = run
        self._is_server = is_server
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._phase = TlsPhase.WAITING
        self._began = False  # `_tls` is made
        self._first = b""  # what has come of a client's first record
        self._deadline: asyncio.TimerHandle | None = None
        self.is_paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self._transport = transport  # type: ignore[assignment]
        loop = asyncio.get_running_loop()
        self._lower = transport_of(self._transport, loop, self._counts)
        self._sender = TlsSender(self._outgoing, self._lower, self._transport)
        if self._is_server:
            self._deadline = loop.call_later(HANDSHAKE_MAX_MS / 1e3, self._on_deadline)
        self._inner.connection_made(TlsTransport(self, self._transport, self._sender))
        if not self._is_server:
            self._begin()
            self._step()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        if self._phase is TlsPhase.ENDED:
            return
        if self._began:
            self._incoming.write(self._room[:nbytes])
        else:
            self._first += self._room[:nbytes]
            hint = plaintext_hint(self._first[:8])
            if hint is not None:
                self._fail(f"TLS handshake failed: {hint}", None)
                return
        if self._phase is TlsPhase.SECURED:
            self._decrypt()
        elif self.is_paused:
            self._transport.pause_reading()
        elif self._phase is TlsPhase.WAITING:
            self._advance()

    def eof_received(self) -> bool | None:
        if self._phase in (TlsPhase.WAITING, TlsPhase.WORKING):
            self._fail("TLS handshake failed: the peer closed the connection during it", None)
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        if self._phase is not TlsPhase.SECURED and self._phase is not TlsPhase.ENDED:
            self._inner.on_insecure("the connection was closed during the TLS handshake", exc)
        self.end()
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        if isinstance(self._lower, CopyingTransport):
            self._lower.on_paused()

    def resume_writing(self) -> None:
        if isinstance(self._lower, CopyingTransport):
            self._lower.on_resumed()

    def end(self) -> None:
        """Nothing is received from now on."""
        self._phase = TlsPhase.ENDED
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def resume(self) -> None:
        """The connection reads again: first what is here already."""
        if self.is_paused or self._phase is TlsPhase.ENDED:
            return
        if self._phase is TlsPhase.SECURED:
            self._decrypt()
        elif self._phase is TlsPhase.WAITING and self._advance():
            return
        if not self.is_paused and self._phase in (TlsPhase.SECURED, TlsPhase.WAITING):
            _read_on(self._transport)

    def _advance(self) -> bool:
        """Go on with the handshake if there is something to do it with."""
        if not self._began and has_whole_record(self._first):
            self._begin()
            self._incoming.write(self._first)
            self._first = b""
        if not self._incoming.pending:
            return False
        self._step()
        return True

    def _begin(self) -> None:
        self._began = True
        self._tls = self._sessions(self._incoming, self._outgoing)
        self._sender.begin(self._tls)

    def _step(self) -> None:
        """Go on with the handshake; nothing is read meanwhile."""
        self._phase = TlsPhase.WORKING
        if self._run is None:
            self._on_step(_handshake(self._tls))
            return
        _read_no_more(self._transport)
        tls = self._tls
        self._run(lambda: _handshake(tls)).add_done_callback(
            lambda done: self._on_step(done.result() if not done.cancelled() else None)
        )

    def _on_step(self, result: bool | Exception | None) -> None:
        if self._phase is not TlsPhase.WORKING or result is None:
            return
        try:
            self._sender.flush()
        except OSError as error:
            result = error
        if isinstance(result, Exception):
            self._fail(f"TLS handshake failed: {reason_of(result)}", result)
            return
        if not result:
            self._phase = TlsPhase.WAITING
        else:
            self._phase = TlsPhase.SECURED
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None
            self._inner.on_secured(self._tls)
        self.resume()

    def _decrypt(self) -> None:
        """Hand everything on that is here, as long as the connection takes it."""
        inner = self._inner
        try:
            while not self.is_paused and not self._transport.is_closing():
                room = inner.get_buffer(-1)
                count, ended = _read(self._tls, room) if len(room) else (0, False)
                if count:
                    inner.buffer_updated(count)
                if ended:
                    self._transport.close()
                    return
                if not count or count < len(room):
                    break
            if self._phase is TlsPhase.SECURED:
                self._sender.flush()
        except (ssl.SSLError, OSError) as error:
            self._fail(f"TLS connection failed: {reason_of(error)}", error)

    def _fail(self, reason: str, error: Exception | None) -> None:
        self.end()
        self._inner.on_insecure(reason, error)

    def _on_deadline(self) -> None:
        self._deadline = None
        self._fail(f"TLS handshake not finished within {HANDSHAKE_MAX_MS} ms", None)


class TlsTransport(asyncio.Transport):
    """What a connection behind TLS sees as its transport; it sends through the extra `sender`."""

    def __init__(
        self, connection: TlsConnection, lower: asyncio.Transport, sender: TlsSender
    ) -> None:
        super().__init__()
        self._connection = connection
        self._lower = lower
        self._sender = sender

    def get_extra_info(self, name: str, default: object = None) -> object:
        if name == "sender":
            return self._sender
        if name == "sslcontext":
            return True
        return self._lower.get_extra_info(name, default)

    def pause_reading(self) -> None:
        if not self._connection.is_paused:
            self._connection.is_paused = True
            _read_no_more(self._lower)

    def resume_reading(self) -> None:
        if self._connection.is_paused:
            self._connection.is_paused = False
            asyncio.get_running_loop().call_soon(self._connection.resume)

    def is_closing(self) -> bool:
        return self._lower.is_closing()

    def close(self) -> None:
        self._connection.end()
        self._lower.close()

    def abort(self) -> None:
        self._connection.end()
        self._lower.abort()


def has_whole_record(data: bytes) -> bool:
    """Whether the first TLS record is here, or OpenSSL can say what is wrong with it. Pure."""
    if len(data) < RECORD_HEAD_BYTES:
        return False
    size = int.from_bytes(data[3:RECORD_HEAD_BYTES], "big")
    return size > RECORD_MAX_BYTES or len(data) >= RECORD_HEAD_BYTES + size


def _handshake(tls: ssl.SSLObject) -> bool | Exception:
    """True: done; False: more bytes are needed. May run on a thread."""
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        return False
    except (ssl.SSLError, OSError, ValueError) as error:
        return error.with_traceback(None)
    return True


def _read(tls: ssl.SSLObject, room: memoryview) -> tuple[int, bool]:
    """Fill `room` as far as there are bytes; whether the peer has ended the session."""
    count = 0
    try:
        while count < len(room):
            size: int = tls.read(len(room) - count, room[count:])  # type: ignore[assignment]
            if not size:
                return count, True
            count += size
    except ssl.SSLWantReadError:
        pass
    except ssl.SSLZeroReturnError:
        return count, True
    return count, False


def _read_no_more(transport: asyncio.Transport) -> None:
    if not transport.is_closing() and transport.is_reading():
        transport.pause_reading()


def _read_on(transport: asyncio.Transport) -> None:
    if not transport.is_closing() and not transport.is_reading():
        transport.resume_reading()
