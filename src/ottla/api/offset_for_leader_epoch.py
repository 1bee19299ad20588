"""OffsetForLeaderEpoch (23): where a leader epoch ended, so that a reader can cut back to it.

Followers ask by what brokers may do, consumers by what they may see of a topic.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.delay.slices import Slices
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicPartition
from ottla.security.acl import CLUSTER_NAME, Kind, Operation

KEY: Final = 23


async def offset_for_leader_epoch(request: Request, ctx: Context) -> Fields:
    everything = ctx.allows(Operation.CLUSTER_ACTION, Kind.CLUSTER, CLUSTER_NAME, noted=False)
    slices = Slices()
    topics = []
    async for topic in slices.of(request.topics):
        allowed = everything or ctx.allows(Operation.DESCRIBE, Kind.TOPIC, topic.topic)
        partitions = [
            _answer(topic.topic, asked, ctx)
            if allowed
            else _part(asked, ErrorCode.topic_authorization_failed, -1, -1)
            async for asked in slices.of(topic.partitions)
        ]
        topics.append({"topic": topic.topic, "partitions": partitions})
    return {"throttle_time": 0, "topics": topics}


def _answer(topic: str, asked: Any, ctx: Context) -> Fields:
    try:
        key = TopicPartition(topic, asked.partition)
        partition = ctx.services.replicas.hosted.get(key)
        partition.require_leadership(asked.current_leader_epoch)
        log = partition.log
        epoch, end = log.epochs.end_offset(asked.leader_epoch, log.end_offset)
    except KafkaError as refusal:
        return _part(asked, refusal.code, -1, -1)
    return _part(asked, ErrorCode.none, epoch, end)


def _part(asked: Any, code: ErrorCode, epoch: int, end: int) -> Fields:
    return {
        "error_code": code,
        "partition": asked.partition,
        "leader_epoch": epoch,
        "end_offset": end,
    }


def refuse(request: Request, code: ErrorCode, _: str | None) -> Fields:
    return {
        "throttle_time": 0,
        "topics": [
            {
                "topic": topic.topic,
                "partitions": [_part(asked, code, -1, -1) for asked in topic.partitions],
            }
            for topic in request.topics
        ],
    }


API = Api(KEY, "OffsetForLeaderEpoch", range(2, 5), offset_for_leader_epoch, refuse)
