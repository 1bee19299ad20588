"""Large replies, received by a thread of their own and not by the event loop.

Owns: when a connection is handed to that thread and when it comes back, and the thread. Never:
knows what a reply contains or where one ends: the reply reader says how many bytes are missing.

An event loop takes megabytes a few hundred kilobytes at a time, and for each the interpreter's lock
twice, which another thread may have just then; meanwhile the broker waits for room. Here the kernel
is asked once for the rest of a reply, and the lock is not needed before all of it is there. It
wakes the thread only for `WAKE_BYTES` at a time: less often than they arrive, which relieves the
sender as well.

The descriptor blocks meanwhile, for the loop as well: what it sends then must fit into the socket's
buffer. A client asks for more before the answer is there only in small requests.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Final

LEAST_BYTES: Final = 1 << 20
"""Still to come of a reply: for fewer, two changes of thread are not worth it."""
WAKE_BYTES: Final = 512 << 10
BUFFER_BYTES: Final = 2 << 20
"""What the kernel may hold ready, so that it need not wait for the thread; it may allow less."""
_CAN_WAIT_FOR_MANY: Final = sys.platform == "linux"  # elsewhere the last bytes may not wake anybody


def receive_in_bulk(transport: asyncio.Transport, buffer_bytes: int) -> None:
    """Have a thread receive what is large on this connection, unless it is encrypted.

    The socket's buffer is enlarged to so much, or stays as it was made (0).
    """
    exchange = transport.get_protocol()
    assert isinstance(exchange, asyncio.BufferedProtocol)
    plain = transport.get_extra_info("socket")
    if plain is not None and transport.get_extra_info("sslcontext") is None:
        transport.set_protocol(BulkReceiver(exchange, transport, buffer_bytes))


class BulkReceiver(asyncio.BufferedProtocol):
    """A protocol between a connection and its reply reader."""

    def __init__(
        self, exchange: asyncio.BufferedProtocol, transport: asyncio.Transport, buffer_bytes: int
    ) -> None:
        self._exchange = exchange
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._buffer_bytes = buffer_bytes
        self._receiver: ReceiverThread | None = None

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self._exchange.get_buffer(sizehint))

    def buffer_updated(self, nbytes: int) -> None:
        self._exchange.buffer_updated(nbytes)
        if self._transport.is_closing():
            return
        room = self.get_buffer(-1)
        if len(room) >= LEAST_BYTES:
            self._hand_to_thread(room)

    def pause_writing(self) -> None:
        self._exchange.pause_writing()

    def resume_writing(self) -> None:
        self._exchange.resume_writing()

    def eof_received(self) -> bool | None:
        return self._exchange.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._receiver is not None:
            self._receiver.close()
        self._exchange.connection_lost(exc)

    def _hand_to_thread(self, room: memoryview) -> None:
        if self._receiver is None:
            fd = self._transport.get_extra_info("socket").fileno()
            self._receiver = ReceiverThread(fd, self._buffer_bytes, self._on_filled)
        self._transport.pause_reading()
        self._receiver.fill(room)

    def _on_filled(self, count: int) -> None:
        """On the thread: the loop goes on from here."""
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._on_received, count)

    def _on_received(self, count: int) -> None:
        if self._transport.is_closing():
            return
        self._transport.resume_reading()  # which hears of it, should the peer have gone
        if count:
            self.buffer_updated(count)


class ReceiverThread:
    """The thread: fills what it is given, one after the other, until `close`."""

    def __init__(self, fd: int, buffer_bytes: int, filled: Callable[[int], None]) -> None:
        self._socket = socket.socket(fileno=os.dup(fd))  # the loop may close its own at any time
        if buffer_bytes:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        self._filled = filled
        self._rooms: SimpleQueue[memoryview | None] = SimpleQueue()
        threading.Thread(target=self._run, name="ottla-receiver", daemon=True).start()

    def fill(self, room: memoryview) -> None:
        """Receive exactly so much, or all until the connection ends; `filled` hears how much."""
        self._rooms.put(room)

    def close(self) -> None:
        """Whatever is being received ends."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._rooms.put(None)

    def _run(self) -> None:
        with self._socket:
            while (room := self._rooms.get()) is not None:
                count = self._receive(room)
                del room  # its memory is reused once no view of it is left
                self._filled(count)

    def _receive(self, room: memoryview) -> int:
        count, fd = 0, self._socket.fileno()
        os.set_blocking(fd, True)
        with suppress(OSError):  # the event loop sees the same error and reports it
            if _CAN_WAIT_FOR_MANY:
                self._wake_for(WAKE_BYTES)
                count = self._take(room[:-WAKE_BYTES])
                self._wake_for(1)
            count += self._take(room[count:])
        os.set_blocking(fd, False)
        return count

    def _wake_for(self, size: int) -> None:
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)

    def _take(self, room: memoryview) -> int:
        return self._socket.recv_into(room, len(room), socket.MSG_WAITALL)
