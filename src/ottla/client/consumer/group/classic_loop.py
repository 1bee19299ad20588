"""Being a member of a classic group: join, sync, heartbeat, and again.

Owns the task and the requests; their contents and the meaning of responses are decided in
`classic_member`. What the user must see (commits, listeners, changed assignments) goes through the
poll gate, so it happens inside a poll, and a member rejoins only when its user polls.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from ottla.client.cluster import ConnectionLane, CoordinatorKind
from ottla.client.consumer.assignors.assignor import Shares
from ottla.client.consumer.group.classic_member import ClassicMember, GroupMetadata, MemberPhase
from ottla.client.consumer.group.error_reactions import ErrorReaction
from ottla.client.consumer.group.membership import Membership, MembershipParts
from ottla.client.errors import KafkaError, refusal
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol.encode import Fields
from ottla.protocol.schema import KioMessage

log = logging.getLogger(__name__)

JOIN_GROUP: Final = 11
HEARTBEAT: Final = 12
LEAVE_GROUP: Final = 13
SYNC_GROUP: Final = 14
JOIN_GRACE_MS: Final = 5_000
"""Beyond the rebalance timeout, which the coordinator itself may wait for."""


class ClassicLoop(Membership[ClassicMember]):
    """One membership of a classic group."""

    def __init__(self, member: ClassicMember, parts: MembershipParts) -> None:
        super().__init__(member, parts)
        self._rejoin_needed = asyncio.Event()
        self._reason = "joining for the first time"
        self._joined_revision = -1
        parts.watch.add_listener(self._on_metadata)

    def commit_metadata(self) -> GroupMetadata | None:
        member = self._member
        return None if member.lost or not member.member_id else member.metadata

    def on_commit_error(self, reaction: ErrorReaction) -> None:
        if reaction is ErrorReaction.JOIN_ANEW:
            self._member.forget()
        self.rejoin("offset commit failed")

    def on_subscription_changed(self) -> None:
        if self._subscriptions.revision != self._joined_revision:
            self.rejoin("the subscription changed")

    def rejoin(self, reason: str) -> None:
        self._reason = reason
        self._rejoin_needed.set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            heartbeats: asyncio.Task[None] | None = None
            while True:
                await self._gate.call(self._prepare)
                if heartbeats is not None:
                    heartbeats.cancel()
                share = await self._join()
                if share is None:
                    continue
                heartbeats = tasks.create_task(self._heartbeat_loop())
                await self._gate.call(lambda share=share: self._complete(share))  # type: ignore[misc]
                await self._rejoin_needed.wait()

    async def leave(self, reason: str, timeout_ms: int) -> None:
        fields = self._member.leave(reason)
        self._watch.forget_group()
        if fields is None:
            return
        with suppress(KafkaError, OSError):
            await self._ask(LEAVE_GROUP, fields, timeout_ms)

    async def _prepare(self) -> None:
        """Inside a poll, before joining: commit, revoke, and only then stop the heartbeats."""
        assigned = self._subscriptions.assigned
        member = self._member
        if member.lost:
            member.lost = False
            await self._rebalance.lose(assigned)
        elif member.is_cooperative:
            topics = self._subscriptions.topics
            unwanted = frozenset(tp for tp in assigned if tp.topic not in topics)
            await self._rebalance.auto_commit()
            await self._rebalance.revoke(unwanted)
        else:
            await self._rebalance.revoke(assigned)
        self._rejoin_needed.clear()
        self._joined_revision = self._subscriptions.revision

    async def _complete(self, share: tuple[TopicPartition, ...]) -> None:
        """Inside a poll, after syncing: revoke lost partitions, add new ones."""
        member = self._member
        if member.lost:
            return  # too late: a heartbeat failed before the user polled
        target, owned = frozenset(share), self._subscriptions.assigned
        revoked = owned - target
        await self._rebalance.revoke(revoked)
        await self._rebalance.assign(target - owned)
        if revoked:
            self.rejoin("revoked partitions for other members")

    async def _join(self) -> tuple[TopicPartition, ...] | None:
        """Join and sync until it succeeds, or until the user must be told of an error (None)."""
        failures = 0
        while True:
            try:
                reaction, share = await self._join_once()
            except (KafkaError, OSError) as error:
                # Not an error code of JoinGroup or SyncGroup, which `error_reactions` handles: the
                # coordinator was not found or not reached, or the error is final.
                if isinstance(error, KafkaError) and not error.retriable:
                    self._member.on_error(ErrorReaction.GIVE_UP)
                    self._gate.fail(error)
                    return None
                self._member.on_error(ErrorReaction.TRY_LATER)
                self._forget_coordinator()
                reaction, share = ErrorReaction.TRY_LATER, ()
            if reaction is ErrorReaction.GO_ON:
                return share
            if reaction is ErrorReaction.FIND_COORDINATOR:
                self._forget_coordinator()
            if reaction in (ErrorReaction.TRY_LATER, ErrorReaction.FIND_COORDINATOR):
                failures += 1
                await asyncio.sleep(self._cluster.backoff.after(failures) / 1e3)
            if self._member.lost:
                return None  # its partitions must be released first, inside a poll

    async def _join_once(self) -> tuple[ErrorReaction, tuple[TopicPartition, ...]]:
        member, subscriptions = self._member, self._subscriptions
        if not subscriptions.topics <= self._watch.view.topics.keys():
            await self._watch.refresh()
        self._joined_revision = subscriptions.revision
        request = member.join(subscriptions.topics, subscriptions.assigned, self._reason)
        timeout_ms = member.terms.rebalance_timeout_ms + JOIN_GRACE_MS
        reply = await self._ask(JOIN_GROUP, request, timeout_ms, ConnectionLane.JOIN)
        reaction = member.on_joined(reply)
        if reaction is not ErrorReaction.GO_ON:
            if reaction is ErrorReaction.GIVE_UP:
                raise refusal(reply.error_code)
            return reaction, ()
        shares: Shares = {}
        if member.is_leader:
            shares = member.lead(await self._counts(member.topics_of_all))
        else:
            self._watch.forget_group()
        reply = await self._ask(SYNC_GROUP, member.sync(shares), timeout_ms, ConnectionLane.JOIN)
        reaction, share = member.on_synced(reply)
        if reaction is ErrorReaction.GIVE_UP:
            raise refusal(reply.error_code)
        return reaction, share

    async def _counts(self, topics: frozenset[str]) -> Mapping[str, int]:
        return await self._watch.partition_counts(topics)

    async def _heartbeat_loop(self) -> None:
        """Send heartbeats while the member is stable."""
        member, interval_ms = self._member, self._config.heartbeat_interval_ms
        failures = 0
        while member.phase is MemberPhase.STABLE:
            pause_ms = self._cluster.backoff.after(failures) if failures else interval_ms
            await asyncio.sleep(max(1, min(pause_ms, self._poll_interval.left_ms)) / 1e3)
            if self._poll_interval.is_too_slow:
                await self._leave_after_poll_timeout()
                return
            try:
                timeout_ms = self._config.session_timeout_ms
                reply = await self._ask(HEARTBEAT, member.heartbeat(), timeout_ms)
            except (
                KafkaError,
                OSError,
            ):  # coordinator not found or not reached
                failures += 1
                self._forget_coordinator()
                continue
            failures = 0
            self._on_heartbeat_code(reply.error_code)

    def _on_heartbeat_code(self, code: ErrorCode) -> None:
        match self._member.on_heartbeat(code):
            case ErrorReaction.JOIN_AGAIN:
                self.rejoin("the group is rebalancing")
            case ErrorReaction.JOIN_ANEW:
                self.rejoin("the coordinator does not know this member")
            case ErrorReaction.FIND_COORDINATOR:
                self._forget_coordinator()
            case ErrorReaction.GIVE_UP:
                self._gate.fail(refusal(code))
                self.rejoin(f"heartbeat failed: {code.name}")
            case _:
                pass

    async def _leave_after_poll_timeout(self) -> None:
        """The user has not polled for too long: leave, so that others get the partitions."""
        log.warning(
            "leaving group %s: no poll() for max.poll.interval.ms=%d; reduce max.poll.records or "
            "increase max.poll.interval.ms",
            self._member.terms.group_id,
            self._config.max_poll_interval_ms,
        )
        reason = "consumer poll timeout has expired"
        await self.leave(reason, self._config.request_timeout_ms)
        self.rejoin(reason)

    def _on_metadata(self) -> None:
        """After each metadata refresh: rejoin if the assignment is out of date."""
        if self._member.phase is not MemberPhase.STABLE:
            return
        if self._watch.has_grown and self._member.is_leader:
            self.rejoin("the number of partitions changed")
        self.on_subscription_changed()

    def _forget_coordinator(self) -> None:
        group_id = self._member.terms.group_id
        self._cluster.forget_coordinator(CoordinatorKind.GROUP, group_id)

    async def _ask(
        self,
        key: int,
        fields: Fields,
        timeout_ms: int,
        lane: ConnectionLane = ConnectionLane.COORDINATION,
    ) -> KioMessage:
        group_id = self._member.terms.group_id
        node = await self._cluster.coordinator(CoordinatorKind.GROUP, group_id)
        return await self._cluster.ask(node, key, fields, timeout_ms=timeout_ms, lane=lane)
