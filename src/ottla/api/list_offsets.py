"""ListOffsets (2): where a partition begins and ends, and which offset stands at a time.

Negative timestamps are questions: -1 the end a reader may see, -2 the start, -3 the record with
the largest timestamp, -4 the start of what is on this disk, -5 and -6 what has been or is to be
moved to a remote tier, of which there is none here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any, Final, NamedTuple

from ottla.api.api import Api, Context, Fields, Request
from ottla.delay.slices import Slices
from ottla.log.log import FAULTS
from ottla.log.timestamp_lookup import max_timestamp_offset, offset_for_timestamp
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import BrokerId, TopicPartition
from ottla.replica.partition import HostedPartition
from ottla.replica.read import FetchOptions, Isolation
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


class Found(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


NOTHING: Final = Found(-1, -1, -1)


async def list_offsets(request: Request, ctx: Context) -> Fields:
    terms = FetchOptions(
        replica_id=BrokerId(request.replica_id),
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=0,
        isolation=Isolation(1 if request.isolation_level == 1 else 0),
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
    topic: Any, partitions: AsyncIterator[Any], terms: FetchOptions, ctx: Context
) -> AsyncIterator[Fields]:
    allowed = ctx.allows(Operation.DESCRIBE, Kind.TOPIC, topic.name)
    counts = Counter(asked.partition_index for asked in topic.partitions) if allowed else Counter()
    refused: set[int] = set()
    async for asked in partitions:
        index = asked.partition_index
        if not allowed:
            yield _part(asked, ErrorCode.topic_authorization_failed, NOTHING)
        elif counts[index] == 1:
            yield _answer(topic.name, asked, terms, ctx)
        elif index not in refused:  # a partition that is asked for twice is refused once
            refused.add(index)
            yield _part(asked, ErrorCode.invalid_request, NOTHING)


def _answer(topic: str, asked: Any, terms: FetchOptions, ctx: Context) -> Fields:
    try:
        found = _find(TopicPartition(topic, asked.partition_index), asked, terms, ctx)
    except KafkaError as refusal:
        code = refusal.code
        if code is ErrorCode.offset_not_available and ctx.call.version < FIRST_WITH_NOT_AVAILABLE:
            code = ErrorCode.leader_not_available
        return _part(asked, code, NOTHING)
    return _part(asked, ErrorCode.none, found)


def _find(key: TopicPartition, asked: Any, terms: FetchOptions, ctx: Context) -> Found:
    if ctx.call.version < OLDEST_VERSION_OF.get(asked.timestamp, 0):
        raise KafkaError(ErrorCode.unsupported_version)
    hosted = ctx.services.replicas.hosted
    partition = hosted.get(key)
    if terms.replica_id != DEBUGGER:
        partition.require_leadership(asked.current_leader_epoch)
    try:
        return _found(partition, asked.timestamp, terms)
    except FAULTS as fault:
        raise hosted.fail(partition, fault) from fault


def _found(partition: HostedPartition, asked: int, terms: FetchOptions) -> Found:
    log, epoch = partition.log, partition.leader_epoch
    end = terms.upper_bound(log)
    match asked:
        case -1:
            _check_caught_up(partition, terms)
            return Found(-1, end, epoch)
        case -2 | -4:
            return Found(-1, log.start_offset, log.epochs.epoch_of(log.start_offset))
        case -5 | -6:
            return NOTHING
        case -3:
            found = max_timestamp_offset(log)
        case timestamp if timestamp >= 0:
            found = offset_for_timestamp(log, timestamp)
        case _:
            raise KafkaError(ErrorCode.unsupported_version)
    if found is None or found.offset >= end:
        _check_caught_up(partition, terms)
        return NOTHING
    return Found(found.timestamp, found.offset, found.leader_epoch)


def _check_caught_up(partition: HostedPartition, terms: FetchOptions) -> None:
    """A new leader may at first know less to be committed than clients were told by the old one."""
    leadership = partition.leadership
    if leadership is None or terms.from_follower:
        return
    if partition.log.high_watermark < leadership.epoch_start:
        raise KafkaError(ErrorCode.offset_not_available)


def _part(asked: Any, code: ErrorCode, found: Found) -> Fields:
    return {
        "partition_index": asked.partition_index,
        "error_code": code,
        "timestamp": found.timestamp,
        "offset": found.offset,
        "leader_epoch": found.leader_epoch,
    }


def refuse(request: Request, code: ErrorCode, _: str | None) -> Fields:
    return {
        "throttle_time": 0,
        "topics": [
            {
                "name": topic.name,
                "partitions": [_part(one, code, NOTHING) for one in topic.partitions],
            }
            for topic in request.topics
        ],
    }


API = Api(KEY, "ListOffsets", range(1, 12), list_offsets, refuse)
