"""The disks of brokers: what is where, how full they are, moving a replica to another one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ottla.client.admin import api_keys
from ottla.client.admin.offsets import indexes_by_topic
from ottla.client.admin.session import Answers, Outcomes, Session, judged, refused
from ottla.client.cluster import To
from ottla.model.errors import KafkaError
from ottla.model.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class ReplicaOnDisk:
    """A replica's size and how far it is behind; `is_future` while it is moved to this disk."""

    size_bytes: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True)
class LogDir:
    """One directory of `log.dirs`. `failure` says why it is offline; -1 bytes are unknown."""

    path: str
    failure: KafkaError | None
    total_bytes: int
    usable_bytes: int
    replicas: Mapping[TopicPartition, ReplicaOnDisk]


class Replica(NamedTuple):
    """A partition's copy on one broker."""

    partition: TopicPartition
    broker: int


@dataclass(frozen=True, slots=True)
class ReplicaLogDir:
    """Where a replica is, and where it is being moved; None where the broker does not hold it."""

    current: str | None
    current_lag: int
    future: str | None
    future_lag: int


async def describe_log_dirs(
    session: Session,
    brokers: Iterable[int] | None = None,
    partitions: Iterable[TopicPartition] | None = None,
) -> Outcomes[int, tuple[LogDir, ...]]:
    """What lies in each directory of each broker: of these partitions, or everything."""
    chosen = None
    if partitions is not None:
        chosen = indexes_by_topic("partitions", partitions, name="topic")
    asked = sorted((await session.view()).nodes) if brokers is None else brokers

    async def ask(node: To, ids: list[int]) -> Answers[int, tuple[LogDir, ...]]:
        reply = await session.ask(node, api_keys.DESCRIBE_LOG_DIRS, {"topics": chosen})
        return {ids[0]: judged(reply, tuple(map(_directory, reply.results)))}

    return await session.each(asked, session.own_broker, ask)


async def describe_replica_log_dirs(
    session: Session, replicas: Iterable[Replica]
) -> Outcomes[Replica, ReplicaLogDir]:
    """Where single replicas are, and where they go."""
    wanted = list(replicas)
    found = await describe_log_dirs(
        session,
        {one.broker for one in wanted},
        dict.fromkeys(one.partition for one in wanted),
    )
    told = Outcomes[Replica, ReplicaLogDir]()
    for one in wanted:
        directories = found[one.broker]
        told[one] = (
            directories
            if isinstance(directories, Exception)
            else _whereabouts(one.partition, directories)
        )
    return told


async def alter_replica_log_dirs(
    session: Session, moves: Mapping[Replica, str]
) -> Outcomes[Replica, None]:
    """Move replicas to another directory of their broker, while they go on being used."""

    async def ask(node: To, brokers: list[int]) -> Answers[int, Outcomes[Replica, None]]:
        [broker] = brokers
        paths: dict[str, list[TopicPartition]] = {}
        for replica, path in moves.items():
            if replica.broker == broker:
                paths.setdefault(path, []).append(replica.partition)
        fields = {
            "dirs": [
                {"path": path, "topics": indexes_by_topic("partitions", partitions)}
                for path, partitions in paths.items()
            ]
        }
        reply = await session.ask(node, api_keys.ALTER_REPLICA_LOG_DIRS, fields)
        told = Outcomes[Replica, None]()
        for topic in reply.results:
            for row in topic.partitions:
                partition = TopicPartition(topic.topic_name, row.partition_index)
                told[Replica(partition, broker)] = judged(row, None)
        return {broker: told}

    brokers = {replica.broker for replica in moves}
    found = await session.each(brokers, session.own_broker, ask)
    merged = Outcomes[Replica, None]()
    for replica in moves:
        told = found[replica.broker]
        merged[replica] = told if isinstance(told, Exception) else told[replica]
    return merged


def _directory(row: Any) -> LogDir:
    return LogDir(
        row.log_dir,
        refused(row),
        row.total_bytes,
        row.usable_bytes,
        {
            TopicPartition(topic.name, one.partition_index): ReplicaOnDisk(
                one.partition_size, one.offset_lag, one.is_future_key
            )
            for topic in row.topics
            for one in topic.partitions
        },
    )


def _whereabouts(partition: TopicPartition, directories: Iterable[LogDir]) -> ReplicaLogDir:
    current: tuple[str | None, int] = (None, -1)
    future: tuple[str | None, int] = (None, -1)
    for directory in directories:
        replica = directory.replicas.get(partition)
        if replica is not None and replica.is_future:
            future = (directory.path, replica.offset_lag)
        elif replica is not None:
            current = (directory.path, replica.offset_lag)
    return ReplicaLogDir(*current, *future)
