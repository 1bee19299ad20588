"""Memory that is used again once nobody looks at it.

Owns: which pieces it has lent, and which of those came back. Never: clears what it lends, or keeps
what somebody still looks at from anybody.

Memory fresh from the system is dearer than most things that are done with it, because of its page
faults: half a millisecond a megabyte, several times what copying takes. What moves megabytes at a
time, fetches and the columns made of them, takes turns in the same memory instead.

Any number of threads may use one shelf.
"""

from __future__ import annotations

from collections import deque
from typing import Final

TRIES: Final = 3
"""Pieces that are asked whether they are free: the one lent longest ago most likely is."""
SMALLEST_STEP_BITS: Final = 12


class Shelf:
    """Pieces of memory, kept up to a limit."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self.kept_bytes = 0
        self._lent: dict[int, deque[bytearray]] = {}

    def lend(self, size: int) -> memoryview:
        """That many bytes of any content. They come back when the last view of them is gone."""
        rounded = _rounded(size)
        if rounded > self._most_bytes:
            return memoryview(bytearray(size))
        memory = _first_free(self._lent.get(rounded, deque())) or self._more(rounded)
        view = memoryview(memory)[:size]  # before anybody else can see it: now it is not free
        self._lent.setdefault(rounded, deque()).append(memory)
        return view

    def _more(self, size: int) -> bytearray:
        if self.kept_bytes + size > self._most_bytes:
            self._lent.clear()  # whoever looks at a piece keeps it, the rest goes
            self.kept_bytes = 0
        self.kept_bytes += size
        return bytearray(size)


def _first_free(lent: deque[bytearray]) -> bytearray | None:
    for _ in range(TRIES):
        try:
            memory = lent.popleft()
        except IndexError:
            return None
        if _is_free(memory):
            return memory
        lent.append(memory)
    return None


def _is_free(memory: bytearray) -> bool:
    """Python lets nobody change the length of a bytearray that is in view."""
    try:
        memory.append(memory.pop())
    except BufferError:
        return False
    return True


def _rounded(size: int) -> int:
    """A little more: what is wanted next may be larger, and shall find this large enough."""
    step = 1 << max(size.bit_length() - 3, SMALLEST_STEP_BITS)
    return -(-size // step) * step
