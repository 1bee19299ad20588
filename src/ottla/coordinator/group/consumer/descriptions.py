"""Groups of the consumer protocol as tools see them. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.coordinator.group.consumer.group import ConsumerGroup
from ottla.coordinator.group.consumer.member import Member
from ottla.coordinator.group.consumer.pending_group import chosen
from ottla.coordinator.group.consumer.topic_partitions import NO_PARTS, Parts
from ottla.coordinator.group.settings import GroupSettings

CONSUMER_TYPE: Final = "consumer"


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
        chosen(group.preferred_assignor(), limits),
        tuple(
            MemberView(member, group.target.get(member.id, NO_PARTS))
            for member in group.members.values()
        ),
    )
