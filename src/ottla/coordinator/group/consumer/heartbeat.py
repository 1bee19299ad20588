"""ConsumerGroupHeartbeat: join, stay, take part in the next share-out.

Pure, of (group, request, topics, now). A heartbeat that changes nothing costs a few look-ups; any
other is worked out on a `PendingGroup`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, NamedTuple

from ottla.coordinator.group.consumer.group import ConsumerGroup
from ottla.coordinator.group.consumer.member import (
    JOINS,
    LEAVES_FOR_A_WHILE,
    Member,
    MemberProfile,
)
from ottla.coordinator.group.consumer.pending_group import PendingGroup
from ottla.coordinator.group.consumer.reconciliation import TargetAssignment, reconciled
from ottla.coordinator.group.consumer.records import StandingSet, record
from ottla.coordinator.group.consumer.timers import MemberTimeouts, await_revocation, forget, hear
from ottla.coordinator.group.consumer.topic_partitions import NO_PARTS, Parts
from ottla.coordinator.group.draft import Draft
from ottla.coordinator.group.settings import GroupSettings
from ottla.metadata.image import Image
from ottla.model.errors import ErrorCode, KafkaError

UNCHANGED: Final = -1


class HeartbeatRequest(NamedTuple):
    """None, or -1 for the timeout, where nothing changed since the last heartbeat."""

    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = UNCHANGED
    topics: tuple[str, ...] | None = None
    pattern: str | None = None
    """An empty one takes the pattern away."""
    assignor: str | None = None
    owned: Parts | None = None
    brings_id: bool = True
    """In this version of the API a member makes up its own id."""

    @property
    def is_full(self) -> bool:
        """Whether it says everything: as when it joins, or has not heard the last reply."""
        subscribes = self.topics is not None or self.pattern is not None
        says_all = self.rebalance_timeout_ms != UNCHANGED and self.owned is not None
        return self.epoch == JOINS or (says_all and subscribes)


class HeartbeatReply(NamedTuple):
    member_id: str
    epoch: int
    interval_ms: int = 0
    assignment: Parts | None = None
    """None: as before."""


class GroupLookup(NamedTuple):
    """Patterns resolved for one state of all topics."""

    topics: Mapping[str, frozenset[str]] = MappingProxyType({})
    of: int = -1


def validate(ask: HeartbeatRequest, limits: GroupSettings) -> None:
    """Raise the refusal of a request that makes no sense, whatever the group."""
    if not limits.consumer_protocol:
        raise KafkaError(ErrorCode.unsupported_version, "The consumer protocol is not enabled.")
    if fault := _fault(ask):
        raise KafkaError(ErrorCode.invalid_request, fault)
    if ask.assignor is not None and ask.assignor not in limits.assignors:
        raise KafkaError(
            ErrorCode.unsupported_assignor,
            f"ServerAssignor {ask.assignor} is not supported. Supported assignors: "
            f"{', '.join(limits.assignors)}.",
        )


def _fault(ask: HeartbeatRequest) -> str | None:
    joins = ask.epoch == JOINS
    lacks_id = not ask.member_id.strip() and (ask.brings_id or not joins)
    checks = {
        "MemberEpoch is invalid.": ask.epoch < LEAVES_FOR_A_WHILE,
        "MemberId can't be empty.": lacks_id,
        "InstanceId can't be empty.": ask.instance_id is not None and not ask.instance_id.strip(),
        "RackId can't be empty.": ask.rack_id is not None and not ask.rack_id.strip(),
        "RebalanceTimeoutMs must be provided in first request.": joins
        and ask.rebalance_timeout_ms == UNCHANGED,
        "RebalanceTimeoutMs must not be negative.": ask.rebalance_timeout_ms < UNCHANGED,
        "TopicPartitions must be empty when (re-)joining.": joins and ask.owned != NO_PARTS,
        "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
        "(re-)joining.": joins and ask.topics is None and ask.pattern is None,
        "InstanceId can't be null.": ask.epoch == LEAVES_FOR_A_WHILE and ask.instance_id is None,
    }
    return next((fault for fault, applies in checks.items() if applies), None)


def check_room(group: ConsumerGroup, member_id: str, instance_id: str | None, most: int) -> None:
    has_place = member_id in group.members or instance_id in group.static
    if len(group.members) >= most and not has_place:
        raise KafkaError(
            ErrorCode.group_max_size_reached,
            f"The consumer group has reached its maximum capacity of {most} members.",
        )


@dataclass(frozen=True, slots=True)
class HeartbeatDecision:
    """One heartbeat of a member that stays, or joins."""

    group: ConsumerGroup
    ask: HeartbeatRequest
    draft: Draft
    terms: MemberTimeouts
    found: GroupLookup

    def decide(self, new_id: Callable[[], str]) -> HeartbeatReply:
        """Refusals are raised; `new_id` is for a member that joins without one."""
        group, ask, limits = self.group, self.ask, self.terms.limits
        member_id = ask.member_id or new_id()
        check_room(group, member_id, ask.instance_id, limits.consumer_max_size)
        before = self._member(member_id)
        member = before if self._is_idle(before) else self._advance(before)
        hear(group, member, self.draft, limits)
        moved = member.standing.assigned != before.standing.assigned
        return HeartbeatReply(
            member.id,
            member.epoch,
            limits.pace(group.id).consumer_heartbeat_interval_ms,
            member.standing.assigned if ask.is_full or moved else None,
        )

    def _member(self, member_id: str) -> Member:
        """Who asks: one we know, one who takes a static member's place, or a new one."""
        group, ask = self.group, self.ask
        holder = group.static_member(ask.instance_id)
        if ask.epoch == JOINS and holder is not None and holder.id != member_id:
            if holder.classic is None and holder.epoch != LEAVES_FOR_A_WHILE:
                raise KafkaError(
                    ErrorCode.unreleased_instance_id,
                    f"Static member {member_id} with instance id {ask.instance_id} cannot join "
                    f"the group because the instance id is owned by {holder.id} member.",
                )
            standing = holder.standing._replace(epoch=JOINS, previous_epoch=JOINS)
            return Member(member_id, holder.profile, standing)
        if ask.epoch == JOINS:
            return group.members.get(member_id) or Member(member_id)
        member = group.known(member_id, ask.instance_id)
        check_epoch(member, ask.epoch, ask.owned)
        return member

    def _is_idle(self, member: Member) -> bool:
        """Whether the heartbeat says nothing new, and nothing is to be done for the member."""
        group = self.group
        return (
            not group.topics_changed
            and not self.found.topics
            and group.epoch == group.target_epoch
            and member.has_settled(group.epoch)
            and group.members.get(member.id) is member
            and profile_after(member.profile, self.ask) == member.profile
        )

    def _advance(self, before: Member) -> Member:
        group, ask = self.group, self.ask
        revision = PendingGroup(group, self.draft, self.terms.image)
        replaced = group.static_member(ask.instance_id)
        if replaced is not None and replaced.id != before.id:
            revision.rename(replaced, before)
        profile = profile_after(before.profile, ask)
        revision.put(replace(before, profile=profile))
        subscribes = (profile.topics, profile.pattern)
        changed = subscribes != (before.profile.topics, before.profile.pattern)
        changed |= revision.resolve(self.found.topics)
        if self.found.topics.keys() >= revision.after.patterns_in_use():
            group.patterns_of = self.found.of
        return settle(revision, before.id, ask.owned, self.terms.limits, changed=changed)


def settle(
    revision: PendingGroup,
    member_id: str,
    owned: Parts | None,
    limits: GroupSettings,
    *,
    changed: bool,
) -> Member:
    """After a member has spoken: the epoch, the target, and the member's way towards it."""
    group = revision.after
    if changed or revision.before.topics_changed:
        raised = revision.raise_epoch(always=changed)
        revision.before.topics_changed = raised  # until what was found stands in the log
    revision.retarget(limits)
    now = group.members[member_id]
    aim = TargetAssignment(group.target_epoch, group.target.get(member_id, NO_PARTS))
    standing = reconciled(now.standing, aim, owned, lambda part: group.is_free(part, member_id))
    member = replace(now, standing=standing)
    if member != now:
        revision.put(member)
        await_revocation(group, member, revision.draft)
    return member


def profile_after(now: MemberProfile, ask: HeartbeatRequest) -> MemberProfile:
    pattern = now.pattern if ask.pattern is None else ask.pattern or None
    return MemberProfile(
        now.instance_id if ask.instance_id is None else ask.instance_id,
        now.rack_id if ask.rack_id is None else ask.rack_id,
        ask.client_id,
        ask.client_host,
        now.topics if ask.topics is None else tuple(sorted(set(ask.topics))),
        pattern,
        now.rebalance_timeout_ms
        if ask.rebalance_timeout_ms == UNCHANGED
        else ask.rebalance_timeout_ms,
        now.assignor if ask.assignor is None else ask.assignor,
    )


def check_epoch(member: Member, epoch: int, owned: Parts | None) -> None:
    """A member may be one epoch behind if its last reply was lost, and it took nothing since."""
    if epoch == member.epoch:
        return
    missed_one = epoch == member.standing.previous_epoch
    if epoch > member.epoch or not missed_one or not _within(owned, member.standing.assigned):
        size = "greater" if epoch > member.epoch else "smaller"
        raise KafkaError(
            ErrorCode.fenced_member_epoch,
            f"The consumer group member has a {size} member epoch ({epoch}) than the one known by "
            f"the group coordinator ({member.epoch}). The member must abandon all its partitions "
            f"and rejoin.",
        )


def _within(owned: Parts | None, assigned: Parts) -> bool:
    return owned is not None and owned <= assigned


log = logging.getLogger(__name__)


def is_static_leave(group: ConsumerGroup, ask: HeartbeatRequest, draft: Draft) -> HeartbeatReply:
    """Its place is kept until its session ends, for the next to come with its name."""
    member = group.known(ask.member_id, ask.instance_id)
    away = member.standing._replace(epoch=LEAVES_FOR_A_WHILE, revoking=NO_PARTS)
    draft.records.append(record(StandingSet(group.id, member.id, away)))
    return HeartbeatReply(member.id, LEAVES_FOR_A_WHILE)


def remove_member(
    group: ConsumerGroup, members: Iterable[Member], draft: Draft, image: Image, why: str
) -> PendingGroup:
    """The group without these members."""
    revision = PendingGroup(group, draft, image)
    for member in members:
        log.info("group %r: %s %s", group.id, member.id, why)
        revision.remove(member.id)
        forget(group.id, member.id, draft)
    return revision


def rebalance_after_leave(revision: PendingGroup) -> None:
    """What those who have gone leave behind is shared out at the next heartbeat."""
    revision.resolve({})
    revision.raise_epoch(always=True)
