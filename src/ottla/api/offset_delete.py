"""OffsetDelete (47): deletes a group's offsets in topics that no member is subscribed to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.authorise import on_group
from ottla.delay.slices import Slices, sliced
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol.schema import KioStruct
from ottla.security.acl import Kind, Operation

KEY: Final = 47
BATCH: Final = 100
"""Offsets deleted at a time; each batch is checked against the group as it is then."""


async def offset_delete(request: Request, ctx: Context) -> Fields:
    image = ctx.services.metadata.image
    codes: dict[TopicPartition, ErrorCode] = {}
    existing: list[TopicPartition] = []
    slices = Slices()
    async for topic in slices.of(request.topics):
        allowed = ctx.allows(Operation.READ, Kind.TOPIC, topic.name)
        async for partition in slices.of(topic.partitions):
            key = TopicPartition(topic.name, partition.partition_index)
            if not allowed:
                codes[key] = ErrorCode.topic_authorization_failed
            elif image.partition(key) is None:
                codes[key] = ErrorCode.unknown_topic_or_partition
            else:
                existing.append(key)
    for part in sliced(existing, BATCH) or [()]:
        refused = await ctx.services.groups.delete_offsets(request.group_id, part)
        codes |= {key: refused.get(key.topic, ErrorCode.none) for key in part}
        await slices.took(len(part))
    topics = [
        {"name": topic.name, "partitions": await _partitions(topic, codes, slices)}
        async for topic in slices.of(request.topics)
    ]
    return {"error_code": ErrorCode.none, "throttle_time": 0, "topics": topics}


async def _partitions(
    topic: KioStruct, codes: Mapping[TopicPartition, ErrorCode], slices: Slices
) -> list[Fields]:
    return [
        {
            "partition_index": partition.partition_index,
            "error_code": codes[TopicPartition(topic.name, partition.partition_index)],
        }
        async for partition in slices.of(topic.partitions)
    ]


def refuse(_: Request, code: ErrorCode, __: str | None) -> Fields:
    return {"error_code": code, "throttle_time": 0, "topics": []}


API = Api(KEY, "OffsetDelete", range(0, 1), offset_delete, refuse, needs=on_group(Operation.DELETE))
