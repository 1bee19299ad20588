"""Groups as DescribeGroups and ListGroups show them, and DeleteGroups. Pure."""

from __future__ import annotations

from collections.abc import Set
from typing import Final, NamedTuple

from ottla.coordinator.group.classic.group import CONSUMER, ClassicGroup
from ottla.coordinator.group.classic.member import GroupPhase
from ottla.coordinator.group.consumer.group import ConsumerGroup, Group
from ottla.coordinator.group.consumer.pending_group import tombstones
from ottla.coordinator.group.draft import Draft
from ottla.coordinator.group.offsets import Offsets
from ottla.coordinator.group.records import OffsetChanged, offset_record, tombstone
from ottla.coordinator.outcome import Outcome
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError

CLASSIC: Final = "classic"
CONSUMER_TYPE: Final = "consumer"


class MemberSummary(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class GroupSummary(NamedTuple):
    group_id: str
    state: str
    protocol_type: str = ""
    protocol: str = ""
    members: tuple[MemberSummary, ...] = ()


class GroupOverview(NamedTuple):
    group_id: str
    protocol_type: str
    state: str
    type: str = CLASSIC


def summary(group: Group | None) -> GroupSummary | None:
    """A classic group, with metadata and assignments only while it is stable."""
    if group is None or isinstance(group, ConsumerGroup):
        return None
    stable = group.phase is GroupPhase.STABLE
    return GroupSummary(
        group.id,
        group.phase.value,
        group.protocol_type or "",
        (group.protocol or "") if stable else "",
        tuple(
            MemberSummary(
                member.id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.metadata_for(group.protocol) if stable else b"",
                member.assignment if stable else b"",
            )
            for member in group.members.values()
        ),
    )


def overview(group: Group) -> GroupOverview:
    if isinstance(group, ConsumerGroup):
        return GroupOverview(group.id, CONSUMER, group.state.value, CONSUMER_TYPE)
    return GroupOverview(group.id, group.protocol_type or "", group.phase.value)


class GroupFilter:
    """By state and type, in lower case; an empty filter passes everything."""

    __slots__ = ("_states", "_types")

    def __init__(self, states: Set[str], types: Set[str]) -> None:
        self._states = states
        self._types = types

    def passes(self, overview: GroupOverview) -> bool:
        return (not self._states or overview.state.lower() in self._states) and (
            not self._types or overview.type.lower() in self._types
        )


def is_empty(group: Group) -> bool:
    if isinstance(group, ConsumerGroup):
        return not group.members
    return group.phase is GroupPhase.EMPTY


def delete_group_records(group: Group, draft: Draft) -> None:
    """Adds tombstones for the group's own records."""
    if isinstance(group, ConsumerGroup):
        tombstones(group, draft)
    else:
        draft.records.append(tombstone(group.id))


def delete(group: Group | None, offsets: Offsets, now: WallMs) -> Outcome[None]:
    """Tombstones for an empty group and all its offsets."""
    if group is None or (isinstance(group, ClassicGroup) and group.phase is GroupPhase.DEAD):
        raise KafkaError(ErrorCode.group_id_not_found)
    if not is_empty(group):
        raise KafkaError(ErrorCode.non_empty_group)
    draft = Draft(now)
    for topic, partition, _ in offsets.entries(group.id):
        draft.records.append(offset_record(OffsetChanged(group.id, topic, partition, None)))
    delete_group_records(group, draft)
    return draft.outcome(None)
