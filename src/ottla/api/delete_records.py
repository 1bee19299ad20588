"""DeleteRecords (21): deletes records below an offset; -1 is the high watermark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.delay.slices import Slices
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol import wire
from ottla.protocol.schema import KioStruct
from ottla.replica.delete_records import Deletion, PartitionDeletion
from ottla.security.acl import Kind, Operation

KEY: Final = 21


async def delete_records(request: Request, ctx: Context) -> Fields:
    names = {topic.name for topic in request.topics}
    slices = Slices()
    allowed = {
        name async for name in slices.of(names) if ctx.allows(Operation.DELETE, Kind.TOPIC, name)
    }
    deletes = [
        PartitionDeletion(TopicPartition(topic.name, partition.partition_index), partition.offset)
        for topic in request.topics
        if topic.name in allowed
        async for partition in slices.of(topic.partitions)
    ]
    deletions = iter(await ctx.services.replicas.deletes.delete(deletes, wire.ms(request.timeout)))
    topics = [
        await _topic(topic, deletions, slices)
        if topic.name in allowed
        else _refusal_fields(topic, ErrorCode.topic_authorization_failed)
        for topic in request.topics
    ]
    return {"throttle_time": 0, "topics": topics}


async def _topic(topic: KioStruct, deletions: Iterator[Deletion], slices: Slices) -> Fields:
    """The results of a topic; `deletions` are in the order of the request."""
    results = zip(topic.partitions, deletions, strict=False)
    return {
        "name": topic.name,
        "partitions": [
            {
                "partition_index": partition.partition_index,
                "low_watermark": deletion.low_watermark,
                "error_code": deletion.code,
            }
            async for partition, deletion in slices.of(results)
        ],
    }


def _refusal_fields(topic: KioStruct, code: ErrorCode) -> Fields:
    return {
        "name": topic.name,
        "partitions": [
            {"partition_index": partition.partition_index, "low_watermark": -1, "error_code": code}
            for partition in topic.partitions
        ],
    }


def refuse(request: Request, code: ErrorCode, _: str | None) -> Fields:
    return {
        "throttle_time": 0,
        "topics": [_refusal_fields(topic, code) for topic in request.topics],
    }


API = Api(KEY, "DeleteRecords", range(0, 3), delete_records, refuse)
