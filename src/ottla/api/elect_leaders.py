"""ElectLeaders (43): elects the preferred leaders of partitions, or any leader (unclean)."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.authorise import on_cluster
from ottla.controller.events import ElectionKind
from ottla.delay.slices import Slices, free, let_go
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicPartition
from ottla.protocol import wire
from ottla.security.acl import Operation

KEY: Final = 43

REASONS: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.election_not_needed: "Leader election not needed for topic partition.",
    ErrorCode.preferred_leader_not_available: "The preferred leader was not available.",
    ErrorCode.eligible_leaders_not_available: "No replica is eligible to lead the partition.",
    ErrorCode.request_timed_out: "The request timed out.",
}


async def elect_leaders(request: Request, ctx: Context) -> Fields:
    try:
        kind = ElectionKind(request.election_type)
    except ValueError:
        raise KafkaError(
            ErrorCode.invalid_request, f"Unknown election type {request.election_type}."
        ) from None
    partitions, slices = None, Slices()
    if request.topic_partitions is not None:
        partitions = [
            TopicPartition(topic.topic, number)
            async for topic in slices.of(request.topic_partitions)
            async for number in slices.of(topic.partitions)
        ]
    codes = await ctx.services.controller.elect_leaders(kind, partitions, wire.ms(request.timeout))
    existing = ctx.services.metadata.image.topics
    topics: dict[str, list[Fields]] = {}
    async for tp, code in slices.of(codes.items()):
        topics.setdefault(tp.topic, []).append(_result(tp, code, existing))
    results = [_topic(*item) async for item in slices.of(topics.items())]
    await let_go(codes)
    if partitions is not None:
        await free([partitions])
    return {**_head(ErrorCode.none), "replica_election_results": results}


def _result(tp: TopicPartition, code: ErrorCode, existing: Container[str] = ()) -> Fields:
    message = _reason(tp, code, existing)
    return {"partition_id": tp.partition, "error_code": code, "error_message": message}


def _topic(name: str, results: list[Fields]) -> Fields:
    return {"topic": name, "partition_result": results}


def _reason(tp: TopicPartition, code: ErrorCode, existing: Container[str]) -> str | None:
    if code is not ErrorCode.unknown_topic_or_partition:
        return REASONS.get(code)
    return f"No such partition as {tp}" if tp.topic in existing else f"No such topic as {tp.topic}"


def _head(code: ErrorCode) -> Fields:
    return {"throttle_time": 0, "error_code": code}


def refuse(request: Request, code: ErrorCode, _: str | None) -> Fields:
    topics: dict[str, list[Fields]] = {}
    for topic in request.topic_partitions or ():
        topics.setdefault(topic.topic, []).extend(
            _result(TopicPartition(topic.topic, number), code) for number in topic.partitions
        )
    results = [_topic(*item) for item in topics.items()]
    return {**_head(code), "replica_election_results": results}


API = Api(
    KEY,
    "ElectLeaders",
    range(0, 3),
    elect_leaders,
    refuse,
    needs_controller=True,
    needs=on_cluster(Operation.ALTER),
)
