"""OffsetDelete (47): forget a group's offsets in topics that nobody of it reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition

KEY: Final = 47


async def offset_delete(request: Request, ctx: Context) -> Fields:
    image = ctx.services.metadata.image
    keys = [
        TopicPartition(topic.name, one.partition_index)
        for topic in request.topics
        for one in topic.partitions
    ]
    unknown = {key for key in keys if image.partition(key) is None}
    known = [key for key in keys if key not in unknown]
    refused = await ctx.services.groups.delete_offsets(request.group_id, known)
    codes = {key: refused.get(key.topic, ErrorCode.none) for key in known}
    codes |= dict.fromkeys(unknown, ErrorCode.unknown_topic_or_partition)
    return _fields(request, codes)


def _fields(request: Request, codes: Mapping[TopicPartition, ErrorCode]) -> Fields:
    return {
        "error_code": ErrorCode.none,
        "throttle_time": 0,
        "topics": [
            {
                "name": topic.name,
                "partitions": [
                    {
                        "partition_index": one.partition_index,
                        "error_code": codes[TopicPartition(topic.name, one.partition_index)],
                    }
                    for one in topic.partitions
                ],
            }
            for topic in request.topics
        ],
    }


def refuse(_: Request, code: ErrorCode, __: str | None) -> Fields:
    return {"error_code": code, "throttle_time": 0, "topics": []}


API = Api(KEY, "OffsetDelete", range(0, 1), offset_delete, refuse)
