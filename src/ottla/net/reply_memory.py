"""Memory of replies that clients have not read: the total, and the connection with the most. Pure.

Owns: the bytes of each connection that has any. Never: closes one; it says which.

Each connection is paused long before this limit (`limits.UNSENT_PAUSE_BYTES`). This limit is for
many connections at once: their replies stay in memory until one of them is closed.
"""

from __future__ import annotations

from typing import Generic, TypeVar

Owner = TypeVar("Owner")


class ReplyMemory(Generic[Owner]):
    """At most `limit` bytes; below 0: as many as there are."""

    def __init__(self, limit: int = -1) -> None:
        self.limit = limit
        self.total = 0
        self._sizes: dict[Owner, int] = {}

    def note(self, owner: Owner, size: int) -> Owner | None:
        """Record the bytes of `owner`; over the limit, the owner with the most bytes."""
        self.total += size - self._sizes.get(owner, 0)
        if size:
            self._sizes[owner] = size
        else:
            self._sizes.pop(owner, None)
        if not 0 <= self.limit < self.total:
            return None
        return max(self._sizes, key=self._sizes.__getitem__)

    def of(self, owner: Owner) -> int:
        return self._sizes.get(owner, 0)
