"""Being a member of a consumer-protocol group, where the broker assigns partitions (KIP-848).

Owns the heartbeats and the reconciliation; the contents and meaning of heartbeats are decided in
`consumer_member`. Assignments change inside a poll, through the poll gate; heartbeats go on
meanwhile, and the next one lists what this member owns by then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Final
from uuid import UUID

from ottla.client.cluster import ConnectionLane, CoordinatorKind
from ottla.client.consumer.group.classic_member import GroupMetadata
from ottla.client.consumer.group.consumer_member import ConsumerProtocolMember, by_name, by_topic_id
from ottla.client.consumer.group.error_reactions import ErrorReaction
from ottla.client.consumer.group.membership import Membership, MembershipParts
from ottla.client.errors import KafkaError, refusal
from ottla.protocol.encode import Fields
from ottla.protocol.schema import KioMessage

log = logging.getLogger(__name__)

CONSUMER_GROUP_HEARTBEAT: Final = 68


class ConsumerProtocolLoop(Membership[ConsumerProtocolMember]):
    """One membership of a consumer-protocol group."""

    def __init__(self, member: ConsumerProtocolMember, parts: MembershipParts) -> None:
        super().__init__(member, parts)
        self._heartbeat_due = asyncio.Event()
        self._reconcile_due = asyncio.Event()
        parts.watch.add_listener(self.on_subscription_changed)

    def commit_metadata(self) -> GroupMetadata | None:
        return self._member.metadata if self._member.is_member else None

    def on_commit_error(self, reaction: ErrorReaction) -> None:
        if reaction is ErrorReaction.JOIN_ANEW:
            self._member.forget()
            self._reconcile_due.set()
        self._heartbeat_due.set()

    def on_subscription_changed(self) -> None:
        self._heartbeat_due.set()
        self._reconcile_due.set()

    def rejoin(self, reason: str) -> None:
        log.warning(
            "group %s: enforce_rebalance has no effect with group.protocol=consumer (reason: %s)",
            self._member.terms.group_id,
            reason,
        )

    async def run(self) -> None:
        await self._gate.call(self._wait_for_poll)  # a member joins when its user first polls
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._heartbeat_loop())
            tasks.create_task(self._reconcile())

    async def leave(self, reason: str, timeout_ms: int) -> None:
        fields = self._member.leave()
        if fields is None:
            return
        with suppress(KafkaError, OSError):
            await self._ask(fields, timeout_ms)

    async def _heartbeat_loop(self) -> None:
        member, failures = self._member, 0
        while True:
            self._heartbeat_due.clear()
            if member.is_member and self._poll_interval.is_too_slow:
                await self._leave_after_poll_timeout()
                await self._gate.call(self._wait_for_poll)  # it joins again when its user polls
            failures = 0 if await self._heartbeat_once() else failures + 1
            pause_ms = self._cluster.backoff.after(failures) if failures else member.interval_ms
            if member.is_member:
                pause_ms = max(1, min(pause_ms, self._poll_interval.left_ms))
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_ms / 1e3):
                    if failures:  # changes do not help: wait for the backoff
                        await asyncio.Event().wait()
                    await self._heartbeat_due.wait()

    async def _heartbeat_once(self) -> bool:
        """Send one heartbeat; whether the next is due after the usual interval."""
        member, subscriptions = self._member, self._subscriptions
        ids = {name: topic.id for name, topic in self._watch.view.topics.items()}
        owned = by_topic_id((tp for tp in subscriptions.assigned if tp.topic in ids), ids)
        fields = member.heartbeat(subscriptions.topics, {} if member.lost else owned)
        try:
            reply = await self._ask(fields, self._config.request_timeout_ms)
        except (KafkaError, OSError) as error:
            # The coordinator was not found or not reached; its error codes are handled below.
            member.on_no_response()
            self._forget_coordinator()
            if isinstance(error, KafkaError) and not error.retriable:
                self._gate.fail(error)
                await self._gate.call(self._wait_for_poll)  # until the user has polled the error
            return False
        match member.on_heartbeat(reply):
            case ErrorReaction.GO_ON:
                self._reconcile_due.set()
                return True
            case ErrorReaction.FIND_COORDINATOR:
                self._forget_coordinator()
            case ErrorReaction.GIVE_UP:
                self._gate.fail(refusal(reply.error_code, reply.error_message))
                await self._gate.call(self._wait_for_poll)
            case _:
                pass
        self._reconcile_due.set()
        return False

    async def _reconcile(self) -> None:
        """Inside polls, bring this member's assignment to its target."""
        while True:
            await self._reconcile_due.wait()
            self._reconcile_due.clear()
            if self._member.lost:
                await self._gate.call(self._lose)
            elif self._is_behind():
                if by_name(self._target, self._names)[1]:
                    with suppress(OSError):
                        await self._cluster.refresh(None)  # topics known by their ids only
                await self._gate.call(self._apply_target)
                self._heartbeat_due.set()

    async def _lose(self) -> None:
        await self._rebalance.lose(self._subscriptions.assigned)
        self._member.lost = False
        self._heartbeat_due.set()

    async def _apply_target(self) -> None:
        if self._member.lost or self._member.target is None:
            return
        target, _ = by_name(self._target, self._names)
        owned = self._subscriptions.assigned
        await self._rebalance.revoke(owned - target)
        await self._rebalance.assign(target - owned)

    def _is_behind(self) -> bool:
        if self._member.target is None:
            return False
        target, unknown = by_name(self._target, self._names)
        return bool(unknown) or target != self._subscriptions.assigned

    @property
    def _target(self) -> Mapping[UUID, tuple[int, ...]]:
        return self._member.target or {}

    @property
    def _names(self) -> dict[UUID, str]:
        return {topic.id: name for name, topic in self._watch.view.topics.items()}

    async def _wait_for_poll(self) -> None:
        """Only wait for a poll."""

    async def _leave_after_poll_timeout(self) -> None:
        log.warning(
            "leaving group %s: no poll() for max.poll.interval.ms=%d; reduce max.poll.records or "
            "increase max.poll.interval.ms",
            self._member.terms.group_id,
            self._config.max_poll_interval_ms,
        )
        await self.leave("poll timeout", self._config.request_timeout_ms)
        self._reconcile_due.set()

    def _forget_coordinator(self) -> None:
        group_id = self._member.terms.group_id
        self._cluster.forget_coordinator(CoordinatorKind.GROUP, group_id)

    async def _ask(self, fields: Fields, timeout_ms: int) -> KioMessage:
        group_id = self._member.terms.group_id
        node = await self._cluster.coordinator(CoordinatorKind.GROUP, group_id)
        return await self._cluster.ask(
            node,
            CONSUMER_GROUP_HEARTBEAT,
            fields,
            timeout_ms=timeout_ms,
            lane=ConnectionLane.COORDINATION,
        )
