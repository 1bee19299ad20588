"""Consumer groups: listing and describing them, removing members and groups.

A group uses the classic protocol, where a member assigns the partitions, or the consumer protocol,
where the broker does; both are described alike.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ottla.client.admin import api_keys
from ottla.client.admin.session import Answers, Outcomes, Session, result_or_error
from ottla.client.cluster import To
from ottla.client.errors import UnsupportedVersion
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicPartition
from ottla.protocol.schema import KioStruct

CONSUMER: Final = "consumer"
CLASSIC: Final = "classic"
DEAD: Final = "Dead"
_HAS_MEMBER_LIST: Final = 3  # of LeaveGroup


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A listed group; state and type are empty if the broker is too old to return them."""

    id: str
    protocol_type: str
    state: str
    type: str


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member and its partitions; `instance_id` if it is a static member."""

    id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    epoch: int | None = None
    target: tuple[TopicPartition, ...] | None = None
    """Its target assignment, reached once others have revoked theirs; consumer protocol only."""


@dataclass(frozen=True, slots=True)
class Group:
    """A group with its members. `assignor` is the assignment strategy."""

    id: str
    type: str
    protocol_type: str
    state: str
    assignor: str
    coordinator: int
    members: tuple[GroupMember, ...]
    epoch: int | None = None


async def list_groups(
    session: Session, *, states: Iterable[str] = (), types: Iterable[str] = ()
) -> list[GroupListing]:
    """All groups of all brokers, sorted by id."""
    fields = {"states_filter": list(states), "types_filter": list(types)}
    replies = await session.on_every_broker(api_keys.LIST_GROUPS, fields)
    return sorted(
        (
            GroupListing(row.group_id, row.protocol_type, row.group_state, row.group_type)
            for reply in replies.all().values()
            for row in reply.groups
        ),
        key=lambda group: group.id,
    )


async def describe_groups(session: Session, ids: Iterable[str]) -> Outcomes[str, Group]:
    """Groups with their members and assignments."""

    async def ask(node: To, ids: list[str]) -> Answers[str, Group]:
        assert isinstance(node, int)
        groups = await _describe_consumer_groups(session, node, ids)
        classic_ids = [id for id in ids if id not in groups]
        return {
            **groups,
            **(await _describe_classic_groups(session, node, classic_ids) if classic_ids else {}),
        }

    return await session.for_each(ids, session.groups, ask)


async def describe_group(session: Session, id: str) -> Group:
    """One group, or raise."""
    return (await describe_groups(session, [id])).one()


async def delete_groups(session: Session, ids: Iterable[str]) -> Outcomes[str, None]:
    """Delete groups and their offsets; a group must have no members."""

    async def ask(node: To, ids: list[str]) -> Answers[str, None]:
        reply = await session.ask(node, api_keys.DELETE_GROUPS, {"groups_names": ids})
        return {row.group_id: result_or_error(row, None) for row in reply.results}

    return await session.for_each(ids, session.groups, ask)


async def remove_group_members(
    session: Session, group: str, members: Iterable[GroupMember], *, reason: str | None = None
) -> Outcomes[str, None]:
    """Remove members from a group, as `describe_groups` returns them."""
    leaving = list(members)
    if not leaving:
        return Outcomes()

    async def ask(node: To, groups: list[str]) -> Answers[str, Outcomes[str, None]]:
        fields = {
            "group_id": group,
            "members": [
                {
                    "member_id": "" if member.instance_id else member.id,
                    "group_instance_id": member.instance_id,
                    "reason": reason,
                }
                for member in leaving
            ],
        }
        reply = await session.ask(node, api_keys.LEAVE_GROUP, fields)
        outcomes = Outcomes[str, None]()
        for member, row in zip(leaving, reply.members, strict=False):
            outcomes[member.id] = result_or_error(row, None)
        return {group: result_or_error(reply, outcomes)}

    return (await session.for_each([group], session.groups, ask)).one()


async def _describe_consumer_groups(
    session: Session, node: int, ids: list[str]
) -> dict[str, Group]:
    """The groups that use the consumer protocol; none if the broker does not support it."""
    fields = {"group_ids": ids, "include_authorized_operations": False}
    try:
        reply = await session.ask(node, api_keys.CONSUMER_GROUP_DESCRIBE, fields)
    except UnsupportedVersion:
        return {}
    return {
        row.group_id: _consumer_group(row, node)
        for row in reply.groups
        if row.error_code is ErrorCode.none
    }


def _consumer_group(row: KioStruct, node: int) -> Group:
    members = tuple(
        GroupMember(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            _assigned_partitions(member.assignment),
            member.member_epoch,
            _assigned_partitions(member.target_assignment),
        )
        for member in row.members
    )
    return Group(
        row.group_id,
        CONSUMER,
        CONSUMER,
        row.group_state,
        row.assignor_name,
        node,
        members,
        row.group_epoch,
    )


def _assigned_partitions(assignment: KioStruct) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic.topic_name, index)
        for topic in assignment.topic_partitions
        for index in topic.partitions
    )


async def _describe_classic_groups(
    session: Session, node: int, ids: list[str]
) -> Answers[str, Group]:
    fields = {"groups": ids, "include_authorized_operations": False}
    reply = await session.ask(node, api_keys.DESCRIBE_GROUPS, fields)
    return {row.group_id: _classic_group(row, node) for row in reply.groups}


def _classic_group(row: KioStruct, node: int) -> Group | KafkaError:
    """Before version 6 a group that does not exist is described as dead."""
    if row.error_code is ErrorCode.none and row.group_state == DEAD:
        return KafkaError(ErrorCode.group_id_not_found, f"Group {row.group_id} not found.")
    members = tuple(
        GroupMember(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            decode_assignment(member.member_assignment) if row.protocol_type == CONSUMER else (),
        )
        for member in row.members
    )
    group = Group(
        row.group_id,
        CLASSIC,
        row.protocol_type,
        row.group_state,
        row.protocol_data,
        node,
        members,
    )
    return result_or_error(row, group)


def decode_assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """The partitions in a classic member's assignment; none if it cannot be decoded.

    Clients write it, and other clients may use another format.
    """
    try:
        return tuple(_read_assignment(memoryview(data)))
    except (struct.error, UnicodeDecodeError):
        return ()


def _read_assignment(data: memoryview) -> list[TopicPartition]:
    partitions: list[TopicPartition] = []
    if not data:
        return partitions
    _version, topics = struct.unpack_from(">hi", data)
    position = 6
    for _ in range(topics):
        (size,) = struct.unpack_from(">h", data, position)
        name = str(bytes(data[position + 2 : position + 2 + size]), "utf-8")
        position += 2 + size
        (count,) = struct.unpack_from(">i", data, position)
        indexes = struct.unpack_from(f">{max(count, 0)}i", data, position + 4)
        position += 4 + 4 * len(indexes)
        partitions += [TopicPartition(name, index) for index in indexes]
    return partitions
