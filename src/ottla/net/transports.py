"""How bytes are sent: through a socket's descriptor, or through a transport that copies.

Owns: the system calls that send.
Never: uses a descriptor after `close`: its number may be reused by then.

`SocketTransport` writes straight to the descriptor of asyncio's socket. Only to send a file or to
wait until the peer takes more does it need a descriptor of its own (loops refuse to watch one that
belongs to a transport), so most connections have just one. `CopyingTransport` serves asyncio
transports that are not a plain socket: simulated networks. TLS has a sender of its own.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, Protocol

from ottla.net.limits import NetLimits
from ottla.net.reply_writer import FILE_TOO_SHORT, Transport
from ottla.net.request_slot import Bytes, FileSlice

CONGESTION: Final = getattr(socket, "TCP_CONGESTION", 0)  # Linux
LOCAL: Final = ("127.", "::1", "::ffff:127.")
MORE: Final = getattr(socket, "MSG_MORE", 0)  # Linux; elsewhere only packets are smaller


class DescriptorCount(Protocol):
    """Of connections that have a second descriptor."""

    duplicates: int


def transport_of(
    transport: asyncio.Transport,
    loop: asyncio.AbstractEventLoop,
    counts: DescriptorCount | None = None,
) -> Transport:
    """The fastest way to send through this transport."""
    own: Transport | None = transport.get_extra_info("sender")  # it encrypts
    if own is not None:
        return own
    plain = transport.get_extra_info("socket")
    if plain is None or transport.get_extra_info("sslcontext") is not None:
        return CopyingTransport(transport)
    return SocketTransport(plain.fileno(), loop, counts)


def tune(transport: asyncio.Transport, limits: NetLimits) -> None:
    """As `tune_socket`, unless the transport has no socket."""
    plain = transport.get_extra_info("socket")
    if plain is not None:
        tune_socket(plain, limits)


def tune_socket(plain: socket.socket, limits: NetLimits) -> None:
    """Send at once, and with the buffers that were asked for (-1: the system's own choice)."""
    if plain.family != socket.AF_UNIX:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _disable_pacing(plain)
    for option, size in (
        (socket.SO_SNDBUF, limits.socket_send_buffer_bytes),
        (socket.SO_RCVBUF, limits.socket_receive_buffer_bytes),
    ):
        if size > 0:
            plain.setsockopt(socket.SOL_SOCKET, option, size)


def enlarge_send_buffer(transport: asyncio.Transport, size: int) -> None:
    """Let the kernel take more at once than connections are given by default; it may allow less."""
    plain = transport.get_extra_info("socket")
    if plain is not None and plain.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) < size:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)


def _disable_pacing(plain: socket.socket) -> None:
    """Within one machine nothing is congested: where the system paces what it sends, it need not.

    At a gigabyte a second that is a tenth of both sides' time (benchmarks/clients_producer.py).
    """
    with suppress(OSError):  # the peer has gone, or this is not ours to choose
        if not CONGESTION or not plain.getpeername()[0].startswith(LOCAL):
            return
        if plain.getsockopt(socket.IPPROTO_TCP, CONGESTION, 16).startswith(b"bbr"):
            plain.setsockopt(socket.IPPROTO_TCP, CONGESTION, b"reno")


class SocketTransport:
    """Sends on the transport's descriptor; keeps a duplicate only when it must."""

    __slots__ = ("_counts", "_fd", "_loop", "_own", "_watching")
    held_bytes: Final = 0

    def __init__(
        self, fd: int, loop: asyncio.AbstractEventLoop, counts: DescriptorCount | None = None
    ) -> None:
        self._fd = fd
        self._loop = loop
        self._counts = counts
        self._own: socket.socket | None = None
        self._watching = False

    def write(self, data: Bytes) -> int:
        try:
            return os.write(self._fd, data)
        except BlockingIOError:
            return 0

    def write_all(self, buffers: Sequence[Bytes], *, more: bool) -> int:
        try:
            if more:
                return self._duplicate().sendmsg(buffers, (), MORE)
            return os.writev(self._fd, buffers)
        except BlockingIOError:
            return 0

    def send_file(self, slice_: FileSlice, at: int, limit: int) -> int:
        try:
            count = min(slice_.size - at, limit)
            taken = os.sendfile(self._fd, slice_.fileno(), slice_.position + at, count)
        except BlockingIOError:
            return 0
        if not taken:
            raise OSError(FILE_TOO_SHORT)
        return taken

    def call_when_writable(self, callback: Callable[[], None] | None) -> None:
        """Call `callback` whenever more can be sent; None: no longer."""
        if self._watching == (callback is not None):
            return
        self._watching = not self._watching
        if callback is not None:
            self._loop.add_writer(self._duplicate().fileno(), callback)
        elif self._own is not None:
            self._loop.remove_writer(self._own.fileno())

    def close(self) -> None:
        self.call_when_writable(None)
        self._fd = -1
        if self._own is not None:
            self._own.close()
            self._own = None
            if self._counts is not None:
                self._counts.duplicates -= 1

    def _duplicate(self) -> socket.socket:
        if self._own is None:
            if self._fd < 0:
                raise OSError("cannot send: the connection is closed")
            self._own = socket.socket(fileno=os.dup(self._fd))
            if self._counts is not None:
                self._counts.duplicates += 1
        return self._own


class CopyingTransport:
    """Sends through the transport, one part at a time, as it takes them."""

    __slots__ = ("_callback", "_open", "_transport")
    held_bytes: Final = 0

    def __init__(self, transport: asyncio.WriteTransport) -> None:
        self._transport = transport
        self._open = True
        self._callback: Callable[[], None] | None = None

    def write(self, data: Bytes) -> int:
        if not self._open:
            return 0
        self._transport.write(bytes(data))
        return len(data)

    def write_all(self, buffers: Sequence[Bytes], *, more: bool) -> int:
        return self.write(b"".join(buffers))

    def send_file(self, slice_: FileSlice, at: int, limit: int) -> int:
        if not self._open:
            return 0
        data = slice_.read()
        if len(data) != slice_.size:
            raise OSError(FILE_TOO_SHORT)
        return self.write(data)

    def call_when_writable(self, callback: Callable[[], None] | None) -> None:
        self._callback = callback
        if callback is not None and self._open:
            asyncio.get_running_loop().call_soon(self._writable)

    def on_paused(self) -> None:
        """The transport wants no more for now."""
        self._open = False

    def on_resumed(self) -> None:
        self._open = True
        self._writable()

    def close(self) -> None:
        self._open = False
        self._callback = None

    def _writable(self) -> None:
        if self._open and self._callback is not None:
            self._callback()
