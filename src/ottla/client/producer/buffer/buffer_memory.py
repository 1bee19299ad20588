"""The memory of buffered records: `buffer.memory`.

Owns: the free bytes, and the queue of claims, first come first served. Never blocks: a claim has a
callback that wakes its owner. The accumulator's lock guards it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final


class MemoryClaim:
    """A queued claim for memory."""

    __slots__ = ("granted", "queued_ns", "size", "wake")

    def __init__(self, size: int, wake: Callable[[], object]) -> None:
        self.size = size
        self.wake = wake
        self.granted = False
        self.queued_ns: int | None = None
        """When its owner began to wait; None if it was granted at once."""


class BufferMemory:
    """A pool of bytes."""

    def __init__(self, total: int) -> None:
        self.total: Final = total
        self.free = total
        self.waited_ns = 0
        """How long the owners of claims have waited, all together."""
        self.timeouts = 0
        """Claims given up because memory came too late."""
        self._waiting: deque[MemoryClaim] = deque()

    @property
    def waiting(self) -> int:
        """The number of queued claims."""
        return len(self._waiting)

    def take(self, size: int) -> bool:
        """Take `size` bytes now; False if there are too few, or claims are queued."""
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
        """Cancel a claim; memory that was already granted is freed."""
        if claim.granted:
            self.give_back(claim.size)
        else:
            self._waiting.remove(claim)
            self._grant()  # a later claim may be smaller

    def give_back(self, size: int) -> None:
        self.free += size
        self._grant()

    def _grant(self) -> None:
        while self._waiting and self._waiting[0].size <= self.free:
            claim = self._waiting.popleft()
            self.free -= claim.size
            claim.granted = True
            claim.wake()
