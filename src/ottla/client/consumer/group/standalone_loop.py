"""A consumer without a group: it reads every partition of its topics, alone.

Owns nothing but the habit: whenever topics grow or a pattern takes another one, the new partitions
are read too. Nothing is committed, so reading begins where `auto.offset.reset` says.
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
    """A membership of nothing."""

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
        self._look = asyncio.Event()
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
        self._look.set()

    def rejoin(self, reason: str) -> None:
        self._look.set()

    async def run(self) -> None:
        while True:
            self._look.clear()
            if not self._subscriptions.topics <= self._watch.view.topics.keys():
                with suppress(OSError):
                    await self._watch.refresh()
                self._watch.ask()  # a topic may come to be
                self._refuse()
            if self._partitions() != self._subscriptions.assigned:
                await self._gate.call(self._take_all)
            await self._look.wait()

    async def leave(self, reason: str, timeout_ms: int) -> None:
        """Nobody needs to know."""

    async def _take_all(self) -> None:
        wanted, owned = self._partitions(), self._subscriptions.assigned
        await self._rebalance.revoke(owned - wanted)
        await self._rebalance.assign(wanted - owned)

    def _partitions(self) -> frozenset[TopicPartition]:
        topics = self._watch.view.topics
        return frozenset(
            TopicPartition(name, each.index)
            for name in self._subscriptions.topics
            if name in topics
            for each in topics[name].partitions
        )

    def _refuse(self) -> None:
        """Topics that there will never be are the user's mistake."""
        for name in self._subscriptions.topics:
            code = self._watch.view.errors.get(name, ErrorCode.none)
            if code in (ErrorCode.invalid_topic_exception, ErrorCode.topic_authorization_failed):
                self._gate.fail(KafkaError(code, f"topic {name}: {code.name}"))
