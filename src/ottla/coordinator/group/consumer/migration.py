"""From the classic protocol to this one and back, while the group goes on reading.

Pure, of (group, now). A group is upgraded when the first member of the consumer protocol joins it,
and downgraded when the last one goes and classic members are left. Both are one batch of records:
everything of the one kind is taken away, everything of the other put in its place; assignments
and positions stay what they were.
"""

from __future__ import annotations

import logging

from ottla.coordinator.group.classic.group import CONSUMER, ClassicGroup
from ottla.coordinator.group.classic.member import ClassicMember as ClassicMember
from ottla.coordinator.group.classic.member import JoinReply, SyncReply
from ottla.coordinator.group.classic.rebalance import hear as hear_classic
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
from ottla.coordinator.group.consumer.timers import MemberTimeouts, forget, hear
from ottla.coordinator.group.consumer.topic_partitions import Parts, TopicIdPartition, from_names
from ottla.coordinator.group.draft import Draft
from ottla.coordinator.group.records import group_record, tombstone
from ottla.coordinator.group.settings import GroupSettings
from ottla.metadata.image import Image
from ottla.model.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)


# To the consumer protocol


def can_upgrade(group: ClassicGroup, limits: GroupSettings) -> bool:
    few = len(group.members) <= limits.consumer_max_size
    return limits.upgrades and group.is_consumer_group and few


def upgraded(group: ClassicGroup, draft: Draft, terms: MemberTimeouts) -> ConsumerGroup:
    """The group as it will be: its members hold what they held, in their generation."""
    members = _members(group, terms.image)
    for classic in group.members.values():
        # A rebalance that was under way is over: they join again, in the new way.
        classic.answer_join(JoinReply(ErrorCode.rebalance_in_progress, classic.id))
        classic.answer_sync(SyncReply(ErrorCode.rebalance_in_progress))
    draft.records.append(tombstone(group.id))
    revision = PendingGroup(ConsumerGroup(group.id), draft, terms.image)
    revision.write(EpochSet(group.id, group.generation))
    for member in members:
        revision.put(member)
        revision.write(TargetSet(group.id, member.id, member.standing.assigned))
        hear(revision.after, member, draft, terms.limits)
    revision.write(TargetEpochSet(group.id, group.generation))
    log.info("group %r: upgraded to the consumer protocol", group.id)
    return revision.after


def _members(group: ClassicGroup, image: Image) -> list[Member]:
    taken: set[TopicIdPartition] = set()
    members = []
    for classic in group.members.values():
        member = _member(group, classic, image, frozenset(taken))
        taken |= member.standing.assigned
        members.append(member)
    return members


def _member(group: ClassicGroup, classic: ClassicMember, image: Image, taken: Parts) -> Member:
    metadata = classic.metadata_for(group.protocol or classic.protocols[0].name)
    subscription, held = read_subscription(metadata), read_assignment(classic.assignment)
    if subscription is None or held is None:
        raise KafkaError(
            ErrorCode.group_id_not_found,
            f"Cannot upgrade the classic group {group.id} to consumer group because the embedded "
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
    assigned = from_names(image, held) - taken
    standing = MemberAssignment(group.generation, group.generation, assigned=assigned)
    return Member(classic.id, profile, standing)


# To the classic protocol


def can_downgrade(group: ConsumerGroup, limits: GroupSettings) -> bool:
    """Whether only classic members are left."""
    size = len(group.members)
    all_classic = len(group.classic_members()) == size
    return limits.downgrades and all_classic and 0 < size <= limits.max_size


def downgrade(group: ConsumerGroup, draft: Draft, image: Image) -> None:
    """Write the group down as a classic one, stable in the generation of its epoch."""
    tombstones(group, draft)
    classic = ClassicGroup(group.id, draft.now)
    assignments = {}
    for member in group.members.values():
        forget(group.id, member.id, draft)
        classic.add(_classic_member(member), CONSUMER)
        hear_classic(classic, classic.members[member.id], draft)
        assignments[member.id] = assignment_of(member, group.target.get(member.id), image)
    classic.generation = group.epoch
    classic.protocol = classic.choose_protocol()
    draft.records.append(group_record(classic, assignments))
    log.info("group %r: downgraded to the classic protocol", group.id)


def _classic_member(member: Member) -> ClassicMember:
    profile, classic = member.profile, member.classic
    assert classic is not None, f"{member.id} does not speak the classic protocol"
    return ClassicMember(
        member.id,
        profile.instance_id,
        profile.client_id,
        profile.client_host,
        profile.rebalance_timeout_ms,
        classic.session_timeout_ms,
        classic.protocols,
    )
