"""ConsumerGroupHeartbeat: join, stay, take part in the next assignment.

Pure, of (group, request, topics, now). A heartbeat that changes nothing costs a few look-ups; any
other is decided on a `PendingGroup`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from heapq import merge
from types import MappingProxyType
from typing import Final, NamedTuple

from ottla.coordinator.group.consumer.assignors import Assign, AssignmentInput
from ottla.coordinator.group.consumer.group import ConsumerGroup
from ottla.coordinator.group.consumer.member import (
    JOINS,
    LEAVES_FOR_A_WHILE,
    Member,
    MemberProfile,
    profile_bytes,
)
from ottla.coordinator.group.consumer.pending_group import PendingGroup
from ottla.coordinator.group.consumer.reconciliation import TargetAssignment, reconcile
from ottla.coordinator.group.consumer.records import StandingSet, record
from ottla.coordinator.group.consumer.timers import (
    GroupContext,
    await_revocation,
    forget,
    restart_session,
)
from ottla.coordinator.group.consumer.topic_partitions import NO_PARTS, OwnedParts, Parts
from ottla.coordinator.group.draft import Draft
from ottla.coordinator.group.settings import GroupSettings
from ottla.delay.slices import sliced
from ottla.metadata.image import Image
from ottla.model.errors import ErrorCode, KafkaError

UNCHANGED: Final = -1
SORTED_AT_ONCE: Final = 10_000


class HeartbeatRequest(NamedTuple):
    """Fields are None (the timeout: -1) if unchanged since the last heartbeat."""

    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = UNCHANGED
    topics: tuple[str, ...] | None = None
    pattern: str | None = None
    """An empty one removes the pattern."""
    assignor: str | None = None
    owned: OwnedParts | None = None
    brings_id: bool = True
    """In this version of the API the member chooses its id."""

    @property
    def subscribes(self) -> bool:
        return self.topics is not None or self.pattern is not None

    @property
    def is_full(self) -> bool:
        """Whether all fields are set: the member joins, or did not get the last reply."""
        says_all = self.rebalance_timeout_ms != UNCHANGED and self.owned is not None
        return self.epoch == JOINS or (says_all and self.subscribes)


class HeartbeatReply(NamedTuple):
    member_id: str
    epoch: int
    interval_ms: int = 0
    assignment: Parts | None = None
    """None: unchanged."""


class ResolvedPatterns(NamedTuple):
    """The topics of each pattern, as of a number of topic changes."""

    topics: Mapping[str, frozenset[str]] = MappingProxyType({})
    of: int = -1


def validate(request: HeartbeatRequest, limits: GroupSettings) -> None:
    """KafkaError if the request is invalid for any group."""
    if not limits.consumer_protocol:
        raise KafkaError(ErrorCode.unsupported_version, "The consumer protocol is not enabled.")
    if fault := _fault(request):
        raise KafkaError(ErrorCode.invalid_request, fault)
    if request.assignor is not None and request.assignor not in limits.assignors:
        raise KafkaError(
            ErrorCode.unsupported_assignor,
            f"ServerAssignor {request.assignor} is not supported. Supported assignors: "
            f"{', '.join(limits.assignors)}.",
        )


def _fault(request: HeartbeatRequest) -> str | None:
    joins = request.epoch == JOINS
    lacks_id = not request.member_id.strip() and (request.brings_id or not joins)
    checks = {
        "MemberEpoch is invalid.": request.epoch < LEAVES_FOR_A_WHILE,
        "MemberId can't be empty.": lacks_id,
        "InstanceId can't be empty.": request.instance_id is not None
        and not request.instance_id.strip(),
        "RackId can't be empty.": request.rack_id is not None and not request.rack_id.strip(),
        "RebalanceTimeoutMs must be provided in first request.": joins
        and request.rebalance_timeout_ms == UNCHANGED,
        "RebalanceTimeoutMs must not be negative.": request.rebalance_timeout_ms < UNCHANGED,
        "TopicPartitions must be empty when (re-)joining.": joins and request.owned != NO_PARTS,
        "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
        "(re-)joining.": joins and request.topics is None and request.pattern is None,
        "InstanceId can't be null.": request.epoch == LEAVES_FOR_A_WHILE
        and request.instance_id is None,
    }
    return next((fault for fault, applies in checks.items() if applies), None)


def check_room(group: ConsumerGroup, member_id: str, instance_id: str | None, most: int) -> None:
    has_place = member_id in group.members or instance_id in group.static
    if len(group.members) >= most and not has_place:
        raise KafkaError(
            ErrorCode.group_max_size_reached,
            f"The consumer group has reached its maximum capacity of {most} members.",
        )


def grows_by(group: ConsumerGroup, request: HeartbeatRequest) -> int:
    """By how many bytes of memory the sender's subscription makes the group larger."""
    member = group.members.get(request.member_id) or group.static_member(request.instance_id)
    before = MemberProfile() if member is None else member.profile
    topics = before.topics if request.topics is None else request.topics
    pattern = before.pattern if request.pattern is None else request.pattern
    after = replace(before, topics=topics, pattern=pattern)
    return profile_bytes(after) - (0 if member is None else profile_bytes(before))


@dataclass(frozen=True, slots=True)
class HeartbeatDecision:
    """One heartbeat of a member that joins or stays."""

    group: ConsumerGroup
    request: HeartbeatRequest
    draft: Draft
    context: GroupContext
    lookup: ResolvedPatterns
    assign: Assign = AssignmentInput.assign

    def decide(self, new_id: Callable[[], str]) -> HeartbeatReply:
        """Errors are raised; `new_id` is for a member that joins without an id."""
        group, request, limits = self.group, self.request, self.context.limits
        member_id = request.member_id or new_id()
        check_room(group, member_id, request.instance_id, limits.consumer_max_size)
        before = self._member(member_id)
        member = before if self._is_idle(before) else self._advance(before)
        restart_session(group, member, self.draft, limits)
        moved = member.standing.assigned != before.standing.assigned
        return HeartbeatReply(
            member.id,
            member.epoch,
            limits.pace(group.id).consumer_heartbeat_interval_ms,
            member.standing.assigned if request.is_full or moved else None,
        )

    def _member(self, member_id: str) -> Member:
        """The sender: a current member, one that replaces a static member, or a new one."""
        group, request = self.group, self.request
        holder = group.static_member(request.instance_id)
        if request.epoch == JOINS and holder is not None and holder.id != member_id:
            if holder.classic is None and holder.epoch != LEAVES_FOR_A_WHILE:
                raise KafkaError(
                    ErrorCode.unreleased_instance_id,
                    f"Static member {member_id} with instance id {request.instance_id} cannot join "
                    f"the group because the instance id is owned by {holder.id} member.",
                )
            standing = holder.standing._replace(epoch=JOINS, previous_epoch=JOINS)
            return Member(member_id, holder.profile, standing)
        if request.epoch == JOINS:
            return group.members.get(member_id) or Member(member_id)
        member = group.require_member(member_id, request.instance_id)
        check_epoch(member, request.epoch, request.owned)
        return member

    def _is_idle(self, member: Member) -> bool:
        """Whether the heartbeat changes nothing and the member has reached its target."""
        group = self.group
        return (
            not group.topics_changed
            and not self.lookup.topics
            and group.epoch == group.target_epoch
            and member.has_settled(group.epoch)
            and group.members.get(member.id) is member
            and profile_after(member.profile, self.request) == member.profile
        )

    def _advance(self, before: Member) -> Member:
        group, request = self.group, self.request
        revision = PendingGroup(group, self.draft, self.context.image)
        replaced = group.static_member(request.instance_id)
        if replaced is not None and replaced.id != before.id:
            revision.rename(replaced, before)
        profile = profile_after(before.profile, request)
        revision.put(replace(before, profile=profile))
        subscribes = (profile.topics, profile.pattern)
        changed = subscribes != (before.profile.topics, before.profile.pattern)
        changed |= revision.resolve(self.lookup.topics)
        settling = Settling(request.owned, self.context.limits, self.assign)
        member = settle(revision, before.id, settling, changed=changed)
        if self.lookup.topics.keys() >= revision.after.patterns_in_use():
            group.patterns_of = self.lookup.of
        return member


class Settling(NamedTuple):
    """What a member's next assignment depends on besides the group."""

    owned: OwnedParts | None
    limits: GroupSettings
    assign: Assign = AssignmentInput.assign


def settle(revision: PendingGroup, member_id: str, settling: Settling, *, changed: bool) -> Member:
    """Update the group epoch and the target if needed, then the member's own assignment."""
    group, owned = revision.after, settling.owned
    topics_changed = revision.before.topics_changed
    if changed or topics_changed:
        topics_changed = revision.raise_epoch(always=changed)  # until the new ones are replayed
    revision.retarget(settling.limits, settling.assign)
    revision.before.topics_changed = topics_changed
    now = group.members[member_id]
    aim = TargetAssignment(group.target_epoch, group.target.get(member_id, NO_PARTS))
    others_own = any(owner != member_id for owner in group.owners.values())
    is_free = (lambda part: group.is_free(part, member_id)) if others_own else None
    standing = reconcile(now.standing, aim, owned, is_free)
    member = replace(now, standing=standing)
    if member != now:
        revision.put(member)
        await_revocation(group, member, revision.draft)
    return member


def profile_after(now: MemberProfile, request: HeartbeatRequest) -> MemberProfile:
    pattern = now.pattern if request.pattern is None else request.pattern or None
    return MemberProfile(
        now.instance_id if request.instance_id is None else request.instance_id,
        now.rack_id if request.rack_id is None else request.rack_id,
        request.client_id,
        request.client_host,
        now.topics if request.topics is None else in_order(request.topics),
        pattern,
        now.rebalance_timeout_ms
        if request.rebalance_timeout_ms == UNCHANGED
        else request.rebalance_timeout_ms,
        now.assignor if request.assignor is None else request.assignor,
    )


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Each once, sorted; very many in parts, so that other threads run in between."""
    distinct = list(set(names))
    return tuple(merge(*map(sorted, sliced(distinct, SORTED_AT_ONCE))))


def check_epoch(member: Member, epoch: int, owned: OwnedParts | None) -> None:
    """A member may be one epoch behind if its last reply was lost and it owns nothing new."""
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


def _within(owned: OwnedParts | None, assigned: Parts) -> bool:
    return owned is not None and owned <= assigned


def leave_temporarily(
    group: ConsumerGroup, request: HeartbeatRequest, draft: Draft
) -> HeartbeatReply:
    """A static member leaves temporarily: its assignment is kept until its session ends."""
    member = group.require_member(request.member_id, request.instance_id)
    away = member.standing._replace(epoch=LEAVES_FOR_A_WHILE, revoking=NO_PARTS)
    draft.records.append(record(StandingSet(group.id, member.id, away)))
    return HeartbeatReply(member.id, LEAVES_FOR_A_WHILE)


def remove_member(
    group: ConsumerGroup, members: Iterable[Member], draft: Draft, image: Image, why: str
) -> PendingGroup:
    """The group without these members."""
    revision = PendingGroup(group, draft, image)
    for member in members:
        draft.log(__name__, "group %r: removed member %r: %s", group.id, member.id, why)
        revision.remove(member.id)
        forget(group.id, member.id, draft)
    return revision


def rebalance_after_leave(revision: PendingGroup) -> None:
    """Raise the epoch: the next heartbeat assigns the partitions of the removed members."""
    revision.resolve({})
    revision.raise_epoch(always=True)
