"""Bytes from one peer, cut into frames.

Owns: where the next frame starts and how many bytes of it are here.
Never: reads a socket, copies a whole frame, believes a size before the bytes have come.

A frame is a 4-byte size and that many bytes. It is handed out as a view of the memory that was
read into, and is good until `settle`. What is left of an unfinished frame is stashed when it is
small and stays in its buffer when it is large. The memory of a large frame is asked for whole
before its body is read; without it the reader is `starved` until it is given some.
"""

from __future__ import annotations

import struct
from typing import Final

from ottla.model.errors import Disconnect
from ottla.net.buffers import Buffer, Buffers
from ottla.net.error_log import hint

SIZE: Final = struct.Struct(">i")
SIZE_AND_API: Final = struct.Struct(">ih")
SMALLEST_FRAME: Final = 8  # of requests: API key, API version and correlation id
STASH_MAX: Final = 32 << 10
NOTHING: Final = memoryview(b"")


class FrameReader:
    """The receiving half of one connection."""

    __slots__ = (
        "_buffers",
        "_end",
        "_needed_end",
        "_own_buffer",
        "_shared",
        "_smallest",
        "_start",
        "_view",
        "api",
        "granted",
        "max_bytes",
        "starved",
    )  # fmt: skip

    def __init__(self, buffers: Buffers, max_bytes: int, smallest: int = SMALLEST_FRAME) -> None:
        self.max_bytes = max_bytes
        self._smallest = smallest
        self.granted = 0  # bytes of memory that were asked for and given
        self.starved = False  # a large frame may not go on yet: no memory
        self.api = -1  # the API key of the frame last taken
        self._buffers = buffers
        self._own_buffer: Buffer | None = None
        self._shared = False  # our bytes are in the shared buffer, until `settle`
        self._view = NOTHING
        self._start = 0
        self._end = 0
        self._needed_end = 0  # where the bytes must reach in its own buffer for anything to happen

    @property
    def left(self) -> int:
        """Bytes that are here and not yet taken as a frame."""
        return self._end - self._start

    @property
    def has_frame(self) -> bool:
        """`next_frame` has something to say: a whole frame, or that the size is wrong."""
        left = self._end - self._start
        if left < 4:
            return False
        size: int = SIZE.unpack_from(self._view, self._start)[0]
        return size + 4 <= left or not self._smallest <= size <= self.max_bytes

    @property
    def is_full(self) -> bool:
        """There is no space, until frames are taken or memory is found: do not read."""
        return self.starved or (self._own_buffer is not None and self._end >= self._own_buffer.size)

    def space(self) -> memoryview:
        """Where the next bytes go. Never empty after `settle`, unless frames wait or starved."""
        buffer = self._own_buffer
        if buffer is not None:
            return buffer.room[self._end :]
        room = self._buffers.shared.room
        left = self._end - self._start
        if left:
            room[:left] = self._view[self._start : self._end]
            return room[left:]
        return room

    def filled(self, count: int) -> bool:
        """`count` bytes were put into `space()`. False: still only a part of a large frame."""
        if self._own_buffer is not None:
            self._end += count
            return self._end >= self._needed_end
        self._end += count - self._start
        self._start = 0
        self._view = self._buffers.shared.view
        self._shared = True
        return True

    def next_frame(self) -> memoryview | None:
        """The next whole frame, without its size; None when it is not all here.

        `api` is the frame's API key then.
        """
        start = self._start
        left = self._end - start
        if left < 6:
            return self._next_tiny(left)
        size, self.api = SIZE_AND_API.unpack_from(self._view, start)
        if not self._smallest <= size <= self.max_bytes:
            self._check(size)
        start += 4
        stop: int = start + size
        if stop > self._end:
            return None
        self._start = stop
        return self._view[start:stop]

    def accept_tokens(self) -> None:
        """Frames of any size from now on: old clients send bare SASL tokens."""
        self._smallest = 0

    def expect_requests(self) -> None:
        self._smallest = SMALLEST_FRAME

    def _next_tiny(self, left: int) -> memoryview | None:
        """A frame without an API key: only a bare SASL token may be one."""
        if left < 4:
            return None
        size: int = SIZE.unpack_from(self._view, self._start)[0]
        self._check(size)
        if size + 4 > left:
            return None
        self.api = -1
        start, self._start = self._start + 4, self._start + 4 + size
        return self._view[start : self._start]

    def settle(self) -> None:
        """After the frames were answered: let go of the memory that is not needed any more."""
        left = self._end - self._start
        buffer = self._own_buffer
        if left == 0 and buffer is None:
            self._shared = False
            self._view = NOTHING
            self._start = self._end = 0
        elif left <= STASH_MAX and (self._shared or (buffer is not None and buffer.lent)):
            self._stash()
        elif self._shared:
            self._keep()
        elif buffer is not None:
            self._make_room(buffer)

    def trim(self) -> None:
        """Nothing has come for a while: hold no more memory than what is here."""
        buffer = self._own_buffer
        if buffer is None:
            return
        if self.left <= STASH_MAX:
            self._stash()

    def missing_memory(self) -> int:
        """How much memory it has to be given before it can go on; 0: none any more."""
        if self.left <= STASH_MAX:
            self.starved = False  # frames were taken meanwhile
        return max(self._need(), self.left) if self.starved else 0

    def admit(self, granted: int) -> None:
        """So much memory was given to the frame that had to wait."""
        self._release()
        self.granted = granted
        self.starved = False
        if self.left > STASH_MAX:
            self._move(self._buffers.make(granted))
            self._needed_end = self._need()
        else:
            self._release()  # what was here has been taken meanwhile

    def close(self) -> None:
        """The peer is gone and so are its bytes."""
        self._end = self._start
        self._view = NOTHING
        self._shared = False
        self.starved = False
        self._drop_own_buffer()
        self._release()

    def _stash(self) -> None:
        self._view = memoryview(bytes(self._view[self._start : self._end]))
        self._end -= self._start
        self._start = 0
        self._shared = False
        self._drop_own_buffer()
        self._release()

    def _keep(self) -> None:
        """A large part of a frame is in the shared buffer: keep it, or copy it out."""
        size = max(self._need(), self.left)
        if not self._request_memory(self._buffers.cost_of_keeping(size)):
            return
        buffer = self._buffers.keep_shared() if size <= self._buffers.shared.size else None
        if buffer is None:
            self._move(self._buffers.make(size))
            self._needed_end = self._need()
        else:
            self._own_buffer = buffer
            self._make_room(buffer)
        self._shared = False

    def _request_memory(self, size: int) -> bool:
        """Be granted `size` bytes in all. False: give up what it has, and wait for them.

        Whoever waits has been granted nothing, or all might wait for all.
        """
        admission = self._buffers.admission
        if admission.try_acquire(size):
            self._release()
            self.granted = size
            return True
        self.starved = self.left > STASH_MAX
        self._stash()
        return False

    def _release(self) -> None:
        granted, self.granted = self.granted, 0
        if granted:
            self._buffers.admission.release(granted)

    def _make_room(self, buffer: Buffer) -> None:
        """See to it that the frame that is arriving can go on arriving."""
        unread = self._end - self._start
        self._needed_end = 0
        if unread == 0:
            self._start = self._end = 0
            if self._buffers.admission.contended:
                self._stash()  # others wait for what it keeps for its next frame
            return
        need = self._need()
        if need > self.granted and not self._request_memory(max(need, buffer.size)):
            return
        if need > buffer.size:
            buffer = self._buffers.make(need)
            self._move(buffer)
        elif self._start + need > buffer.size:
            buffer.room[:unread] = self._view[self._start : self._end]
            self._start, self._end = 0, unread
        self._needed_end = self._start + need

    def _need(self) -> int:
        """How many bytes the first frame has, its size included, as far as that is known."""
        if self._end - self._start < 4:
            return 4
        size: int = SIZE.unpack_from(self._view, self._start)[0]
        return min(max(size, 0), self.max_bytes) + 4

    def _move(self, to: Buffer) -> None:
        left = self._end - self._start
        to.room[:left] = self._view[self._start : self._end]
        self._drop_own_buffer()
        self._own_buffer = to
        self._needed_end = 0
        self._view = to.view
        self._start, self._end = 0, left

    def _drop_own_buffer(self) -> None:
        buffer, self._own_buffer = self._own_buffer, None
        if buffer is not None:
            self._buffers.give_back(buffer)

    def _check(self, size: int) -> None:
        if self._smallest <= size <= self.max_bytes:
            return
        if size > self.max_bytes:
            reason = f"request size {size} is above socket.request.max.bytes ({self.max_bytes})"
        else:
            reason = f"request size {size} is too small for a request header"
        advice = hint(bytes(self._view[self._start : self._start + 4]))
        raise Disconnect(f"{reason}; {advice}" if advice else reason)
