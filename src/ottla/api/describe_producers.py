"""DescribeProducers (61): the producers of partitions led by this broker, and open transactions."""

from __future__ import annotations

from typing import Final

from ottla.api.api import NOT_HOSTED, Api, Context, Fields, Request
from ottla.controller.topic_rules import check_name
from ottla.delay.slices import Slices
from ottla.log.producers.producer_states import ProducerState
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicPartition
from ottla.security.acl import Kind, Operation

KEY: Final = 61


async def describe_producers(request: Request, ctx: Context) -> Fields:
    slices = Slices()
    topics = []
    async for topic in slices.of(request.topics):
        allowed = ctx.allows(Operation.READ, Kind.TOPIC, topic.name)
        partitions = [
            _partition(ctx, TopicPartition(topic.name, index))
            if allowed
            else _refusal_fields(index, ErrorCode.topic_authorization_failed)
            async for index in slices.of(topic.partition_indexes)
        ]
        topics.append({"name": topic.name, "partitions": partitions})
    return {"throttle_time": 0, "topics": topics}


def _partition(ctx: Context, key: TopicPartition) -> Fields:
    try:
        check_name(key.topic)
        if key.topic not in ctx.services.metadata.image.topics:
            raise KafkaError(ErrorCode.unknown_topic_or_partition, NOT_HOSTED)
        partition = ctx.services.replicas.hosted.get(key)
        partition.require_leadership()
    except KafkaError as refusal:
        return _refusal_fields(key.partition, refusal.code, refusal.message)
    return {
        "partition_index": key.partition,
        "error_code": ErrorCode.none,
        "error_message": None,
        "active_producers": [_producer(state) for state in partition.log.producers],
    }


def _producer(state: ProducerState) -> Fields:
    open_from = state.txn_first_offset
    return {
        "producer_id": state.producer_id,
        "producer_epoch": state.epoch,
        "last_sequence": state.last_sequence,
        "last_timestamp": state.timestamp,
        "coordinator_epoch": state.coordinator_epoch,
        "current_txn_start_offset": -1 if open_from is None else open_from,
    }


def _refusal_fields(index: int, code: ErrorCode, message: str | None = None) -> Fields:
    return {
        "partition_index": index,
        "error_code": code,
        "error_message": message,
        "active_producers": [],
    }


def refuse(request: Request, code: ErrorCode, _: str | None) -> Fields:
    topics = [
        {
            "name": topic.name,
            "partitions": [_refusal_fields(index, code) for index in topic.partition_indexes],
        }
        for topic in request.topics
    ]
    return {"throttle_time": 0, "topics": topics}


API = Api(KEY, "DescribeProducers", range(0, 1), describe_producers, refuse)
