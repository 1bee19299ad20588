"""DescribeLogDirs (35): the log directories of this broker and the size of each partition."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.authorise import on_cluster
from ottla.delay.slices import Slices
from ottla.log.directories.log_directories import DirectoryReport, ReplicaReport, describe
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol.schema import KioStruct
from ottla.security.acl import Operation

KEY: Final = 35


async def describe_log_dirs(request: Request, ctx: Context) -> Fields:
    slices = Slices()
    partitions = await _requested_partitions(request.topics, slices)
    reports = describe(ctx.services.replicas.directories)
    return {
        "throttle_time": 0,
        "error_code": ErrorCode.none,
        "results": [await _directory(report, partitions, slices) for report in reports],
    }


async def _requested_partitions(
    topics: Iterable[KioStruct] | None, slices: Slices
) -> set[TopicPartition] | None:
    """None: all partitions."""
    if topics is None:
        return None
    return {
        TopicPartition(topic.topic, index)
        async for topic in slices.of(topics)
        async for index in slices.of(topic.partitions)
    }


async def _directory(
    report: DirectoryReport, partitions: set[TopicPartition] | None, slices: Slices
) -> Fields:
    topics: dict[str, list[Fields]] = {}
    async for replica in slices.of(report.replicas):
        if partitions is None or replica.partition in partitions:
            topics.setdefault(replica.partition.topic, []).append(_replica(replica))
    failed = report.failure is not None
    return {
        "error_code": ErrorCode.kafka_storage_error if failed else ErrorCode.none,
        "log_dir": str(report.path),
        "topics": [{"name": name, "partitions": parts} for name, parts in topics.items()],
        "total_bytes": report.total_bytes,
        "usable_bytes": report.usable_bytes,
        "is_cordoned": False,
    }


def _replica(replica: ReplicaReport) -> Fields:
    return {
        "partition_index": replica.partition.partition,
        "partition_size": replica.size,
        "offset_lag": replica.offset_lag,
        "is_future_key": replica.is_future,
    }


def refuse(_: Request, code: ErrorCode, __: str | None) -> Fields:
    return {"throttle_time": 0, "error_code": code, "results": []}


API = Api(
    KEY,
    "DescribeLogDirs",
    range(1, 6),
    describe_log_dirs,
    refuse,
    needs=on_cluster(Operation.DESCRIBE),
)
