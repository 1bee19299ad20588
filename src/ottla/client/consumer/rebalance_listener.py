"""The rebalance listener: called when partitions are revoked, assigned or lost.

Owns the interface. All three methods run inside the user's `poll` (or `close`, or `unsubscribe`),
where the consumer may be used: commit when partitions are revoked, seek when they are assigned.
With `ottla.aio` they may be coroutines.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from ottla.model.ids import TopicPartition

Invoke: TypeAlias = Callable[[Callable[[], object]], Awaitable[object]]
"""How user code is called: on the loop, or by the thread that waits for it."""


class RebalanceListener:
    """Base class: override the methods you need."""

    def on_revoked(self, partitions: frozenset[TopicPartition]) -> object:
        """Called while this member still owns them: commit what was processed."""
        return None

    def on_assigned(self, partitions: frozenset[TopicPartition]) -> object:
        """Called for newly assigned partitions: seek, if offsets are stored elsewhere."""
        return None

    def on_lost(self, partitions: frozenset[TopicPartition]) -> object:
        """Other members may own them already, too late to commit; as `on_revoked` by default."""
        return self.on_revoked(partitions)
