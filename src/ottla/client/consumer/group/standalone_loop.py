"""A consumer without a group: it reads every partition of its topics, alone.

Owns the self-assignment: whenever topics get partitions or a pattern matches another topic, the new
partitions are read too. Nothing is committed, so reading starts where `auto.offset.reset` says.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from ottla.client.consumer.group.classic_member import GroupMetadata
from ottla.client.consumer.group.error_reactions import ErrorReaction
from ottla.client.consumer.group.rebalance import Rebalance
from ottla.client.consumer.metadata_watch import MetadataWatch
from ottla.client.consumer.poll_gate import PollGate
from ottla.client.consumer.subscription import Subscriptions
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicPartition


class StandaloneLoop:
    """The group interface for a consumer without a group."""

    def __init__(
        self,
        subscriptions: Subscriptions,
        watch: MetadataWatch,
        gate: PollGate,
        rebalance: Rebalance,
    ) -> None:
        self._subscriptions = subscriptions
        self._watch = watch
        self._gate = gate
        self._rebalance = rebalance
        self._changed = asyncio.Event()
        watch.add_listener(self.on_subscription_changed)

    @property
    def metadata(self) -> GroupMetadata:
        return GroupMetadata("")

    @property
    def is_lost(self) -> bool:
        return False

    def commit_metadata(self) -> GroupMetadata | None:
        return None

    def on_commit_error(self, after: ErrorReaction) -> None:
        """Nothing is committed."""

    def on_subscription_changed(self) -> None:
        self._changed.set()

    def rejoin(self, reason: str) -> None:
        self._changed.set()

    async def run(self) -> None:
        while True:
            self._changed.clear()
            if not self._subscriptions.topics <= self._watch.view.topics.keys():
                with suppress(OSError):
                    await self._watch.refresh()
                self._watch.request_refresh()  # a topic may be created
                self._report_errors()
            if self._partitions() != self._subscriptions.assigned:
                await self._gate.call(self._assign_all)
            await self._changed.wait()

    async def leave(self, reason: str, timeout_ms: int) -> None:
        """There is no group to leave."""

    async def _assign_all(self) -> None:
        target, owned = self._partitions(), self._subscriptions.assigned
        await self._rebalance.revoke(owned - target)
        await self._rebalance.assign(target - owned)

    def _partitions(self) -> frozenset[TopicPartition]:
        topics = self._watch.view.topics
        return frozenset(
            TopicPartition(name, partition.index)
            for name in self._subscriptions.topics
            if name in topics
            for partition in topics[name].partitions
        )

    def _report_errors(self) -> None:
        """Raise errors of topics that cannot exist or may not be read in the next poll."""
        for name in self._subscriptions.topics:
            code = self._watch.view.errors.get(name, ErrorCode.none)
            if code in (ErrorCode.invalid_topic_exception, ErrorCode.topic_authorization_failed):
                self._gate.fail(KafkaError(code, f"topic {name}: {code.name}"))
