"""The memory that sockets are read into.

Owns: one shared buffer that every connection reads into, and the few that connections keep while
a large frame is still arriving.
Never: looks at the bytes.

The loop reads one connection at a time and what it read is nearly always answered before the next
read, so ten thousand idle connections need no buffer at all and the busy ones share one that stays
in the processor's cache. A connection keeps a buffer only for the part of a frame it has; how much
all of them may keep is bounded by `queued.max.request.bytes` (`admission`).

A frame larger than the shared buffer gets a piece of its whole size, mapped and not allocated: the
system gives it memory page by page as bytes arrive, so that a lying size costs nothing, and nothing
has to be copied as a frame grows.
"""

from __future__ import annotations

from mmap import MAP_ANON, MAP_PRIVATE, mmap
from typing import Final

from ottla.net.admission import Admission

SHARED_BYTES: Final = 1 << 20
LENT_MAX: Final = 64
"""How many shared buffers may be with connections; beyond, they copy what they need."""
SPARE_MAX: Final = 4


class Buffer:
    """A piece of memory to read into (`room`) and to take frames out of (`view`)."""

    __slots__ = ("lent", "room", "size", "view")

    def __init__(self, size: int, *, lent: bool = False) -> None:
        self.size = size
        self.lent = lent  # made for sharing, so it can be shared again
        memory = mmap(-1, size, MAP_PRIVATE | MAP_ANON) if size > SHARED_BYTES else bytearray(size)
        self.room = memoryview(memory)
        self.view = self.room.toreadonly()


class Buffers:
    """The shared buffer of one event loop, and how much is kept by connections."""

    def __init__(self, shared_bytes: int = SHARED_BYTES, lent_max: int = LENT_MAX) -> None:
        self.admission = Admission()  # queued.max.request.bytes
        self.kept_bytes = 0
        self.shared = Buffer(shared_bytes, lent=True)
        self._lent_max = lent_max
        self._lent = 0
        self._spare: list[Buffer] = []

    def cost_of_keeping(self, size: int) -> int:
        """How much is to be asked for to keep a frame of `size` bytes: shared buffers are large."""
        return max(size, self.shared.size) if self._lent < self._lent_max else size

    def keep_shared(self) -> Buffer | None:
        """Leave the shared buffer to the one that has just read into it, and share another.

        None when too many have done so: then it must copy what it needs.
        """
        if self._lent >= self._lent_max:
            return None
        kept = self.shared
        self._lent += 1
        self.kept_bytes += kept.size
        self.shared = self._spare.pop() if self._spare else Buffer(kept.size, lent=True)
        return kept

    def make(self, size: int) -> Buffer:
        """A buffer of a connection's own, for what the shared one cannot do."""
        self.kept_bytes += size
        return Buffer(size)

    def give_back(self, buffer: Buffer) -> None:
        self.kept_bytes -= buffer.size
        if buffer.lent:
            self._lent -= 1
            if len(self._spare) < SPARE_MAX:
                self._spare.append(buffer)
