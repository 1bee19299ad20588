"""AlterPartitionReassignments (45): move replicas to other brokers, or cancel a reassignment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.authorise import on_cluster
from ottla.controller.events import Moves
from ottla.delay.slices import Slices
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import BrokerId, TopicPartition
from ottla.protocol import wire
from ottla.security.acl import Operation

KEY: Final = 45


async def alter_partition_reassignments(request: Request, ctx: Context) -> Fields:
    slices = Slices()
    moves: Moves = {
        TopicPartition(topic.name, partition.partition_index): (
            None if partition.replicas is None else tuple(map(BrokerId, partition.replicas))
        )
        for topic in request.topics
        async for partition in slices.of(topic.partitions)
    }
    refusals = await ctx.services.controller.reassign_partitions(
        moves, wire.ms(request.timeout), keep_factor=not request.allow_replication_factor_change
    )
    message = None if refusals else ""  # as Kafka answers a request without partitions
    topics: dict[str, list[Fields]] = {}
    async for tp, refusal in slices.of(refusals.items()):
        topics.setdefault(tp.topic, []).append(_result(tp, refusal))
    return _fields(ErrorCode.none, message, topics, request)


def _result(tp: TopicPartition, refusal: KafkaError | None) -> Fields:
    return {
        "partition_index": tp.partition,
        "error_code": ErrorCode.none if refusal is None else refusal.code,
        "error_message": None if refusal is None else refusal.message,
    }


def _fields(
    code: ErrorCode,
    message: str | None,
    topics: Mapping[str, list[Fields]],
    request: Request,
) -> Fields:
    return {
        "throttle_time": 0,
        "allow_replication_factor_change": request.allow_replication_factor_change,
        "error_code": code,
        "error_message": message,
        "responses": [
            {"name": name, "partitions": partitions} for name, partitions in topics.items()
        ],
    }


def refuse(request: Request, code: ErrorCode, message: str | None) -> Fields:
    return _fields(code, message, {}, request)


API = Api(
    KEY,
    "AlterPartitionReassignments",
    range(0, 2),
    alter_partition_reassignments,
    refuse,
    needs_controller=True,
    needs=on_cluster(Operation.ALTER),
)
