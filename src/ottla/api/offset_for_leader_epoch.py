"""OffsetForLeaderEpoch (23): the end offset of a leader epoch, so that a reader can truncate to it.

Followers need CLUSTER_ACTION, consumers need DESCRIBE on the topic.
"""

from __future__ import annotations

from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.delay.slices import Slices
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicPartition
from ottla.protocol.schema import KioStruct
from ottla.security.acl import CLUSTER_NAME, Kind, Operation

KEY: Final = 23


async def offset_for_leader_epoch(request: Request, ctx: Context) -> Fields:
    everything = ctx.allows(Operation.CLUSTER_ACTION, Kind.CLUSTER, CLUSTER_NAME, noted=False)
    slices = Slices()
    topics = []
    async for topic in slices.of(request.topics):
        allowed = everything or ctx.allows(Operation.DESCRIBE, Kind.TOPIC, topic.topic)
        partitions = [
            _answer(topic.topic, requested, ctx)
            if allowed
            else _part(requested, ErrorCode.topic_authorization_failed, -1, -1)
            async for requested in slices.of(topic.partitions)
        ]
        topics.append({"topic": topic.topic, "partitions": partitions})
    return {"throttle_time": 0, "topics": topics}


def _answer(topic: str, requested: KioStruct, ctx: Context) -> Fields:
    try:
        key = TopicPartition(topic, requested.partition)
        partition = ctx.services.replicas.hosted.get(key)
        partition.require_leadership(requested.current_leader_epoch)
        epoch, end = partition.log.epochs.end_offset(
            requested.leader_epoch, partition.log.end_offset
        )
    except KafkaError as refusal:
        return _part(requested, refusal.code, -1, -1)
    return _part(requested, ErrorCode.none, epoch, end)


def _part(requested: KioStruct, code: ErrorCode, epoch: int, end: int) -> Fields:
    return {
        "error_code": code,
        "partition": requested.partition,
        "leader_epoch": epoch,
        "end_offset": end,
    }


def refuse(request: Request, code: ErrorCode, _: str | None) -> Fields:
    return {
        "throttle_time": 0,
        "topics": [
            {
                "topic": topic.topic,
                "partitions": [_part(requested, code, -1, -1) for requested in topic.partitions],
            }
            for topic in request.topics
        ],
    }


API = Api(KEY, "OffsetForLeaderEpoch", range(2, 5), offset_for_leader_epoch, refuse)
