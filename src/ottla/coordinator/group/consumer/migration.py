"""Upgrades a group from the classic to the consumer protocol, and back, without stopping it.

Pure, of (group, now). A group is upgraded when the first member of the consumer protocol joins it,
and downgraded when the last one leaves and classic members remain. Both are one batch of records:
tombstones for the old protocol and the records of the new one; assignments and offsets do not
change.
"""

from __future__ import annotations

from ottla.coordinator.group.classic.group import CONSUMER, ClassicGroup
from ottla.coordinator.group.classic.member import ClassicMember as ClassicMember
from ottla.coordinator.group.classic.rebalance import restart_session as restart_classic_session
from ottla.coordinator.group.consumer.classic_members import assignment_of
from ottla.coordinator.group.consumer.classic_metadata import read_assignment, read_subscription
from ottla.coordinator.group.consumer.group import ConsumerGroup
from ottla.coordinator.group.consumer.member import (
    ClassicProtocolState,
    Member,
    MemberAssignment,
    MemberProfile,
)
from ottla.coordinator.group.consumer.pending_group import PendingGroup, tombstones
from ottla.coordinator.group.consumer.records import EpochSet, TargetEpochSet, TargetSet
from ottla.coordinator.group.consumer.timers import GroupContext, forget, restart_session
from ottla.coordinator.group.consumer.topic_partitions import Parts, TopicIdPartition, from_names
from ottla.coordinator.group.draft import Draft
from ottla.coordinator.group.records import group_record, tombstone
from ottla.coordinator.group.settings import GroupSettings
from ottla.metadata.image import Image
from ottla.model.errors import ErrorCode, KafkaError

# To the consumer protocol


def can_upgrade(group: ClassicGroup, limits: GroupSettings) -> bool:
    few = len(group.members) <= limits.consumer_max_size
    return limits.upgrades and group.is_consumer_group and few


def upgrade_group(group: ClassicGroup, draft: Draft, context: GroupContext) -> ConsumerGroup:
    """The upgraded group: its members keep their assignments, in their generation."""
    members = _members(group, context.image)
    draft.records.append(tombstone(group.id))
    revision = PendingGroup(ConsumerGroup(group.id), draft, context.image)
    revision.write(EpochSet(group.id, group.generation))
    for member in members:
        revision.put(member)
        revision.write(TargetSet(group.id, member.id, member.standing.assigned))
        restart_session(revision.after, member, draft, context.limits)
    revision.write(TargetEpochSet(group.id, group.generation))
    draft.log(__name__, "group %r: upgraded to the consumer protocol", group.id)
    return revision.after


def end_rebalance(group: ClassicGroup, draft: Draft) -> None:
    """The group is upgraded: a rebalance in progress ends here, and its members rejoin."""
    for classic in group.members.values():
        classic.answer_waiting(ErrorCode.rebalance_in_progress, draft)


def _members(group: ClassicGroup, image: Image) -> list[Member]:
    assigned_before: set[TopicIdPartition] = set()
    members = []
    for classic in group.members.values():
        member = _member(group, classic, image, frozenset(assigned_before))
        assigned_before |= member.standing.assigned
        members.append(member)
    return members


def _member(
    group: ClassicGroup, classic: ClassicMember, image: Image, assigned_before: Parts
) -> Member:
    metadata = classic.metadata_for(group.protocol or classic.protocols[0].name)
    subscription, assignment = read_subscription(metadata), read_assignment(classic.assignment)
    if subscription is None or assignment is None:
        raise KafkaError(
            ErrorCode.group_id_not_found,
            f"Cannot upgrade classic group {group.id} to consumer group because the embedded "
            f"consumer protocol is malformed.",
        )
    profile = MemberProfile(
        classic.instance_id,
        subscription.rack_id,
        classic.client_id,
        classic.client_host,
        tuple(sorted(set(subscription.topics))),
        rebalance_timeout_ms=classic.rebalance_timeout_ms,
        classic=ClassicProtocolState(classic.session_timeout_ms, classic.protocols),
    )
    assigned = from_names(image, assignment) - assigned_before
    standing = MemberAssignment(group.generation, group.generation, assigned=assigned)
    return Member(classic.id, profile, standing)


# To the classic protocol


def can_downgrade(group: ConsumerGroup, limits: GroupSettings) -> bool:
    """Whether downgrades are enabled and only classic members remain."""
    size = len(group.members)
    all_classic = len(group.classic_members()) == size
    return limits.downgrades and all_classic and 0 < size <= limits.max_size


def downgrade(group: ConsumerGroup, draft: Draft, image: Image) -> None:
    """Write the group as a classic one; its generation is the group epoch."""
    tombstones(group, draft)
    classic = ClassicGroup(group.id, draft.now)
    assignments = {}
    for member in group.members.values():
        forget(group.id, member.id, draft)
        classic.add(_classic_member(member), CONSUMER)
        restart_classic_session(classic, classic.members[member.id], draft)
        assignments[member.id] = assignment_of(member, group.target.get(member.id), image)
    classic.generation = group.epoch
    classic.protocol = classic.choose_protocol()
    draft.records.append(group_record(classic, assignments))
    draft.log(__name__, "group %r: downgraded to the classic protocol", group.id)


def _classic_member(member: Member) -> ClassicMember:
    profile, classic = member.profile, member.classic
    assert classic is not None, f"member {member.id} does not use the classic protocol"
    return ClassicMember(
        member.id,
        profile.instance_id,
        profile.client_id,
        profile.client_host,
        profile.rebalance_timeout_ms,
        classic.session_timeout_ms,
        classic.protocols,
    )
