"""Revoking and assigning partitions in a rebalance.

Owns the order in which a member commits, calls its listener, and changes its assignment; both
group protocols use it, always inside a user's call. Never sends a request.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from ottla.client.consumer.rebalance_listener import Invoke, RebalanceListener
from ottla.client.consumer.subscription import Subscriptions
from ottla.client.errors import KafkaError
from ottla.model.ids import TopicPartition

log = logging.getLogger(__name__)


class Rebalance:
    """Revokes and assigns partitions of a member."""

    def __init__(
        self,
        subscriptions: Subscriptions,
        auto_commit: Callable[[], Awaitable[None]],
        invoke: Invoke,
        changed: Callable[[], None],
    ) -> None:
        self._subscriptions = subscriptions
        self._auto_commit = auto_commit
        self._invoke = invoke
        self._changed = changed
        self.listener = RebalanceListener()
        self.count = 0

    async def auto_commit(self) -> None:
        """Commit the current positions, if commits are automatic; a failure is only logged."""
        try:
            await self._auto_commit()
        except (KafkaError, OSError) as error:
            log.warning("automatic offset commit before a rebalance failed: %s", error)

    async def revoke(self, partitions: frozenset[TopicPartition]) -> None:
        """Commit, call the listener, stop reading these."""
        if not partitions:
            return
        for tp in partitions:
            part = self._subscriptions.get(tp)
            if part is not None:
                part.leaving = True
        await self.auto_commit()
        try:
            await self._invoke(lambda: self.listener.on_revoked(partitions))
        finally:
            self._subscriptions.replace(self._subscriptions.assigned - partitions)
            self._changed()

    async def lose(self, partitions: frozenset[TopicPartition]) -> None:
        """Drop partitions that are lost already: nothing is committed."""
        if not partitions:
            return
        self._subscriptions.replace(self._subscriptions.assigned - partitions)
        self._changed()
        await self._invoke(lambda: self.listener.on_lost(partitions))

    async def assign(self, partitions: frozenset[TopicPartition]) -> None:
        """Add these partitions; the listener may seek."""
        self.count += 1
        self._subscriptions.replace(self._subscriptions.assigned | partitions)
        try:
            await self._invoke(lambda: self.listener.on_assigned(partitions))
        finally:
            self._changed()
