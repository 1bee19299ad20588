"""Being a member of a classic group: join, sync, heartbeat, and again.

Owns the task and the requests; what they say and what replies mean is decided in `classic`. What
the user must see (commits, listeners, partitions that change hands) goes through the gate, so it
happens inside a poll, and so a member rejoins only when its user polls.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from ottla.client.cluster import ConnectionLane, CoordinatorKind
from ottla.client.consumer.assignors.assignor import Shares
from ottla.client.consumer.group.classic_member import ClassicMember, GroupMetadata, MemberPhase
from ottla.client.consumer.group.error_reactions import ErrorReaction
from ottla.client.consumer.group.membership import Membership, MembershipParts
from ottla.client.errors import KafkaError, refusal
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol.encode import Fields

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

    def on_commit_error(self, after: ErrorReaction) -> None:
        if after is ErrorReaction.JOIN_ANEW:
            self._member.forget()
        self.rejoin("a commit was refused")

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
        """Inside a poll, before joining: commit, give up, and only then stop the heartbeats."""
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
        """Inside a poll, after syncing: take what is new, give up what is no longer ours."""
        member = self._member
        if member.lost:
            return  # too late: the heartbeats have found out before the user polled
        wanted, owned = frozenset(share), self._subscriptions.assigned
        gone = owned - wanted
        await self._rebalance.revoke(gone)
        await self._rebalance.assign(wanted - owned)
        if gone:
            self.rejoin("gave up partitions for others")

    async def _join(self) -> tuple[TopicPartition, ...] | None:
        """Join and sync, until it is in or the user has to hear why not (None)."""
        failures = 0
        while True:
            try:
                after, share = await self._join_once()
            except (KafkaError, OSError) as error:
                # Not the coordinator's answer to JoinGroup or SyncGroup, which `reactions` judges:
                # it was not found or not reached, or it refused the member for good.
                if isinstance(error, KafkaError) and not error.retriable:
                    self._member.refused(ErrorReaction.GIVE_UP)
                    self._gate.fail(error)
                    return None
                self._member.refused(ErrorReaction.TRY_LATER)
                self._forget_coordinator()
                after, share = ErrorReaction.TRY_LATER, ()
            if after is ErrorReaction.GO_ON:
                return share
            if after is ErrorReaction.FIND_COORDINATOR:
                self._forget_coordinator()
            if after in (ErrorReaction.TRY_LATER, ErrorReaction.FIND_COORDINATOR):
                failures += 1
                await asyncio.sleep(self._cluster.backoff.after(failures) / 1e3)
            if self._member.lost:
                return None  # what it had must be given up first, inside a poll

    async def _join_once(self) -> tuple[ErrorReaction, tuple[TopicPartition, ...]]:
        member, subscriptions = self._member, self._subscriptions
        if not subscriptions.topics <= self._watch.view.topics.keys():
            await self._watch.refresh()
        self._joined_revision = subscriptions.revision
        request = member.join(subscriptions.topics, subscriptions.assigned, self._reason)
        timeout_ms = member.terms.rebalance_timeout_ms + JOIN_GRACE_MS
        reply = await self._ask(JOIN_GROUP, request, timeout_ms, ConnectionLane.JOIN)
        after = member.on_joined(reply)
        if after is not ErrorReaction.GO_ON:
            if after is ErrorReaction.GIVE_UP:
                raise refusal(reply.error_code)
            return after, ()
        shares: Shares = {}
        if member.is_leader:
            shares = member.lead(await self._counts(member.topics_of_all))
        else:
            self._watch.forget_group()
        reply = await self._ask(SYNC_GROUP, member.sync(shares), timeout_ms, ConnectionLane.JOIN)
        after, share = member.on_synced(reply)
        if after is ErrorReaction.GIVE_UP:
            raise refusal(reply.error_code)
        return after, share

    async def _counts(self, topics: frozenset[str]) -> Mapping[str, int]:
        return await self._watch.partition_counts(topics)

    async def _heartbeat_loop(self) -> None:
        """Say that we are there, while we are."""
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
            ):  # it was not found or not reached; `_on_heartbeat_code` judges codes
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
                self.rejoin("the group no longer knew this member")
            case ErrorReaction.FIND_COORDINATOR:
                self._forget_coordinator()
            case ErrorReaction.GIVE_UP:
                self._gate.fail(refusal(code))
                self.rejoin(f"a heartbeat was refused: {code.name}")
            case _:
                pass

    async def _leave_after_poll_timeout(self) -> None:
        """The user has not polled for too long: let others have the partitions."""
        log.warning(
            "no poll for max.poll.interval.ms=%d: leaving the group; handle fewer records at a "
            "time (max.poll.records), or allow for more time",
            self._config.max_poll_interval_ms,
        )
        reason = "consumer poll timeout has expired"
        await self.leave(reason, self._config.request_timeout_ms)
        self.rejoin(reason)

    def _on_metadata(self) -> None:
        """After each look at the cluster: is the deal out of date?"""
        if self._member.phase is not MemberPhase.STABLE:
            return
        if self._watch.has_grown and self._member.is_leader:
            self.rejoin("topics have other partitions")
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
    ) -> Any:
        group_id = self._member.terms.group_id
        node = await self._cluster.coordinator(CoordinatorKind.GROUP, group_id)
        return await self._cluster.ask(node, key, fields, timeout_ms=timeout_ms, lane=lane)
