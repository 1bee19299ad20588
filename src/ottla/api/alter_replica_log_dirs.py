"""AlterReplicaLogDirs (34): move partitions of this broker to another of its log directories."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.authorise import on_cluster
from ottla.delay.slices import Slices
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicPartition
from ottla.security.acl import Operation

KEY: Final = 34


async def alter_replica_log_dirs(request: Request, ctx: Context) -> Fields:
    codes: dict[TopicPartition, ErrorCode] = {}
    slices = Slices()
    async for directory in slices.of(request.dirs):
        async for topic in slices.of(directory.topics):
            async for index in slices.of(topic.partitions):
                key = TopicPartition(topic.name, index)
                codes[key] = _begin(key, directory.path, ctx)
    return _results(codes)


def _begin(key: TopicPartition, path: str, ctx: Context) -> ErrorCode:
    try:
        if ctx.services.metadata.image.partition(key) is None:
            online = (directory.path for directory in ctx.services.replicas.directories.online)
            is_online = Path(path) in online
            missing = (
                ErrorCode.unknown_topic_or_partition if is_online else ErrorCode.log_dir_not_found
            )
            raise KafkaError(missing)
        ctx.services.replicas.moves.begin(key, Path(path))
    except KafkaError as refusal:
        return refusal.code
    return ErrorCode.none


def _results(codes: dict[TopicPartition, ErrorCode]) -> Fields:
    topics: dict[str, list[Fields]] = {}
    for key, code in codes.items():
        part = {"partition_index": key.partition, "error_code": code}
        topics.setdefault(key.topic, []).append(part)
    return {
        "throttle_time": 0,
        "results": [{"topic_name": name, "partitions": parts} for name, parts in topics.items()],
    }


def refuse(request: Request, code: ErrorCode, _: str | None) -> Fields:
    return _results(
        {
            TopicPartition(topic.name, index): code
            for directory in request.dirs
            for topic in directory.topics
            for index in topic.partitions
        }
    )


API = Api(
    KEY,
    "AlterReplicaLogDirs",
    range(1, 3),
    alter_replica_log_dirs,
    refuse,
    needs=on_cluster(Operation.ALTER),
)
