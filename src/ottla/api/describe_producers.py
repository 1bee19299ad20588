"""DescribeProducers (61): the producers of partitions led by this broker, and open transactions."""

from __future__ import annotations

from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.controller.topic_rules import check_name
from ottla.delay.slices import Slices
from ottla.log.producers.producer_states import ProducerState
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicPartition
from ottla.replica.hosted_partitions import HostedPartitions
from ottla.security.acl import Kind, Operation

KEY: Final = 61


async def describe_producers(request: Request, ctx: Context) -> Fields:
    slices = Slices()
    hosted = ctx.services.replicas.hosted
    topics = []
    async for topic in slices.of(request.topics):
        allowed = ctx.allows(Operation.READ, Kind.TOPIC, topic.name)
        partitions = [
            _partition(hosted, TopicPartition(topic.name, index))
            if allowed
            else _refused(index, ErrorCode.topic_authorization_failed)
            async for index in slices.of(topic.partition_indexes)
        ]
        topics.append({"name": topic.name, "partitions": partitions})
    return {"throttle_time": 0, "topics": topics}


def _partition(hosted: HostedPartitions, key: TopicPartition) -> Fields:
    try:
        check_name(key.topic)
        partition = hosted.get(key)
        partition.require_leadership()
    except KafkaError as refusal:
        return _refused(key.partition, refusal.code)
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


def _refused(index: int, code: ErrorCode) -> Fields:
    return {
        "partition_index": index,
        "error_code": code,
        "error_message": None,
        "active_producers": [],
    }


def refuse(request: Request, code: ErrorCode, _: str | None) -> Fields:
    topics = [
        {
            "name": topic.name,
            "partitions": [_refused(index, code) for index in topic.partition_indexes],
        }
        for topic in request.topics
    ]
    return {"throttle_time": 0, "topics": topics}


API = Api(KEY, "DescribeProducers", range(0, 1), describe_producers, refuse)
