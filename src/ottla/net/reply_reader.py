"""Bytes from a server, split into replies that their readers may keep.

Owns: where the next reply starts and how many bytes of it are here.
Never: reads a socket, knows requests.

The counterpart of `frame_reader`: a broker has thousands of connections and releases a request's
bytes as soon as it is answered; a client has a few, and its fetches return megabytes that stay
until they are decoded. So a large reply gets memory of its own, and the socket is read straight
into it: its bytes are copied once, by the kernel. That memory is reused for another reply when no
view of this one is left. Small replies share a buffer and are copied out of it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from ottla.model.errors import Disconnect
from ottla.model.memory import BufferPool

SIZE: Final = struct.Struct(">i")
SMALLEST_REPLY: Final = 4  # a correlation id
TRUSTED_BYTES: Final = 64 << 20
"""Memory that a size alone is worth; beyond, as much again as has really arrived."""
KEPT_BYTES: Final = 3 * TRUSTED_BYTES
"""One reply arrives while one is read and one waits to be."""


class ReplyReader:
    """The receiving half of one connection to a peer."""

    def __init__(self, read_bytes: int, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._shared = memoryview(bytearray(read_bytes))
        self._end = 0  # of the bytes in the shared buffer
        self._pool = BufferPool(KEPT_BYTES)
        self._room = memoryview(b"")  # for the large reply that is arriving
        self._arrived = 0
        self._size = 0  # of that reply; 0: there is none

    def space(self) -> memoryview:
        """Where the next bytes go."""
        return self._room[self._arrived :] if self._size else self._shared[self._end :]

    def filled(self, count: int) -> Iterator[memoryview]:
        """`count` bytes were put into `space()`: each whole reply, without its size."""
        if not self._size:
            self._end += count
            yield from self._cut()
            return
        self._arrived += count
        if self._arrived == self._size:
            whole, self._room, self._size = self._room.toreadonly(), memoryview(b""), 0
            yield whole
        elif self._arrived == len(self._room):
            self._grow()

    def _cut(self) -> Iterator[memoryview]:
        start = 0
        while self._end - start >= SIZE.size:
            (size,) = SIZE.unpack_from(self._shared, start)
            if not SMALLEST_REPLY <= size <= self._max_bytes:
                raise Disconnect(
                    f"invalid reply size {size}: "
                    f"must be between {SMALLEST_REPLY} and {self._max_bytes} bytes"
                )
            begin, stop = start + SIZE.size, start + SIZE.size + size
            if stop > self._end:
                if stop - start > len(self._shared):
                    self._make_large(size, self._shared[begin : self._end])
                    return
                break
            yield memoryview(bytes(self._shared[begin:stop]))
            start = stop
        left = self._end - start
        if start and left:
            self._shared[:left] = bytes(self._shared[start : self._end])
        self._end = left

    def _make_large(self, size: int, begun: memoryview) -> None:
        """The rest of this reply goes straight to where it will stay."""
        self._room = self._pool.lend(min(size, TRUSTED_BYTES))
        self._room[: len(begun)] = begun
        self._arrived = len(begun)
        self._size = size
        self._end = 0

    def _grow(self) -> None:
        larger = bytearray(min(self._size, 2 * self._arrived))
        larger[: self._arrived] = self._room
        self._room = memoryview(larger)
