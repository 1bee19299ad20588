"""Topics: create, delete, describe, list, and more partitions for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from ottla.client.admin import api_keys
from ottla.client.admin.session import Answers, Outcomes, Session, judged
from ottla.client.cluster import Target, To
from ottla.client.errors import UnsupportedVersion
from ottla.protocol.wire import Fields


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create. Partitions and replication factor are the broker's default unless given.

    `assignments` says on which brokers each partition is, the preferred leader first; it stands
    instead of both numbers.
    """

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)
    assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """What a new topic came to be; -1 and no id where the broker is too old to tell."""

    name: str
    id: UUID | None
    partitions: int
    replication_factor: int
    configs: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Partition:
    """How a partition stands. `leader` is None while it has none."""

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
    """How many partitions a topic shall have; `assignments` places the new ones, in order."""

    total: int
    assignments: Sequence[Sequence[int]] | None = None


async def create_topics(
    session: Session, topics: Iterable[NewTopic], *, validate_only: bool = False
) -> Outcomes[str, CreatedTopic]:
    """Create topics; with `validate_only` just say whether it would work."""
    wanted = {topic.name: topic for topic in topics}

    async def ask(node: To, names: list[str]) -> Answers[str, CreatedTopic]:
        fields = {
            "topics": [_new(wanted[name]) for name in names],
            "timeout": session.timeout_ms,
            "validate_only": validate_only,
        }
        reply = await session.ask(node, api_keys.CREATE_TOPICS, fields)
        return {row.name: judged(row, _created(row)) for row in reply.topics}

    return await session.each(wanted, session.controller, ask)


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
        return {row.name: judged(row, None) for row in reply.responses}

    return await session.each(names, session.controller, ask)


async def delete_topic(session: Session, name: str) -> None:
    """Delete one topic, or raise."""
    (await delete_topics(session, [name])).all()


async def create_partitions(
    session: Session, topics: Mapping[str, MorePartitions | int], *, validate_only: bool = False
) -> Outcomes[str, None]:
    """Let topics have more partitions; there is no way back to fewer."""

    async def ask(node: To, names: list[str]) -> Answers[str, None]:
        fields = {
            "topics": [_grown(name, topics[name]) for name in names],
            "timeout": session.timeout_ms,
            "validate_only": validate_only,
        }
        reply = await session.ask(node, api_keys.CREATE_PARTITIONS, fields)
        return {row.name: judged(row, None) for row in reply.results}

    return await session.each(topics, session.controller, ask)


async def list_topics(session: Session, *, internal: bool = False) -> list[str]:
    """Every topic's name, in order; the brokers' own only when asked for."""
    fields = {"topics": None, **_METADATA}
    reply = await session.once(Target.ANY, api_keys.METADATA, fields)
    return sorted(row.name for row in reply.topics if internal or not row.is_internal)


async def describe_topics(session: Session, names: Iterable[str]) -> Outcomes[str, Topic]:
    """Topics with their partitions: leaders, replicas, who is in sync."""

    async def ask(node: To, names: list[str]) -> Answers[str, Topic]:
        try:
            rows = await _paged(session, node, names)
        except UnsupportedVersion:
            fields = {"topics": [{"name": name, "topic_id": None} for name in names], **_METADATA}
            rows = list((await session.ask(node, api_keys.METADATA, fields)).topics)
        found: dict[str, list[Any]] = {}
        for row in rows:
            found.setdefault(row.name, []).append(row)
        return {name: judged(rows[0], _topic(rows)) for name, rows in found.items()}

    return await session.each(names, session.anywhere, ask)


async def describe_topic(session: Session, name: str) -> Topic:
    """One topic, or raise."""
    return (await describe_topics(session, [name])).one()


_METADATA: Fields = {
    "allow_auto_topic_creation": False,
    "include_topic_authorized_operations": False,
    "include_cluster_authorized_operations": False,
}


async def _paged(session: Session, node: To, names: list[str]) -> list[Any]:
    """A topic with many partitions comes in several pages."""
    rows: list[Any] = []
    cursor: Fields | None = None
    while True:
        fields = {"topics": [{"name": name} for name in sorted(names)], "cursor": cursor}
        reply = await session.ask(node, api_keys.DESCRIBE_TOPIC_PARTITIONS, fields)
        rows += reply.topics
        if reply.next_cursor is None:
            return rows
        at = reply.next_cursor
        cursor = {"topic_name": at.topic_name, "partition_index": at.partition_index}
        names = [name for name in names if name >= at.topic_name]


def _new(topic: NewTopic) -> Fields:
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


def _created(row: Any) -> CreatedTopic:
    return CreatedTopic(
        row.name,
        row.topic_id,
        row.num_partitions,
        row.replication_factor,
        {config.name: config.value for config in row.configs or ()},
    )


def _grown(name: str, wish: MorePartitions | int) -> Fields:
    wish = MorePartitions(wish) if isinstance(wish, int) else wish
    return {
        "name": name,
        "count": wish.total,
        "assignments": wish.assignments
        and [{"broker_ids": list(brokers)} for brokers in wish.assignments],
    }


def _topic(rows: Sequence[Any]) -> Topic:
    partitions = sorted(
        (_partition(one) for row in rows for one in row.partitions), key=lambda one: one.index
    )
    return Topic(rows[0].name, rows[0].topic_id, rows[0].is_internal, tuple(partitions))


def _partition(row: Any) -> Partition:
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
