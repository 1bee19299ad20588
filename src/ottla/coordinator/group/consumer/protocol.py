"""Every request and timer of the consumer protocol, for the groups of one partition.

Owns the number of topic changes; the shard owns the groups.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple

from ottla.coordinator.group.classic.group import ClassicGroup
from ottla.coordinator.group.classic.heartbeat import MemberIdentity
from ottla.coordinator.group.classic.join import JoinRequest
from ottla.coordinator.group.classic.member import GroupPhase, JoinAnswer, JoinReply, SyncAnswer
from ottla.coordinator.group.classic.rebalance import prepare
from ottla.coordinator.group.classic.sync import SyncRequest
from ottla.coordinator.group.consumer import classic_members, heartbeat
from ottla.coordinator.group.consumer.assignors import Assign, AssignmentInput
from ottla.coordinator.group.consumer.classic_members import ClassicJoin
from ottla.coordinator.group.consumer.group import ConsumerGroup, Group
from ottla.coordinator.group.consumer.heartbeat import (
    HeartbeatDecision,
    HeartbeatReply,
    HeartbeatRequest,
    ResolvedPatterns,
    validate,
)
from ottla.coordinator.group.consumer.member import (
    JOINS,
    LEAVES,
    LEAVES_FOR_A_WHILE,
    Member,
    MemberState,
)
from ottla.coordinator.group.consumer.migration import (
    can_downgrade,
    can_upgrade,
    downgrade,
    end_rebalance,
    upgrade_group,
)
from ottla.coordinator.group.consumer.records import ConsumerGroupChange, EpochSet
from ottla.coordinator.group.consumer.timers import (
    REVOKE,
    WHY,
    GroupContext,
    await_revocation,
    restart_session,
)
from ottla.coordinator.group.draft import Draft
from ottla.coordinator.group.memory import GroupMemory
from ottla.coordinator.group.records import TimerKey, tombstone
from ottla.coordinator.group.settings import GroupSettings
from ottla.coordinator.outcome import NOTHING, Answer, Outcome, SetTimer
from ottla.metadata.image import Image
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError

PATTERNS_AT_MOST_EVERY_MS: Final = 1_000
"""The shortest interval between two resolutions of a group's patterns."""

RETRY_MS: Final = 500
"""The delay before a failed removal of a member is retried."""


LARGE_TOPICS: Final = 1_000
"""A heartbeat that concerns more topics is decided outside of the event loop."""
PARTITIONS_OF_TOPIC: Final = 10
"""So many partitions with an owner count as a topic."""


class GroupChanged(Exception):
    """The group is no longer as it was copied: decide again."""


class DetachedGroup(NamedTuple):
    """A copy of a group, or of its absence, to decide a heartbeat on in another thread."""

    group_id: str
    original: ConsumerGroup | None
    copy: ConsumerGroup | None
    seen: tuple[int, bool]
    """How many records had changed the group, and whether its topics had changed."""
    protocol: ConsumerProtocol
    """It has the copy only."""

    def heartbeat(
        self, request: HeartbeatRequest, lookup: ResolvedPatterns, now: WallMs, assign: Assign
    ) -> Outcome[HeartbeatReply]:
        return self.protocol.heartbeat(self.group_id, request, lookup, now, assign=assign)

    def adopt(
        self, group: Group | None, outcome: Outcome[HeartbeatReply]
    ) -> Outcome[HeartbeatReply]:
        """What was decided on the copy; GroupChanged if the group, as it is now, has changed."""
        assert outcome.then is None, "it would go on with the copy"
        if group is not self.original:
            raise GroupChanged
        if self.original is not None and self.copy is not None:
            if (self.original.changes, self.original.topics_changed) != self.seen:
                raise GroupChanged
            self.original.topics_changed = self.copy.topics_changed
            self.original.patterns_of = self.copy.patterns_of
        return outcome


def is_large(group: Group | None, request: HeartbeatRequest, lookup: ResolvedPatterns) -> bool:
    """Whether to decide it on a copy: it changes something, and concerns many topics."""
    if request.epoch < JOINS:
        return False
    topics = len(request.topics or ())
    if isinstance(group, ConsumerGroup) and not _has_settled(group, request, lookup):
        owned = len(group.owners) // PARTITIONS_OF_TOPIC
        topics = max(topics, len(group.topics), owned)
    return max([topics, *map(len, lookup.topics.values())]) > LARGE_TOPICS


class ConsumerProtocol:
    def __init__(
        self,
        groups: dict[str, Group],
        limits: Callable[[], GroupSettings],
        image: Callable[[], Image],
        new_id: Callable[[], str],
        memory: GroupMemory,
    ) -> None:
        self._groups = groups
        self._memory = memory
        self._limits = limits
        self._image = image
        self._new_id = new_id
        self._topic_changes = 0

    @property
    def context(self) -> GroupContext:
        return GroupContext(self._limits(), self._image())

    # Replay and loading

    def replay(self, change: ConsumerGroupChange) -> None:
        group = self._groups.get(change.group)
        says_nothing = change[-1] is None
        if not isinstance(group, ConsumerGroup):
            if says_nothing:
                return
            group = self._groups[change.group] = ConsumerGroup(change.group)
        group.apply(change)
        if says_nothing and isinstance(change, EpochSet):
            del self._groups[change.group]

    def on_loaded(self, group: ConsumerGroup, draft: Draft) -> None:
        for member in group.members.values():
            restart_session(group, member, draft, self._limits())
            await_revocation(group, member, draft)

    def topics_changed(self, names: Collection[str]) -> None:
        """These were created, deleted, or have other partitions now."""
        self._topic_changes += 1
        for group in self._groups.values():
            if isinstance(group, ConsumerGroup) and not group.topics_changed:
                group.topics_changed = not group.subscribed().isdisjoint(names)

    # ConsumerGroupHeartbeat

    def to_resolve(
        self, group_id: str, request: HeartbeatRequest, now: WallMs
    ) -> tuple[frozenset[str], int]:
        """Patterns to resolve before the heartbeat is decided, and the number of topic changes."""
        group = self._groups.get(group_id)
        changed = frozenset({request.pattern} if request.pattern else ())
        if not isinstance(group, ConsumerGroup):
            return changed, self._topic_changes
        patterns = changed - group.patterns.keys()
        if group.patterns and self._is_stale(group, now):
            group.patterns_asked_ms = now
            patterns |= group.patterns.keys()
        return patterns, self._topic_changes

    def _is_stale(self, group: ConsumerGroup, now: WallMs) -> bool:
        age_ms = now - group.patterns_asked_ms
        if group.patterns_of != self._topic_changes:
            return age_ms >= PATTERNS_AT_MOST_EVERY_MS
        return age_ms >= self._limits().regex_refresh_interval_ms

    def heartbeat(
        self,
        group_id: str,
        request: HeartbeatRequest,
        lookup: ResolvedPatterns,
        now: WallMs,
        *,
        assign: Assign = AssignmentInput.assign,
    ) -> Outcome[HeartbeatReply]:
        """What `assign` raises leaves the group as it is."""
        context, draft = self.context, Draft(now)
        validate(request, context.limits)
        if request.epoch == LEAVES_FOR_A_WHILE:
            reply = heartbeat.leave_temporarily(self._group_left(group_id), request, draft)
        elif request.epoch == LEAVES:
            group = self._group_left(group_id)
            member = group.require_member(request.member_id, request.instance_id)
            self._remove(group, member, draft, "left the group")
            reply = HeartbeatReply(member.id, LEAVES)
        else:
            before = self._groups.get(group_id)
            group = self._join(group_id, request, draft, context)
            if request.epoch == JOINS or request.subscribes:
                grows_by = heartbeat.grows_by(group, request)
                self._memory.check(group_id, grows_by, context.limits.memory_bytes, now)
            decision = HeartbeatDecision(group, request, draft, context, lookup, assign)
            reply = decision.decide(self._new_id)
            if isinstance(before, ClassicGroup):
                end_rebalance(before, draft)
        return draft.outcome(reply)

    def detached_copy(self, group_id: str) -> DetachedGroup | None:
        """A copy of the group as it is now; None if it is of the classic protocol."""
        group = self._groups.get(group_id)
        if group is not None and not isinstance(group, ConsumerGroup):
            return None
        copy = None if group is None else group.snapshot()
        (limits, image), groups = self.context, dict[str, Group]()
        if copy is not None:
            groups[group_id] = copy
        decides = ConsumerProtocol(
            groups, lambda: limits, lambda: image, self._new_id, self._memory
        )
        seen = (0, False) if group is None else (group.changes, group.topics_changed)
        return DetachedGroup(group_id, group, copy, seen, decides)

    def _group_left(self, group_id: str) -> ConsumerGroup:
        return self._existing(group_id, f"Group {group_id} not found.")

    def _existing(self, group_id: str, absent: str | None = None) -> ConsumerGroup:
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            message = f"Group {group_id} is not a consumer group."
            if group is None:
                message = absent or f"Consumer group {group_id} not found."
            raise KafkaError(ErrorCode.group_id_not_found, message)
        return group

    def _join(
        self, group_id: str, request: HeartbeatRequest, draft: Draft, context: GroupContext
    ) -> ConsumerGroup:
        """The group; if the member joins, a new group, or a classic one upgraded now."""
        group = self._groups.get(group_id)
        if request.epoch == JOINS and group is None:
            return ConsumerGroup(group_id)
        if request.epoch == JOINS and isinstance(group, ClassicGroup):
            if group.phase is GroupPhase.EMPTY:
                draft.records.append(tombstone(group_id))
                return ConsumerGroup(group_id)
            if can_upgrade(group, context.limits):
                return upgrade_group(group, draft, context)
        return self._existing(group_id)

    # Classic members

    def join(
        self, group: ConsumerGroup, request: JoinRequest, answer: JoinAnswer, now: WallMs
    ) -> Outcome[None]:
        context, draft = self.context, Draft(now)
        grows_by = classic_members.grows_by(group, request)
        self._memory.check(group.id, grows_by, context.limits.memory_bytes, now)
        replaced = None if request.member_id else group.static_member(request.instance_id)
        reply, revision = ClassicJoin(group, request, draft, context).decide(self._new_id)
        takes_over = replaced is not None and replaced.classic is None
        if revision is not None and takes_over and can_downgrade(revision.after, context.limits):
            downgrade(revision.after, draft, context.image)

        def then(code: ErrorCode, _: int) -> Outcome[None]:
            failed = JoinReply(code, request.member_id)
            return Outcome(
                None, effects=(Answer(answer, reply if code is ErrorCode.none else failed),)
            )

        draft.then = then
        return draft.outcome(None)

    def sync(
        self, group: ConsumerGroup, request: SyncRequest, answer: SyncAnswer, now: WallMs
    ) -> Outcome[None]:
        draft = Draft(now)
        draft.answer(answer, classic_members.sync(group, request, draft, self.context))
        return draft.outcome(None)

    def classic_heartbeat(
        self, group: ConsumerGroup, identity: MemberIdentity, generation: int, now: WallMs
    ) -> Outcome[ErrorCode]:
        draft = Draft(now)
        code = classic_members.heartbeat(group, identity, generation, draft, self.context)
        return draft.outcome(code)

    def leave(
        self, group: ConsumerGroup, leavers: Sequence[MemberIdentity], now: WallMs
    ) -> Outcome[list[ErrorCode]]:
        draft = Draft(now)
        return draft.outcome(classic_members.leave(group, leavers, draft, self.context))

    # Removal of members

    def on_timer(self, group: ConsumerGroup, key: TimerKey, draft: Draft) -> None:
        """A timer of a member expired."""
        member = group.members.get(key.member)
        if member is None or key.kind not in WHY:
            return
        if key.kind == REVOKE and member.standing.state is not MemberState.UNREVOKED:
            return  # the change that set the timer was not written
        self._remove(group, member, draft, WHY[key.kind])
        after = draft.then

        def then(code: ErrorCode, now: WallMs) -> Outcome[None]:
            """A dead member does not restart its timer: retry here if nothing was written."""
            outcome = NOTHING if after is None else after(code, now)
            if code is ErrorCode.none:
                return outcome
            return outcome._replace(timers=(*outcome.timers, SetTimer(key, RETRY_MS)))

        draft.then = then

    def _remove(self, group: ConsumerGroup, member: Member, draft: Draft, why: str) -> None:
        limits, image = self.context
        revision = heartbeat.remove_member(group, [member], draft, image, why)
        if member.classic is None and can_downgrade(revision.after, limits):
            downgrade(revision.after, draft, image)
            draft.then = lambda _, now: self._rebalance(group.id, now)
        else:
            heartbeat.rebalance_after_leave(revision)

    def _rebalance(self, group_id: str, now: WallMs) -> Outcome[None]:
        """Rebalance the downgraded group: the remaining members take over the partitions."""
        group, draft = self._groups.get(group_id), Draft(now)
        if isinstance(group, ClassicGroup) and group.can_rebalance:
            prepare(group, draft, self._limits(), "downgraded to the classic protocol")
        return draft.outcome(None)


def _has_settled(group: ConsumerGroup, request: HeartbeatRequest, lookup: ResolvedPatterns) -> bool:
    """Whether a heartbeat of this member changes nothing, as most do not."""
    member = group.members.get(request.member_id)
    return (
        member is not None
        and member.has_settled(group.epoch)
        and group.epoch == group.target_epoch
        and not group.topics_changed
        and not request.subscribes
        and not lookup.topics
    )
