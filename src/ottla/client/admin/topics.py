"""Topics: create, delete, describe, list, add partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from ottla.client.admin import api_keys
from ottla.client.admin.session import Answers, Outcomes, Session, result_or_error
from ottla.client.cluster import Target, To
from ottla.client.errors import UnsupportedVersion
from ottla.protocol.schema import KioStruct
from ottla.protocol.wire import Fields


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create. Partitions and replication factor default to the broker's.

    `assignments` lists the brokers of each partition, the preferred leader first; it replaces both
    numbers.
    """

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)
    assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """A created topic; -1 and no id if the broker is too old to return them."""

    name: str
    id: UUID | None
    partitions: int
    replication_factor: int
    configs: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Partition:
    """The state of a partition. `leader` is None while it has none."""

    index: int
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None

    @property
    def under_replicated(self) -> bool:
        return len(self.isr) < len(self.replicas)


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic with all its partitions, in order."""

    name: str
    id: UUID | None
    internal: bool
    partitions: tuple[Partition, ...]

    @property
    def replication_factor(self) -> int:
        return len(self.partitions[0].replicas) if self.partitions else 0


@dataclass(frozen=True, slots=True)
class MorePartitions:
    """The new number of partitions; `assignments` lists the brokers of each new one, in order."""

    total: int
    assignments: Sequence[Sequence[int]] | None = None


async def create_topics(
    session: Session, topics: Iterable[NewTopic], *, validate_only: bool = False
) -> Outcomes[str, CreatedTopic]:
    """Create topics; with `validate_only` only check whether it would work."""
    by_name = {topic.name: topic for topic in topics}

    async def ask(node: To, names: list[str]) -> Answers[str, CreatedTopic]:
        fields = {
            "topics": [_new_topic_fields(by_name[name]) for name in names],
            "timeout": session.timeout_ms,
            "validate_only": validate_only,
        }
        reply = await session.ask(node, api_keys.CREATE_TOPICS, fields)
        return {row.name: result_or_error(row, _created_topic(row)) for row in reply.topics}

    return await session.for_each(by_name, session.controller, ask)


async def create_topic(
    session: Session,
    name: str,
    *,
    partitions: int = -1,
    replication_factor: int = -1,
    configs: Mapping[str, str] | None = None,
) -> CreatedTopic:
    """Create one topic, or raise."""
    topic = NewTopic(name, partitions, replication_factor, configs or {})
    return (await create_topics(session, [topic])).one()


async def delete_topics(session: Session, names: Iterable[str]) -> Outcomes[str, None]:
    """Delete topics with all their records."""

    async def ask(node: To, names: list[str]) -> Answers[str, None]:
        fields = {
            "topics": [{"name": name, "topic_id": None} for name in names],
            "topic_names": names,  # until version 5
            "timeout": session.timeout_ms,
        }
        reply = await session.ask(node, api_keys.DELETE_TOPICS, fields)
        return {row.name: result_or_error(row, None) for row in reply.responses}

    return await session.for_each(names, session.controller, ask)


async def delete_topic(session: Session, name: str) -> None:
    """Delete one topic, or raise."""
    (await delete_topics(session, [name])).all()


async def create_partitions(
    session: Session, topics: Mapping[str, MorePartitions | int], *, validate_only: bool = False
) -> Outcomes[str, None]:
    """Add partitions to topics; the number can never be reduced."""

    async def ask(node: To, names: list[str]) -> Answers[str, None]:
        fields = {
            "topics": [_new_partitions_fields(name, topics[name]) for name in names],
            "timeout": session.timeout_ms,
            "validate_only": validate_only,
        }
        reply = await session.ask(node, api_keys.CREATE_PARTITIONS, fields)
        return {row.name: result_or_error(row, None) for row in reply.results}

    return await session.for_each(topics, session.controller, ask)


async def list_topics(session: Session, *, internal: bool = False) -> list[str]:
    """The names of all topics, sorted; internal topics only if `internal`."""
    fields = {"topics": None, **_METADATA}
    reply = await session.once(Target.ANY, api_keys.METADATA, fields)
    return sorted(row.name for row in reply.topics if internal or not row.is_internal)


async def describe_topics(session: Session, names: Iterable[str]) -> Outcomes[str, Topic]:
    """Topics with their partitions: leaders, replicas, in-sync replicas."""

    async def ask(node: To, names: list[str]) -> Answers[str, Topic]:
        try:
            rows = await _describe_pages(session, node, names)
        except UnsupportedVersion:
            fields = {"topics": [{"name": name, "topic_id": None} for name in names], **_METADATA}
            rows = list((await session.ask(node, api_keys.METADATA, fields)).topics)
        by_name: dict[str, list[KioStruct]] = {}
        for row in rows:
            by_name.setdefault(row.name, []).append(row)
        return {name: result_or_error(rows[0], _topic(rows)) for name, rows in by_name.items()}

    return await session.for_each(names, session.anywhere, ask)


async def describe_topic(session: Session, name: str) -> Topic:
    """One topic, or raise."""
    return (await describe_topics(session, [name])).one()


_METADATA: Fields = {
    "allow_auto_topic_creation": False,
    "include_topic_authorized_operations": False,
    "include_cluster_authorized_operations": False,
}


async def _describe_pages(session: Session, node: To, names: list[str]) -> list[KioStruct]:
    """All pages of DescribeTopicPartitions."""
    rows: list[KioStruct] = []
    cursor: Fields | None = None
    while True:
        fields = {"topics": [{"name": name} for name in sorted(names)], "cursor": cursor}
        reply = await session.ask(node, api_keys.DESCRIBE_TOPIC_PARTITIONS, fields)
        rows += reply.topics
        if reply.next_cursor is None:
            return rows
        next_cursor = reply.next_cursor
        cursor = {
            "topic_name": next_cursor.topic_name,
            "partition_index": next_cursor.partition_index,
        }
        names = [name for name in names if name >= next_cursor.topic_name]


def _new_topic_fields(topic: NewTopic) -> Fields:
    return {
        "name": topic.name,
        "num_partitions": -1 if topic.assignments else topic.partitions,
        "replication_factor": -1 if topic.assignments else topic.replication_factor,
        "assignments": [
            {"partition_index": index, "broker_ids": list(brokers)}
            for index, brokers in topic.assignments.items()
        ],
        "configs": [{"name": key, "value": value} for key, value in topic.configs.items()],
    }


def _created_topic(row: KioStruct) -> CreatedTopic:
    return CreatedTopic(
        row.name,
        row.topic_id,
        row.num_partitions,
        row.replication_factor,
        {config.name: config.value for config in row.configs or ()},
    )


def _new_partitions_fields(name: str, request: MorePartitions | int) -> Fields:
    request = MorePartitions(request) if isinstance(request, int) else request
    return {
        "name": name,
        "count": request.total,
        "assignments": request.assignments
        and [{"broker_ids": list(brokers)} for brokers in request.assignments],
    }


def _topic(rows: Sequence[KioStruct]) -> Topic:
    partitions = sorted(
        (_partition(partition) for row in rows for partition in row.partitions),
        key=lambda partition: partition.index,
    )
    return Topic(rows[0].name, rows[0].topic_id, rows[0].is_internal, tuple(partitions))


def _partition(row: KioStruct) -> Partition:
    return Partition(
        row.partition_index,
        None if row.leader_id < 0 else row.leader_id,
        row.leader_epoch,
        tuple(row.replica_nodes),
        tuple(row.isr_nodes),
        tuple(row.offline_replicas),
        getattr(row, "eligible_leader_replicas", None),
        getattr(row, "last_known_elr", None),
    )
