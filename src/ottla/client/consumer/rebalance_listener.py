"""The rebalance listener: what a user wants to do when partitions come and go.

Owns the port. All three run inside the user's `poll` (or `close`, or `unsubscribe`), where the
consumer may be used: commit when partitions are revoked, seek when they are assigned. With
`ottla.aio` they may be coroutines.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from ottla.model.ids import TopicPartition

Invoke: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]]
"""How user code is called: on the loop, or by the thread that waits for it."""


class RebalanceListener:
    """Does nothing: a subclass writes the methods that it needs."""

    def on_revoked(self, partitions: frozenset[TopicPartition]) -> Any:
        """They are still this member's, for the last time: commit what was handled."""
        return None

    def on_assigned(self, partitions: frozenset[TopicPartition]) -> Any:
        """They are new to this member: seek, if offsets are kept elsewhere."""
        return None

    def on_lost(self, partitions: frozenset[TopicPartition]) -> Any:
        """They may be somebody else's already, too late to commit; as `on_revoked` by default."""
        return self.on_revoked(partitions)
