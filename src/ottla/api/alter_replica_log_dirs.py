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
    codes: dict[str, dict[int, ErrorCode]] = {}
    slices = Slices(clock=ctx.services.broker.clock)  # a move that begins makes files
    async for directory in slices.of(request.dirs):
        path = Path(directory.path)
        async for topic in slices.of(directory.topics):
            of_topic = codes.setdefault(topic.name, {})
            async for index in slices.of(topic.partitions):
                of_topic[index] = _begin(TopicPartition(topic.name, index), path, ctx)
    return _reply(
        [
            _topic(name, [_partition(*item) async for item in slices.of(of_topic.items())])
            async for name, of_topic in slices.of(codes.items())
            if of_topic
        ]
    )


def _begin(key: TopicPartition, path: Path, ctx: Context) -> ErrorCode:
    try:
        if ctx.services.metadata.image.partition(key) is None:
            online = (directory.path for directory in ctx.services.replicas.directories.online)
            missing = (
                ErrorCode.unknown_topic_or_partition
                if path in online
                else ErrorCode.log_dir_not_found
            )
            raise KafkaError(missing)
        ctx.services.replicas.moves.begin(key, path)
    except KafkaError as refusal:
        return refusal.code
    return ErrorCode.none


def _reply(topics: list[Fields]) -> Fields:
    return {"throttle_time": 0, "results": topics}


def _topic(name: str, partitions: list[Fields]) -> Fields:
    return {"topic_name": name, "partitions": partitions}


def _partition(index: int, code: ErrorCode) -> Fields:
    return {"partition_index": index, "error_code": code}


def refuse(request: Request, code: ErrorCode, _: str | None) -> Fields:
    topics: dict[str, dict[int, None]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            if topic.partitions:
                topics.setdefault(topic.name, {}).update(dict.fromkeys(topic.partitions))
    return _reply(
        [_topic(name, [_partition(i, code) for i in indexes]) for name, indexes in topics.items()]
    )


API = Api(
    KEY,
    "AlterReplicaLogDirs",
    range(1, 3),
    alter_replica_log_dirs,
    refuse,
    needs=on_cluster(Operation.ALTER),
)
