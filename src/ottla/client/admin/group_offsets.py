"""The offsets that groups have committed: what they are, setting them, forgetting them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ottla.client.admin import api_keys
from ottla.client.admin.offsets import by_topic, indexes_by_topic
from ottla.client.admin.session import Answers, Outcomes, Session, is_passing, judged, refused
from ottla.client.cluster import To
from ottla.model.ids import TopicPartition
from ottla.protocol.wire import Fields

_BY_NAME: Final = 9  # later versions of OffsetCommit and OffsetFetch call topics by id
_NOBODY: Final[Fields] = {
    "generation_id_or_member_epoch": -1,
    "generation_id": -1,
    "member_id": "",
    "member_epoch": -1,
    "group_instance_id": None,
}


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """Where a group will go on: the offset of the next record it wants."""

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
    """What a group has committed, for these partitions or for all; without those it has not.

    With `require_stable` it waits for transactions that are about to change them.
    """
    wanted = None if partitions is None else indexes_by_topic("partition_indexes", partitions)

    async def ask(
        node: To, groups: list[str]
    ) -> Answers[str, Outcomes[TopicPartition, CommittedOffset]]:
        one = {"group_id": group, "topics": wanted, "member_id": None, "member_epoch": -1}
        fields = {**one, "groups": [one], "require_stable": require_stable}
        reply = await session.ask(node, api_keys.OFFSET_FETCH, fields, at_most=_BY_NAME)
        row = next(iter(reply.groups), reply)  # until version 7 the reply is of one group
        found = _committed(row)
        unsettled = next(filter(is_passing, found.failed.values()), found)
        return {group: judged(row, unsettled)}

    return (await session.each([group], session.groups, ask)).one()


async def alter_group_offsets(
    session: Session, group: str, offsets: Mapping[TopicPartition, CommittedOffset | int]
) -> Outcomes[TopicPartition, None]:
    """Set where a group without members will go on."""

    async def ask(node: To, groups: list[str]) -> Answers[str, Outcomes[TopicPartition, None]]:
        rows = {one: _commit(one, offset) for one, offset in offsets.items()}
        fields = {"group_id": group, **_NOBODY, "topics": by_topic("partitions", rows)}
        fields["retention_time_ms"] = -1
        reply = await session.ask(node, api_keys.OFFSET_COMMIT, fields, at_most=_BY_NAME)
        told = _told(reply)
        return {group: next(filter(is_passing, told.failed.values()), told)}

    return (await session.each([group], session.groups, ask)).one()


async def delete_group_offsets(
    session: Session, group: str, partitions: Iterable[TopicPartition]
) -> Outcomes[TopicPartition, None]:
    """Forget what a group committed for partitions that none of its members subscribes to."""
    rows = {one: {"partition_index": one.partition} for one in partitions}

    async def ask(node: To, groups: list[str]) -> Answers[str, Outcomes[TopicPartition, None]]:
        fields = {"group_id": group, "topics": by_topic("partitions", rows)}
        reply = await session.ask(node, api_keys.OFFSET_DELETE, fields)
        return {group: judged(reply, _told(reply))}

    return (await session.each([group], session.groups, ask)).one()


def _committed(row: Any) -> Outcomes[TopicPartition, CommittedOffset]:
    found = Outcomes[TopicPartition, CommittedOffset]()
    for topic in row.topics:
        for one in topic.partitions:
            partition = TopicPartition(topic.name, one.partition_index)
            why_not = refused(one)
            if why_not is not None:
                found[partition] = why_not
            elif one.committed_offset >= 0:
                epoch = one.committed_leader_epoch
                found[partition] = CommittedOffset(
                    one.committed_offset, epoch if epoch >= 0 else None, one.metadata or ""
                )
    return found


def _commit(partition: TopicPartition, offset: CommittedOffset | int) -> Fields:
    offset = CommittedOffset(offset) if isinstance(offset, int) else offset
    return {
        "partition_index": partition.partition,
        "committed_offset": offset.offset,
        "committed_leader_epoch": -1 if offset.leader_epoch is None else offset.leader_epoch,
        "committed_metadata": offset.metadata,
    }


def _told(reply: Any) -> Outcomes[TopicPartition, None]:
    told = Outcomes[TopicPartition, None]()
    for topic in reply.topics:
        for row in topic.partitions:
            told[TopicPartition(topic.name, row.partition_index)] = judged(row, None)
    return told
