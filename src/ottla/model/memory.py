"""A pool of buffers that are reused once no view of them is left.

Owns: the buffers it has lent, and which of them are free again. Never: clears a buffer, or reuses
one that still has a view.

Memory fresh from the system costs page faults: half a millisecond a megabyte, several times what
copying takes. Fetches and the columns made of them move megabytes at a time, so they reuse memory.

Any number of threads may use one pool.
"""

from __future__ import annotations

from collections import deque
from typing import Final

TRIES: Final = 3
"""Buffers to try: the one lent longest ago is most likely free."""
SMALLEST_STEP_BITS: Final = 12


class BufferPool:
    """Buffers by size, kept up to a limit."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self.kept_bytes = 0
        self._lent: dict[int, deque[bytearray]] = {}

    def lend(self, size: int) -> memoryview:
        """That many bytes of any content. They come back when the last view of them is gone."""
        rounded = _round_up(size)
        if rounded > self._most_bytes:
            return memoryview(bytearray(size))
        memory = _first_free(self._lent.get(rounded, deque())) or self._more(rounded)
        view = memoryview(memory)[:size]  # before it is listed: a buffer with a view is not free
        self._lent.setdefault(rounded, deque()).append(memory)
        return view

    def _more(self, size: int) -> bytearray:
        if self.kept_bytes + size > self._most_bytes:
            self._lent.clear()  # views keep their buffers alive, the rest is freed
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
    """Python refuses to resize a bytearray that has a view."""
    try:
        memory.append(memory.pop())
    except BufferError:
        return False
    return True


def _round_up(size: int) -> int:
    """The size rounded up, so that a slightly larger request fits as well."""
    step = 1 << max(size.bit_length() - 3, SMALLEST_STEP_BITS)
    return -(-size // step) * step
