"""ElectLeaders (43): elects the preferred leaders of partitions, or any leader (unclean)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.authorise import on_cluster
from ottla.controller.events import ElectionKind
from ottla.delay.slices import Slices
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
            for topic in request.topic_partitions
            async for number in slices.of(topic.partitions)
        ]
    codes = await ctx.services.controller.elect_leaders(kind, partitions, wire.ms(request.timeout))
    topics = ctx.services.metadata.image.topics
    results = _by_topic([_result(*item, topics) async for item in slices.of(codes.items())])
    return {**_head(ErrorCode.none), "replica_election_results": results}


def _result(
    tp: TopicPartition, code: ErrorCode, existing: Container[str] = ()
) -> tuple[str, Fields]:
    message = _reason(tp, code, existing)
    return tp.topic, {"partition_id": tp.partition, "error_code": code, "error_message": message}


def _by_topic(results: Iterable[tuple[str, Fields]]) -> list[Fields]:
    topics: dict[str, list[Fields]] = {}
    for topic, result in results:
        topics.setdefault(topic, []).append(result)
    return [{"topic": name, "partition_result": results} for name, results in topics.items()]


def _reason(tp: TopicPartition, code: ErrorCode, existing: Container[str]) -> str | None:
    if code is not ErrorCode.unknown_topic_or_partition:
        return REASONS.get(code)
    return f"No such partition as {tp}" if tp.topic in existing else f"No such topic as {tp.topic}"


def _head(code: ErrorCode) -> Fields:
    return {"throttle_time": 0, "error_code": code}


def refuse(request: Request, code: ErrorCode, _: str | None) -> Fields:
    topics = request.topic_partitions or ()
    results = (
        _result(TopicPartition(topic.topic, number), code)
        for topic in topics
        for number in topic.partitions
    )
    return {**_head(code), "replica_election_results": _by_topic(results)}


API = Api(
    KEY,
    "ElectLeaders",
    range(0, 3),
    elect_leaders,
    refuse,
    needs_controller=True,
    needs=on_cluster(Operation.ALTER),
)
