"""The consumer protocol in one partition's groups: every request and timer that concerns it.

Owns no state but a count of changes to topics: the groups are the shard's. The table of contents
of this folder.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

from ottla.coordinator.group.classic.group import ClassicGroup
from ottla.coordinator.group.classic.heartbeat import LeavingMember
from ottla.coordinator.group.classic.join import JoinRequest
from ottla.coordinator.group.classic.member import GroupPhase, JoinAnswer, JoinReply, SyncAnswer
from ottla.coordinator.group.classic.rebalance import prepare
from ottla.coordinator.group.classic.sync import SyncRequest
from ottla.coordinator.group.consumer import classic_members, heartbeat
from ottla.coordinator.group.consumer.classic_members import ClassicJoin
from ottla.coordinator.group.consumer.group import ConsumerGroup, Group
from ottla.coordinator.group.consumer.heartbeat import (
    GroupLookup,
    HeartbeatDecision,
    HeartbeatReply,
    HeartbeatRequest,
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
    upgraded,
)
from ottla.coordinator.group.consumer.records import EpochSet, What
from ottla.coordinator.group.consumer.timers import (
    REVOKE,
    WHY,
    MemberTimeouts,
    await_revocation,
    hear,
)
from ottla.coordinator.group.draft import Draft
from ottla.coordinator.group.records import TimerKey, tombstone
from ottla.coordinator.group.settings import GroupSettings
from ottla.coordinator.outcome import NOTHING, Outcome, SetTimer
from ottla.metadata.image import Image
from ottla.model.errors import ErrorCode, KafkaError

PATTERNS_AT_MOST_EVERY_MS: Final = 1_000
"""However often topics change, a group's patterns are not resolved more often than this."""

RETRY_MS: Final = 500
"""Until a member that could not be taken out is tried again."""


class ConsumerProtocol:
    def __init__(
        self,
        groups: dict[str, Group],
        limits: Callable[[], GroupSettings],
        image: Callable[[], Image],
        new_id: Callable[[], str],
    ) -> None:
        self._groups = groups
        self._limits = limits
        self._image = image
        self._new_id = new_id
        self._topic_changes = 0

    @property
    def terms(self) -> MemberTimeouts:
        return MemberTimeouts(self._limits(), self._image())

    # What the log says

    def replay(self, what: What) -> None:
        group = self._groups.get(what.group)
        says_nothing = what[-1] is None
        if not isinstance(group, ConsumerGroup):
            if says_nothing:
                return
            group = self._groups[what.group] = ConsumerGroup(what.group)
        group.apply(what)
        if says_nothing and isinstance(what, EpochSet):
            del self._groups[what.group]

    def loaded(self, group: ConsumerGroup, draft: Draft) -> None:
        for member in group.members.values():
            hear(group, member, draft, self._limits())
            await_revocation(group, member, draft)

    def topics_changed(self, names: Collection[str]) -> None:
        """These were created, deleted, or have other partitions now."""
        self._topic_changes += 1
        for group in self._groups.values():
            if isinstance(group, ConsumerGroup) and not group.topics_changed:
                group.topics_changed = not group.subscribed().isdisjoint(names)

    # ConsumerGroupHeartbeat

    def to_resolve(
        self, group_id: str, ask: HeartbeatRequest, now: int
    ) -> tuple[frozenset[str], int]:
        """Patterns to be resolved before a heartbeat is decided, and for which state of topics."""
        group = self._groups.get(group_id)
        asked = frozenset({ask.pattern} if ask.pattern else ())
        if not isinstance(group, ConsumerGroup):
            return asked, self._topic_changes
        wanted = asked - group.patterns.keys()
        if group.patterns and self._is_stale(group, now):
            group.patterns_asked_ms = now
            wanted |= group.patterns.keys()
        return wanted, self._topic_changes

    def _is_stale(self, group: ConsumerGroup, now: int) -> bool:
        age_ms = now - group.patterns_asked_ms
        if group.patterns_of != self._topic_changes:
            return age_ms >= PATTERNS_AT_MOST_EVERY_MS
        return age_ms >= self._limits().regex_refresh_interval_ms

    def heartbeat(
        self, group_id: str, ask: HeartbeatRequest, found: GroupLookup, now: int
    ) -> Outcome[HeartbeatReply]:
        terms, draft = self.terms, Draft(now)
        validate(ask, terms.limits)
        if ask.epoch == LEAVES_FOR_A_WHILE:
            reply = heartbeat.is_static_leave(self._existing(group_id), ask, draft)
        elif ask.epoch == LEAVES:
            group = self._existing(group_id)
            member = group.known(ask.member_id, ask.instance_id)
            self._remove(group, member, draft, "leaves")
            reply = HeartbeatReply(member.id, LEAVES)
        else:
            group = self._joined(group_id, ask, draft, terms)
            reply = HeartbeatDecision(group, ask, draft, terms, found).decide(self._new_id)
        return draft.outcome(reply)

    def _existing(self, group_id: str) -> ConsumerGroup:
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            why = "not found" if group is None else "is not a consumer group"
            raise KafkaError(ErrorCode.group_id_not_found, f"Group {group_id} {why}.")
        return group

    def _joined(
        self, group_id: str, ask: HeartbeatRequest, draft: Draft, terms: MemberTimeouts
    ) -> ConsumerGroup:
        """The group; where somebody joins, a new one, or one that was classic until now."""
        group = self._groups.get(group_id)
        if ask.epoch == JOINS and group is None:
            return ConsumerGroup(group_id)
        if ask.epoch == JOINS and isinstance(group, ClassicGroup):
            if group.phase is GroupPhase.EMPTY:
                draft.records.append(tombstone(group_id))
                return ConsumerGroup(group_id)
            if can_upgrade(group, terms.limits):
                return upgraded(group, draft, terms)
        return self._existing(group_id)

    # Classic members

    def join(
        self, group: ConsumerGroup, ask: JoinRequest, answer: JoinAnswer, now: int
    ) -> Outcome[None]:
        terms, draft = self.terms, Draft(now)
        replaced = None if ask.member_id else group.static_member(ask.instance_id)
        reply, revision = ClassicJoin(group, ask, draft, terms).decide(self._new_id)
        takes_over = replaced is not None and replaced.classic is None
        if revision is not None and takes_over and can_downgrade(revision.after, terms.limits):
            downgrade(revision.after, draft, terms.image)

        def then(code: ErrorCode, _: int) -> Outcome[None]:
            answer(reply if code is ErrorCode.none else JoinReply(code, ask.member_id))
            return NOTHING

        draft.then = then
        return draft.outcome(None)

    def sync(
        self, group: ConsumerGroup, ask: SyncRequest, answer: SyncAnswer, now: int
    ) -> Outcome[None]:
        draft = Draft(now)
        answer(classic_members.sync(group, ask, draft, self.terms))
        return draft.outcome(None)

    def classic_heartbeat(
        self, group: ConsumerGroup, who: LeavingMember, generation: int, now: int
    ) -> Outcome[ErrorCode]:
        draft = Draft(now)
        code = classic_members.heartbeat(group, who, generation, draft, self.terms)
        return draft.outcome(code)

    def leave(
        self, group: ConsumerGroup, leavers: Sequence[LeavingMember], now: int
    ) -> Outcome[list[ErrorCode]]:
        draft = Draft(now)
        return draft.outcome(classic_members.leave(group, leavers, draft, self.terms))

    # Members that go

    def ring(self, group: ConsumerGroup, key: TimerKey, draft: Draft) -> None:
        """A timer of a member ran out."""
        member = group.members.get(key.member)
        if member is None or key.kind not in WHY:
            return
        if key.kind == REVOKE and member.standing.state is not MemberState.UNREVOKED:
            return  # it was set by a change that could not be written
        self._remove(group, member, draft, WHY[key.kind])
        after = draft.then

        def then(code: ErrorCode, now: int) -> Outcome[None]:
            """One that is dead will not set its timer again: if nothing was written, we do."""
            outcome = NOTHING if after is None else after(code, now)
            if code is ErrorCode.none:
                return outcome
            return outcome._replace(timers=(*outcome.timers, SetTimer(key, RETRY_MS)))

        draft.then = then

    def _remove(self, group: ConsumerGroup, member: Member, draft: Draft, why: str) -> None:
        limits, image = self.terms
        revision = heartbeat.remove_member(group, [member], draft, image, why)
        if member.classic is None and can_downgrade(revision.after, limits):
            downgrade(revision.after, draft, image)
            draft.then = lambda _, now: self._rebalance(group.id, now)
        else:
            heartbeat.rebalance_after_leave(revision)

    def _rebalance(self, group_id: str, now: int) -> Outcome[None]:
        """Those left share out among themselves what the last one of the others held."""
        group, draft = self._groups.get(group_id), Draft(now)
        if isinstance(group, ClassicGroup) and group.can_rebalance:
            prepare(group, draft, self._limits(), "it was downgraded to the classic protocol")
        return draft.outcome(None)
