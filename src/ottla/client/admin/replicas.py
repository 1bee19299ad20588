"""Replicas: electing leaders, reassigning partitions to other brokers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from ottla.client.admin import api_keys
from ottla.client.admin.offsets import by_topic, indexes_by_topic
from ottla.client.admin.session import Answers, Outcomes, Session, result_or_error
from ottla.client.cluster import Target, To
from ottla.model.ids import TopicPartition


class ElectionKind(IntEnum):
    """The preferred leader; or any live replica, which may lose records."""

    PREFERRED = 0
    UNCLEAN = 1


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A reassignment in progress: all current replicas, those being added, those being removed."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


async def elect_leaders(
    session: Session,
    partitions: Iterable[TopicPartition] | None = None,
    *,
    kind: ElectionKind = ElectionKind.PREFERRED,
) -> Outcomes[TopicPartition, None]:
    """Elect the preferred leader, or any leader; None means every partition."""
    chosen = None if partitions is None else list(partitions)
    fields = {
        "election_type": int(kind),
        "topic_partitions": chosen and indexes_by_topic("partitions", chosen, name="topic"),
        "timeout": session.timeout_ms,
    }
    if chosen == []:
        return Outcomes()
    reply = await session.once(Target.CONTROLLER, api_keys.ELECT_LEADERS, fields)
    outcomes = Outcomes[TopicPartition, None]()
    for topic in reply.replica_election_results:
        for row in topic.partition_result:
            outcomes[TopicPartition(topic.topic, row.partition_id)] = result_or_error(row, None)
    return outcomes


async def alter_partition_reassignments(
    session: Session, moves: Mapping[TopicPartition, Sequence[int] | None]
) -> Outcomes[TopicPartition, None]:
    """Move partitions to these brokers, the preferred leader first; None cancels a move."""

    async def ask(node: To, partitions: list[TopicPartition]) -> Answers[TopicPartition, None]:
        rows = {
            partition: {"partition_index": partition.partition, "replicas": moves[partition]}
            for partition in partitions
        }
        fields = {"timeout": session.timeout_ms, "topics": by_topic("partitions", rows)}
        reply = await session.ask(node, api_keys.ALTER_PARTITION_REASSIGNMENTS, fields)
        error = result_or_error(reply, None)
        if error is not None:
            return dict.fromkeys(partitions, error)
        return {
            TopicPartition(topic.name, row.partition_index): result_or_error(row, None)
            for topic in reply.responses
            for row in topic.partitions
        }

    return await session.for_each(moves, session.controller, ask)


async def list_partition_reassignments(
    session: Session, partitions: Iterable[TopicPartition] | None = None
) -> dict[TopicPartition, Reassignment]:
    """The reassignments in progress, of these partitions or of all."""
    chosen = None if partitions is None else indexes_by_topic("partition_indexes", partitions)
    fields = {"timeout": session.timeout_ms, "topics": chosen}
    reply = await session.once(Target.CONTROLLER, api_keys.LIST_PARTITION_REASSIGNMENTS, fields)
    return {
        TopicPartition(topic.name, row.partition_index): Reassignment(
            tuple(row.replicas), tuple(row.adding_replicas), tuple(row.removing_replicas)
        )
        for topic in reply.topics
        for row in topic.partitions
    }
