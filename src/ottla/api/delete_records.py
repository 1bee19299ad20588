"""DeleteRecords (21): everything below an offset is gone for readers; -1 is the high watermark."""

from __future__ import annotations

from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol import wire
from ottla.replica.delete_records import ToDelete

KEY: Final = 21


async def delete_records(request: Request, ctx: Context) -> Fields:
    asked = [
        ToDelete(TopicPartition(topic.name, one.partition_index), one.offset)
        for topic in request.topics
        for one in topic.partitions
    ]
    deletions = iter(await ctx.services.replicas.deletes.delete(asked, wire.ms(request.timeout)))
    topics = [
        {
            "name": topic.name,
            "partitions": [
                {
                    "partition_index": one.partition_index,
                    "low_watermark": deletion.low_watermark,
                    "error_code": deletion.code,
                }
                for one, deletion in zip(topic.partitions, deletions, strict=False)
            ],
        }
        for topic in request.topics
    ]
    return {"throttle_time": 0, "topics": topics}


def refuse(request: Request, code: ErrorCode, _: str | None) -> Fields:
    return {
        "throttle_time": 0,
        "topics": [
            {
                "name": topic.name,
                "partitions": [
                    {"partition_index": p.partition_index, "low_watermark": -1, "error_code": code}
                    for p in topic.partitions
                ],
            }
            for topic in request.topics
        ],
    }


API = Api(KEY, "DeleteRecords", range(0, 3), delete_records, refuse)
