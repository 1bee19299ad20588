"""A member of a group that says exactly what a test wants it to say, in any version."""

from __future__ import annotations

import itertools
from typing import Any, Final
from uuid import UUID

from ottla.api import join_group, sync_group
from ottla.model.errors import ErrorCode
from ottla.testing import Broker
from tests.raw_requests import METADATA, Line, create_topics

TOPIC: Final = "group-apis"
NEW: Final = itertools.count(1)
FIND_COORDINATOR: Final = 10


def open_line(broker: Broker) -> Line:
    """A connection to a broker that has the topic, and the coordinators' own."""
    line = Line(broker.bootstrap_servers)
    line.ask(FIND_COORDINATOR, 0, key="any")
    known = line.ask(METADATA, 1, topics=None)
    if TOPIC not in {topic.name for topic in known.topics}:
        create_topics(line, [TOPIC], 3)
    return line


def topic_id(line: Line) -> UUID:
    asked = [{"topic_id": None, "name": TOPIC}]
    reply = line.ask(
        METADATA,
        12,
        topics=asked,
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )
    found = reply.topics[0].topic_id
    assert isinstance(found, UUID)
    return found


def new_group() -> str:
    return f"group-{next(NEW)}"


def join(line: Line, group: str, version: int = 9, member: str = "", **more: Any) -> Any:
    fields = {
        "group_id": group,
        "session_timeout": 10_000,
        "rebalance_timeout": 10_000,
        "member_id": member,
        "group_instance_id": None,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"}],
        "reason": None,
    }
    return line.ask(join_group.KEY, version, **{**fields, **more})


def joined(line: Line, group: str, version: int = 9, **more: Any) -> Any:
    """Join, with the extra round that later versions ask for."""
    reply = join(line, group, version, **more)
    if reply.error_code is ErrorCode.member_id_required:
        reply = join(line, group, version, reply.member_id, **more)
    return reply


def sync(line: Line, group: str, reply: Any, version: int = 5, **more: Any) -> Any:
    fields = {
        "group_id": group,
        "generation_id": reply.generation_id,
        "member_id": reply.member_id,
        "group_instance_id": None,
        "protocol_type": "consumer",
        "protocol_name": "range",
        "assignments": [{"member_id": reply.member_id, "assignment": b"all of it"}],
    }
    return line.ask(sync_group.KEY, version, **{**fields, **more})


def stable(line: Line, group: str) -> Any:
    """The only member of a stable group."""
    reply = joined(line, group)
    assert sync(line, group, reply).error_code is ErrorCode.none
    return reply


def commit(line: Line, group: str, offset: int = 5, version: int = 9, **more: Any) -> ErrorCode:
    """Commit for partition 1."""
    part = {
        "partition_index": more.pop("partition", 1),
        "committed_offset": offset,
        "committed_leader_epoch": -1,
        "committed_metadata": more.pop("metadata", "note"),
    }
    topic = {"name": more.pop("topic", TOPIC), "topic_id": more.pop("topic_id", None)}
    fields = {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "group_instance_id": None,
        "retention_time": -1,
        "topics": [{**topic, "partitions": [part]}],
    }
    reply = line.ask(8, version, **{**fields, **more})
    code = reply.topics[0].partitions[0].error_code
    assert isinstance(code, ErrorCode)
    return code
