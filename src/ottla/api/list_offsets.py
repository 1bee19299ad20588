"""ListOffsets (2): the first and last offset of a partition, or the offset at a timestamp.

Negative timestamps have special meanings: -1 the end that a reader may see, -2 the start, -3 the
record with the largest timestamp, -4 the start of the local log, -5 and -6 offsets of tiered
storage, which is not supported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from typing import Final, NamedTuple

from ottla.api.api import Api, Context, Fields, Request
from ottla.delay.slices import Slices
from ottla.log.log import FAULTS
from ottla.log.timestamp_lookup import max_timestamp_offset, offset_for_timestamp
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import BrokerId, TopicPartition
from ottla.protocol.schema import KioStruct
from ottla.replica.fetch.options import ISOLATIONS, FetchOptions
from ottla.replica.partition import HostedPartition
from ottla.security.acl import Kind, Operation

KEY: Final = 2
LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING: Final = -6
OLDEST_VERSION_OF: Final = {
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING: 11,
}
FIRST_WITH_NOT_AVAILABLE: Final = 5
DEBUGGER: Final = -2


class FoundOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


NOTHING: Final = FoundOffset(-1, -1, -1)


async def list_offsets(request: Request, ctx: Context) -> Fields:
    terms = FetchOptions(
        replica_id=BrokerId(request.replica_id),
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=0,
        isolation=ISOLATIONS[request.isolation_level == 1],
    )
    slices = Slices()
    topics = [
        {
            "name": topic.name,
            "partitions": [
                part async for part in _partitions(topic, slices.of(topic.partitions), terms, ctx)
            ],
        }
        async for topic in slices.of(request.topics)
    ]
    return {"throttle_time": 0, "topics": topics}


async def _partitions(
    topic: KioStruct, partitions: AsyncIterator[KioStruct], terms: FetchOptions, ctx: Context
) -> AsyncIterator[Fields]:
    allowed = ctx.allows(Operation.DESCRIBE, Kind.TOPIC, topic.name)
    counts = (
        Counter(requested.partition_index for requested in topic.partitions)
        if allowed
        else Counter()
    )
    refused: set[int] = set()
    async for requested in partitions:
        index = requested.partition_index
        if not allowed:
            yield _part(requested, ErrorCode.topic_authorization_failed, NOTHING)
        elif counts[index] == 1:
            yield _answer(topic.name, requested, terms, ctx)
        elif index not in refused:  # a duplicate partition gets one error
            refused.add(index)
            yield _part(requested, ErrorCode.invalid_request, NOTHING)


def _answer(topic: str, requested: KioStruct, terms: FetchOptions, ctx: Context) -> Fields:
    try:
        position = _find(TopicPartition(topic, requested.partition_index), requested, terms, ctx)
    except KafkaError as refusal:
        code = refusal.code
        if code is ErrorCode.offset_not_available and ctx.call.version < FIRST_WITH_NOT_AVAILABLE:
            code = ErrorCode.leader_not_available
        return _part(requested, code, NOTHING)
    return _part(requested, ErrorCode.none, position)


def _find(
    key: TopicPartition, requested: KioStruct, terms: FetchOptions, ctx: Context
) -> FoundOffset:
    if ctx.call.version < OLDEST_VERSION_OF.get(requested.timestamp, 0):
        raise KafkaError(ErrorCode.unsupported_version)
    hosted = ctx.services.replicas.hosted
    partition = hosted.get(key)
    if terms.replica_id != DEBUGGER:
        partition.require_leadership(requested.current_leader_epoch)
    try:
        return _find_offset(partition, requested.timestamp, terms)
    except FAULTS as fault:
        raise hosted.fail(partition, fault) from fault


def _find_offset(partition: HostedPartition, requested: int, terms: FetchOptions) -> FoundOffset:
    log, epoch = partition.log, partition.leader_epoch
    end = terms.upper_bound(log)
    match requested:
        case -1:
            _check_caught_up(partition, terms)
            return FoundOffset(-1, end, epoch)
        case -2 | -4:
            return FoundOffset(-1, log.start_offset, log.epochs.epoch_of(log.start_offset))
        case -5 | -6:
            return NOTHING
        case -3:
            position = max_timestamp_offset(log)
        case timestamp if timestamp >= 0:
            position = offset_for_timestamp(log, timestamp)
        case _:
            raise KafkaError(ErrorCode.unsupported_version)
    if position is None or position.offset >= end:
        _check_caught_up(partition, terms)
        return NOTHING
    return FoundOffset(position.timestamp, position.offset, position.leader_epoch)


def _check_caught_up(partition: HostedPartition, terms: FetchOptions) -> None:
    """The high watermark of a new leader may still be lower than what clients got from the old."""
    leadership = partition.leadership
    if leadership is None or terms.from_follower:
        return
    if partition.log.high_watermark < leadership.epoch_start:
        raise KafkaError(ErrorCode.offset_not_available)


def _part(requested: KioStruct, code: ErrorCode, position: FoundOffset) -> Fields:
    return {
        "partition_index": requested.partition_index,
        "error_code": code,
        "timestamp": position.timestamp,
        "offset": position.offset,
        "leader_epoch": position.leader_epoch,
    }


def refuse(request: Request, code: ErrorCode, _: str | None) -> Fields:
    return {
        "throttle_time": 0,
        "topics": [
            {
                "name": topic.name,
                "partitions": [_part(partition, code, NOTHING) for partition in topic.partitions],
            }
            for topic in request.topics
        ],
    }


API = Api(KEY, "ListOffsets", range(1, 12), list_offsets, refuse)
