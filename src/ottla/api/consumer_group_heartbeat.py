"""ConsumerGroupHeartbeat (68): join, stay in, or leave a group of the consumer protocol.

From version 1 on a member chooses its own id, and may subscribe by regular expression.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.authorise import on_group
from ottla.coordinator.group.consumer.heartbeat import HeartbeatRequest
from ottla.coordinator.group.consumer.topic_partitions import Parts, TopicIdPartition, by_topic
from ottla.delay.slices import SLICE, Slices, let_go
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_TOPIC_ID
from ottla.protocol import wire
from ottla.protocol.schema import KioStruct
from ottla.security.acl import Kind, Operation

KEY: Final = 68
FIRST_WITH_OWN_IDS: Final = 1


async def consumer_group_heartbeat(request: Request, ctx: Context) -> Fields:
    slices = Slices()
    async for name in slices.of(request.subscribed_topic_names or ()):
        ctx.require(Operation.DESCRIBE, Kind.TOPIC, name)
    sees = _sees(ctx) if ctx.services.authorizer.in_force else None
    owned = await _owned_partitions(request.topic_partitions, slices)
    heartbeat = HeartbeatRequest(
        request.member_id,
        request.member_epoch,
        request.instance_id,
        request.rack_id,
        ctx.call.client_id or "",
        f"/{ctx.peer.address}",
        wire.ms(request.rebalance_timeout),
        request.subscribed_topic_names,
        request.subscribed_topic_regex,
        request.server_assignor,
        owned,
        brings_id=ctx.call.version >= FIRST_WITH_OWN_IDS,
    )
    try:
        reply = await ctx.services.groups.consumer.heartbeat(request.group_id, heartbeat, sees)
    finally:
        await let_go(owned or set())
    if reply.assignment is not None and len(reply.assignment) > SLICE:
        await asyncio.sleep(0)  # the decision was one slice
    return {
        "throttle_time": 0,
        "error_code": ErrorCode.none,
        "error_message": None,
        "member_id": reply.member_id,
        "member_epoch": reply.epoch,
        "heartbeat_interval": reply.interval_ms,
        "assignment": None if reply.assignment is None else _assignment(reply.assignment),
    }


def _sees(ctx: Context) -> Callable[[str], bool]:
    """Tells which topics a pattern of this member may match."""
    return lambda name: ctx.allows(Operation.DESCRIBE, Kind.TOPIC, name, noted=False)


async def _owned_partitions(
    topics: Iterable[KioStruct] | None, slices: Slices
) -> set[TopicIdPartition] | None:
    if topics is None:
        return None
    owned: set[TopicIdPartition] = set()
    async for topic in slices.of(topics):
        topic_id = topic.topic_id or NO_TOPIC_ID
        async for partition in slices.of(topic.partitions):
            owned.add(TopicIdPartition(topic_id, partition))
    return owned


def _assignment(parts: Parts) -> Fields:
    return {
        "topic_partitions": [
            {"topic_id": topic_id, "partitions": partitions}
            for topic_id, partitions in by_topic(parts).items()
        ]
    }


def refuse(_: Request, code: ErrorCode, message: str | None) -> Fields:
    return {
        "throttle_time": 0,
        "error_code": code,
        "error_message": message,
        "member_id": None,
        "member_epoch": 0,
        "heartbeat_interval": 0,
        "assignment": None,
    }


API = Api(
    KEY,
    "ConsumerGroupHeartbeat",
    range(0, 2),
    consumer_group_heartbeat,
    refuse,
    needs=on_group(Operation.READ),
)
