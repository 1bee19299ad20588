"""Log directories of brokers: their replicas and free space, moving a replica to another one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ottla.client.admin import api_keys
from ottla.client.admin.offsets import indexes_by_topic
from ottla.client.admin.session import Answers, Outcomes, Session, error_of, result_or_error
from ottla.client.cluster import To
from ottla.model.errors import KafkaError
from ottla.model.ids import TopicPartition
from ottla.protocol.schema import KioStruct


@dataclass(frozen=True, slots=True)
class ReplicaOnDisk:
    """A replica's size and lag; `is_future` while it is being moved to this directory."""

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
    """The current and future directory of a replica; None if the broker does not have it."""

    current: str | None
    current_lag: int
    future: str | None
    future_lag: int


async def describe_log_dirs(
    session: Session,
    brokers: Iterable[int] | None = None,
    partitions: Iterable[TopicPartition] | None = None,
) -> Outcomes[int, tuple[LogDir, ...]]:
    """The replicas in each log directory of each broker: of these partitions, or of all."""
    topics = None
    if partitions is not None:
        topics = indexes_by_topic("partitions", partitions, name="topic")
    broker_ids = sorted((await session.view()).nodes) if brokers is None else brokers

    async def ask(node: To, ids: list[int]) -> Answers[int, tuple[LogDir, ...]]:
        reply = await session.ask(node, api_keys.DESCRIBE_LOG_DIRS, {"topics": topics})
        return {ids[0]: result_or_error(reply, tuple(map(_directory, reply.results)))}

    return await session.for_each(broker_ids, session.own_broker, ask)


async def describe_replica_log_dirs(
    session: Session, replicas: Iterable[Replica]
) -> Outcomes[Replica, ReplicaLogDir]:
    """The current and future log directory of single replicas."""
    requested = list(replicas)
    by_broker = await describe_log_dirs(
        session,
        {replica.broker for replica in requested},
        dict.fromkeys(replica.partition for replica in requested),
    )
    outcomes = Outcomes[Replica, ReplicaLogDir]()
    for replica in requested:
        directories = by_broker[replica.broker]
        outcomes[replica] = (
            directories
            if isinstance(directories, Exception)
            else _replica_log_dir(replica.partition, directories)
        )
    return outcomes


async def alter_replica_log_dirs(
    session: Session, moves: Mapping[Replica, str]
) -> Outcomes[Replica, None]:
    """Move replicas to another log directory of their broker, while they stay in use."""

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
        outcomes = Outcomes[Replica, None]()
        for topic in reply.results:
            for row in topic.partitions:
                partition = TopicPartition(topic.topic_name, row.partition_index)
                outcomes[Replica(partition, broker)] = result_or_error(row, None)
        return {broker: outcomes}

    brokers = {replica.broker for replica in moves}
    by_broker = await session.for_each(brokers, session.own_broker, ask)
    merged = Outcomes[Replica, None]()
    for replica in moves:
        outcome = by_broker[replica.broker]
        merged[replica] = outcome if isinstance(outcome, Exception) else outcome[replica]
    return merged


def _directory(row: KioStruct) -> LogDir:
    return LogDir(
        row.log_dir,
        error_of(row),
        row.total_bytes,
        row.usable_bytes,
        {
            TopicPartition(topic.name, replica.partition_index): ReplicaOnDisk(
                replica.partition_size, replica.offset_lag, replica.is_future_key
            )
            for topic in row.topics
            for replica in topic.partitions
        },
    )


def _replica_log_dir(partition: TopicPartition, directories: Iterable[LogDir]) -> ReplicaLogDir:
    current: tuple[str | None, int] = (None, -1)
    future: tuple[str | None, int] = (None, -1)
    for directory in directories:
        replica = directory.replicas.get(partition)
        if replica is not None and replica.is_future:
            future = (directory.path, replica.offset_lag)
        elif replica is not None:
            current = (directory.path, replica.offset_lag)
    return ReplicaLogDir(*current, *future)
