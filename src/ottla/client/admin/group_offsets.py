"""Committed offsets of groups: listing, altering, deleting them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ottla.client.admin import api_keys
from ottla.client.admin.offsets import by_topic, indexes_by_topic
from ottla.client.admin.session import (
    Answers,
    Outcomes,
    Session,
    error_of,
    is_passing,
    result_or_error,
)
from ottla.client.cluster import To
from ottla.model.ids import TopicPartition
from ottla.protocol.schema import KioMessage, KioStruct
from ottla.protocol.wire import Fields

_BY_NAME: Final = 9  # later versions of OffsetCommit and OffsetFetch name topics by id
_NO_MEMBER: Final[Fields] = {
    "generation_id_or_member_epoch": -1,
    "generation_id": -1,
    "member_id": "",
    "member_epoch": -1,
    "group_instance_id": None,
}


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """A committed offset: that of the next record the group will read."""

    offset: int
    leader_epoch: int | None = None
    metadata: str = ""


async def list_group_offsets(
    session: Session,
    group: str,
    partitions: Iterable[TopicPartition] | None = None,
    *,
    require_stable: bool = False,
) -> Outcomes[TopicPartition, CommittedOffset]:
    """A group's committed offsets, for these partitions or for all that have one.

    With `require_stable` it waits for open transactions that would change them.
    """
    topics = None if partitions is None else indexes_by_topic("partition_indexes", partitions)

    async def ask(
        node: To, groups: list[str]
    ) -> Answers[str, Outcomes[TopicPartition, CommittedOffset]]:
        request = {"group_id": group, "topics": topics, "member_id": None, "member_epoch": -1}
        fields = {**request, "groups": [request], "require_stable": require_stable}
        reply = await session.ask(node, api_keys.OFFSET_FETCH, fields, at_most=_BY_NAME)
        row = next(iter(reply.groups), reply)  # until version 7 the reply is of one group
        committed = _committed_offsets(row)
        outcome = next(filter(is_passing, committed.failed.values()), committed)
        return {group: result_or_error(row, outcome)}

    return (await session.for_each([group], session.groups, ask)).one()


async def alter_group_offsets(
    session: Session, group: str, offsets: Mapping[TopicPartition, CommittedOffset | int]
) -> Outcomes[TopicPartition, None]:
    """Set the committed offsets of a group that has no members."""

    async def ask(node: To, groups: list[str]) -> Answers[str, Outcomes[TopicPartition, None]]:
        rows = {partition: _commit(partition, offset) for partition, offset in offsets.items()}
        fields = {"group_id": group, **_NO_MEMBER, "topics": by_topic("partitions", rows)}
        fields["retention_time_ms"] = -1
        reply = await session.ask(node, api_keys.OFFSET_COMMIT, fields, at_most=_BY_NAME)
        outcomes = _outcomes(reply)
        return {group: next(filter(is_passing, outcomes.failed.values()), outcomes)}

    return (await session.for_each([group], session.groups, ask)).one()


async def delete_group_offsets(
    session: Session, group: str, partitions: Iterable[TopicPartition]
) -> Outcomes[TopicPartition, None]:
    """Delete committed offsets of partitions that no member of the group subscribes to."""
    rows = {partition: {"partition_index": partition.partition} for partition in partitions}

    async def ask(node: To, groups: list[str]) -> Answers[str, Outcomes[TopicPartition, None]]:
        fields = {"group_id": group, "topics": by_topic("partitions", rows)}
        reply = await session.ask(node, api_keys.OFFSET_DELETE, fields)
        return {group: result_or_error(reply, _outcomes(reply))}

    return (await session.for_each([group], session.groups, ask)).one()


def _committed_offsets(group: KioStruct) -> Outcomes[TopicPartition, CommittedOffset]:
    committed = Outcomes[TopicPartition, CommittedOffset]()
    for topic in group.topics:
        for row in topic.partitions:
            partition = TopicPartition(topic.name, row.partition_index)
            error = error_of(row)
            if error is not None:
                committed[partition] = error
            elif row.committed_offset >= 0:
                epoch = row.committed_leader_epoch
                committed[partition] = CommittedOffset(
                    row.committed_offset, epoch if epoch >= 0 else None, row.metadata or ""
                )
    return committed


def _commit(partition: TopicPartition, offset: CommittedOffset | int) -> Fields:
    offset = CommittedOffset(offset) if isinstance(offset, int) else offset
    return {
        "partition_index": partition.partition,
        "committed_offset": offset.offset,
        "committed_leader_epoch": -1 if offset.leader_epoch is None else offset.leader_epoch,
        "committed_metadata": offset.metadata,
    }


def _outcomes(reply: KioMessage) -> Outcomes[TopicPartition, None]:
    outcomes = Outcomes[TopicPartition, None]()
    for topic in reply.topics:
        for row in topic.partitions:
            outcomes[TopicPartition(topic.name, row.partition_index)] = result_or_error(row, None)
    return outcomes
