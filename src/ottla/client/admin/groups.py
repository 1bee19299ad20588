"""Consumer groups: which there are, who is in them, removing members and groups.

A group follows the classic protocol, where clients share partitions out among themselves, or the
new one, where the broker does; both are described alike.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from ottla.client.admin import api_keys
from ottla.client.admin.session import Answers, Outcomes, Session, judged
from ottla.client.cluster import To
from ottla.client.errors import UnsupportedVersion
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicPartition

CONSUMER: Final = "consumer"
CLASSIC: Final = "classic"
DEAD: Final = "Dead"
_HAS_MEMBER_LIST: Final = 3  # of LeaveGroup


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group as lists show it; state and type are empty where a broker is too old to tell."""

    id: str
    protocol_type: str
    state: str
    type: str


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member and the partitions it has; `instance_id` where it is a static one."""

    id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    epoch: int | None = None
    target: tuple[TopicPartition, ...] | None = None
    """What it shall have once everybody has let go; of the new protocol only."""


@dataclass(frozen=True, slots=True)
class Group:
    """A group with its members. `assignor` is how partitions are shared out."""

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
    """Every group that any broker coordinates, in the order of their names."""
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
    """Groups with their members and what each is assigned."""

    async def ask(node: To, ids: list[str]) -> Answers[str, Group]:
        assert isinstance(node, int)
        found = await _of_the_new_protocol(session, node, ids)
        rest = [id for id in ids if id not in found]
        return {**found, **(await _classic(session, node, rest) if rest else {})}

    return await session.each(ids, session.groups, ask)


async def describe_group(session: Session, id: str) -> Group:
    """One group, or raise."""
    return (await describe_groups(session, [id])).one()


async def delete_groups(session: Session, ids: Iterable[str]) -> Outcomes[str, None]:
    """Forget groups and their offsets; only groups without members can go."""

    async def ask(node: To, ids: list[str]) -> Answers[str, None]:
        reply = await session.ask(node, api_keys.DELETE_GROUPS, {"groups_names": ids})
        return {row.group_id: judged(row, None) for row in reply.results}

    return await session.each(ids, session.groups, ask)


async def remove_group_members(
    session: Session, group: str, members: Iterable[GroupMember], *, reason: str | None = None
) -> Outcomes[str, None]:
    """Put members out of a group, by their ids as `describe_groups` gives them."""
    leaving = list(members)
    if not leaving:
        return Outcomes()

    async def ask(node: To, groups: list[str]) -> Answers[str, Outcomes[str, None]]:
        fields = {
            "group_id": group,
            "members": [
                {
                    "member_id": "" if one.instance_id else one.id,
                    "group_instance_id": one.instance_id,
                    "reason": reason,
                }
                for one in leaving
            ],
        }
        reply = await session.ask(node, api_keys.LEAVE_GROUP, fields)
        told = Outcomes[str, None]()
        for one, row in zip(leaving, reply.members, strict=False):
            told[one.id] = judged(row, None)
        return {group: judged(reply, told)}

    return (await session.each([group], session.groups, ask)).one()


async def _of_the_new_protocol(session: Session, node: int, ids: list[str]) -> dict[str, Group]:
    """Those of the groups that follow it; brokers that do not know it have none."""
    fields = {"group_ids": ids, "include_authorized_operations": False}
    try:
        reply = await session.ask(node, api_keys.CONSUMER_GROUP_DESCRIBE, fields)
    except UnsupportedVersion:
        return {}
    return {
        row.group_id: _group(row, node) for row in reply.groups if row.error_code is ErrorCode.none
    }


def _group(row: Any, node: int) -> Group:
    members = tuple(
        GroupMember(
            one.member_id,
            one.instance_id,
            one.client_id,
            one.client_host,
            _owned(one.assignment),
            one.member_epoch,
            _owned(one.target_assignment),
        )
        for one in row.members
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


def _owned(assignment: Any) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic.topic_name, index)
        for topic in assignment.topic_partitions
        for index in topic.partitions
    )


async def _classic(session: Session, node: int, ids: list[str]) -> Answers[str, Group]:
    fields = {"groups": ids, "include_authorized_operations": False}
    reply = await session.ask(node, api_keys.DESCRIBE_GROUPS, fields)
    return {row.group_id: _described(row, node) for row in reply.groups}


def _described(row: Any, node: int) -> Group | KafkaError:
    """Before version 6 a group that is not there is told to be dead."""
    if row.error_code is ErrorCode.none and row.group_state == DEAD:
        return KafkaError(ErrorCode.group_id_not_found, f"there is no group {row.group_id}")
    members = tuple(
        GroupMember(
            one.member_id,
            one.group_instance_id,
            one.client_id,
            one.client_host,
            assigned(one.member_assignment) if row.protocol_type == CONSUMER else (),
        )
        for one in row.members
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
    return judged(row, group)


def assigned(data: bytes) -> tuple[TopicPartition, ...]:
    """The partitions in a classic member's assignment; nothing where it cannot be read.

    Clients write it, and a group may be of a client that writes something else.
    """
    try:
        return tuple(_read_assignment(memoryview(data)))
    except (struct.error, UnicodeDecodeError):
        return ()


def _read_assignment(data: memoryview) -> list[TopicPartition]:
    found: list[TopicPartition] = []
    if not data:
        return found
    _version, topics = struct.unpack_from(">hi", data)
    at = 6
    for _ in range(topics):
        (size,) = struct.unpack_from(">h", data, at)
        name = str(bytes(data[at + 2 : at + 2 + size]), "utf-8")
        at += 2 + size
        (count,) = struct.unpack_from(">i", data, at)
        indexes = struct.unpack_from(f">{max(count, 0)}i", data, at + 4)
        at += 4 + 4 * len(indexes)
        found += [TopicPartition(name, index) for index in indexes]
    return found
