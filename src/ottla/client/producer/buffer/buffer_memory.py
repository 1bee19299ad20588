"""The bytes that records may take while they wait: `buffer.memory`.

Owns: how much is free, and who waits for some, first come first served. Never blocks: a caller
that must wait brings its own way of being woken. The accumulator's lock guards it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final


class MemoryClaim:
    """Somebody who waits for memory."""

    __slots__ = ("granted", "size", "wake")

    def __init__(self, size: int, wake: Callable[[], object]) -> None:
        self.size = size
        self.wake = wake
        self.granted = False


class BufferMemory:
    """A pool of bytes."""

    def __init__(self, total: int) -> None:
        self.total: Final = total
        self.free = total
        self._waiting: deque[MemoryClaim] = deque()

    @property
    def waiting(self) -> int:
        """How many wait for some."""
        return len(self._waiting)

    def take(self, size: int) -> bool:
        """Have `size` bytes now; not before those who wait already."""
        if self._waiting or size > self.free:
            return False
        self.free -= size
        return True

    def wait(self, size: int, wake: Callable[[], object]) -> MemoryClaim:
        """Queue for `size` bytes; `wake` is called when the claim is granted."""
        claim = MemoryClaim(size, wake)
        self._waiting.append(claim)
        self._grant()
        return claim

    def give_up(self, claim: MemoryClaim) -> None:
        """Stop waiting; what was granted meanwhile goes back."""
        if claim.granted:
            self.give_back(claim.size)
        else:
            self._waiting.remove(claim)
            self._grant()  # one behind may want less

    def give_back(self, size: int) -> None:
        self.free += size
        self._grant()

    def _grant(self) -> None:
        while self._waiting and self._waiting[0].size <= self.free:
            claim = self._waiting.popleft()
            self.free -= claim.size
            claim.granted = True
            claim.wake()
