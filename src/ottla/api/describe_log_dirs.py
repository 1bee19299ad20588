"""DescribeLogDirs (35): the log directories of this broker and the size of each partition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.authorise import on_cluster
from ottla.api.requested_partitions import numbers_by_topic
from ottla.delay.slices import Slices
from ottla.log.directories.log_directories import DirectoryReport, ReplicaReport, describe
from ottla.model.errors import ErrorCode
from ottla.security.acl import Operation

KEY: Final = 35


async def describe_log_dirs(request: Request, ctx: Context) -> Fields:
    slices = Slices()
    requested = None
    if request.topics is not None:
        requested = await numbers_by_topic(
            (topic.topic, topic.partitions) for topic in request.topics
        )
    reports = describe(ctx.services.replicas.directories)
    return {
        "throttle_time": 0,
        "error_code": ErrorCode.none,
        "results": [await _directory(report, requested, slices) for report in reports],
    }


async def _directory(
    report: DirectoryReport, requested: Mapping[str, set[int]] | None, slices: Slices
) -> Fields:
    """`requested`: numbers of partitions by topic; None for all partitions."""
    topics: dict[str, list[Fields]] = {}
    async for replica in slices.of(report.replicas):
        name, index = replica.partition
        if requested is None or index in requested.get(name, ()):
            topics.setdefault(name, []).append(_replica(replica))
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
