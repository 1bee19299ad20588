"""The asynchronous interface of the consumer protocol for API handlers.

Owns the turns of heartbeats that concern many topics or need a large assignment. Regular
expressions are resolved in the thread pool, and these heartbeats decided there on a copy of the
group: both are bounded, but too slow for the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Final, NamedTuple, TypeAlias
from weakref import WeakValueDictionary

from ottla.coordinator.deferred_reply import Commit, wait_for_commit
from ottla.coordinator.group.consumer.assignors import (
    Assign,
    AssignmentRequired,
    PreparedAssignment,
)
from ottla.coordinator.group.consumer.group import ConsumerGroup
from ottla.coordinator.group.consumer.heartbeat import (
    HeartbeatReply,
    HeartbeatRequest,
    ResolvedPatterns,
)
from ottla.coordinator.group.consumer.member import Member
from ottla.coordinator.group.consumer.pending_group import select_assignor
from ottla.coordinator.group.consumer.protocol import DetachedGroup, GroupChanged, is_large
from ottla.coordinator.group.consumer.topic_partitions import NO_PARTS, Parts
from ottla.coordinator.group.settings import GroupSettings
from ottla.coordinator.group.shard import GroupShard
from ottla.coordinator.outcome import Outcome
from ottla.coordinator.regular_expressions import compiled
from ottla.coordinator.runtime import Runtime
from ottla.delay.slices import in_slices
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.replica.environment import ReplicaEnvironment

CONSUMER_TYPE: Final = "consumer"
ATTEMPTS: Final = 3
"""How often a heartbeat is decided in the thread pool before the loop does it."""
Decided: TypeAlias = tuple[HeartbeatReply, Commit | None]


class MemberView(NamedTuple):
    member: Member
    target: Parts


class GroupView(NamedTuple):
    group_id: str
    state: str
    epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[MemberView, ...]


def view(group: ConsumerGroup, limits: GroupSettings) -> GroupView:
    return GroupView(
        group.id,
        group.state.value,
        group.epoch,
        group.target_epoch,
        select_assignor(group.preferred_assignor(), limits),
        tuple(
            MemberView(member, group.target.get(member.id, NO_PARTS))
            for member in group.members.values()
        ),
    )


def resolve(patterns: Iterable[str], names: Iterable[str]) -> dict[str, frozenset[str]]:
    """The names that each pattern matches in full; INVALID_REGULAR_EXPRESSION if one is invalid."""
    names = list(names)
    return {pattern: _matching(pattern, names) for pattern in patterns}


def _matching(pattern: str, names: list[str]) -> frozenset[str]:
    try:
        expression = compiled(pattern)
    except KafkaError as refusal:
        raise KafkaError(refusal.code, f"SubscribedTopicRegex {refusal.message}") from None
    return frozenset(name for name in names if expression.fullmatch(name))


class ConsumerGroups:
    def __init__(self, runtime: Runtime[GroupShard], environment: ReplicaEnvironment) -> None:
        self._runtime = runtime
        self._environment = environment
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """By group; an entry is gone when no heartbeat uses it."""

    async def heartbeat(
        self, group_id: str, request: HeartbeatRequest, sees: Callable[[str], bool] | None = None
    ) -> HeartbeatReply:
        """`sees` tells which topics the member may describe; None for all.

        A pattern has the same topics for all members of a group: those visible to the member whose
        heartbeat resolved it last, as in Kafka.
        """
        if not group_id:
            raise KafkaError(ErrorCode.invalid_group_id)
        shard = self._runtime.owned_shard(group_id).shard
        consumer = shard.consumer
        patterns, of = consumer.to_resolve(group_id, request, self._environment.clock.wall_ms())
        lookup = ResolvedPatterns()
        if patterns:
            names = list(consumer.context.image.topics)
            if sees is not None:
                names = [name async for name in in_slices(names) if sees(name)]
            lookup = ResolvedPatterns(
                await self._environment.thread_pool.run(resolve, patterns, names), of
            )
        if is_large(shard.groups.get(group_id), request, lookup):
            reply, commit = await self._decide_on_copy(group_id, request, lookup)
        else:
            try:
                reply, commit = self._decide(
                    group_id, request, lookup, PreparedAssignment().look_up
                )
            except AssignmentRequired:
                reply, commit = await self._decide_on_copy(group_id, request, lookup)
        await wait_for_commit(commit)
        return reply

    def _decide(
        self, group_id: str, request: HeartbeatRequest, lookup: ResolvedPatterns, assign: Assign
    ) -> Decided:
        return self._runtime.submit(
            group_id,
            lambda shard, now: shard.consumer.heartbeat(
                group_id, request, lookup, now, assign=assign
            ),
        )

    async def _decide_on_copy(
        self, group_id: str, request: HeartbeatRequest, lookup: ResolvedPatterns
    ) -> Decided:
        """Decide on a copy of the group in the thread pool, with the assignment that it needs.

        If the group changes meanwhile, the heartbeat is decided again; for a group that never stays
        the same it is decided at once, with the last assignment if that still applies. Heartbeats
        of one group take turns: all but one of those decided at the same time would be of no use.
        """
        turn = self._turns.setdefault(group_id, asyncio.Lock())
        async with turn:
            prepared, pool = PreparedAssignment(), self._environment.thread_pool
            for _ in range(ATTEMPTS):
                group = self._runtime.owned_shard(group_id).shard.consumer.detached_copy(group_id)
                try:
                    if group is None:  # an upgrade concerns the members that wait here, too
                        return self._decide(group_id, request, lookup, prepared.look_up)
                    now = self._environment.clock.wall_ms()
                    outcome = await pool.run(
                        group.heartbeat, request, lookup, now, prepared.compute
                    )
                    adopt = partial(_adopt, detached=group, outcome=outcome)
                    return self._runtime.submit(group_id, adopt)
                except AssignmentRequired as required:
                    await pool.run(prepared.compute, required.input)
                except GroupChanged:
                    continue
            return self._decide(group_id, request, lookup, prepared.compute)

    async def describe(self, group_id: str) -> GroupView:
        if not group_id:
            raise KafkaError(ErrorCode.invalid_group_id)
        return await self._runtime.read(group_id, lambda shard: _view(shard, group_id))

    def topics_changed(self, names: Collection[str]) -> None:
        """These topics were created or deleted, or have more partitions."""
        for owned in self._runtime.active():
            owned.shard.consumer.topics_changed(names)


def _adopt(
    shard: GroupShard, _: WallMs, *, detached: DetachedGroup, outcome: Outcome[HeartbeatReply]
) -> Outcome[HeartbeatReply]:
    return detached.adopt(shard.groups.get(detached.group_id), outcome)


def _view(shard: GroupShard, group_id: str) -> GroupView:
    group = shard.groups.get(group_id)
    if not isinstance(group, ConsumerGroup):
        why = "not found" if group is None else "is not a consumer group"
        raise KafkaError(ErrorCode.group_id_not_found, f"Group {group_id} {why}.")
    return view(group, shard.consumer.context.limits)
