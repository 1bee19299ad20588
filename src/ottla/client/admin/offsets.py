"""Offsets of partitions: where they begin, end or were at a time; and cutting off what is old."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from ottla.client.admin import api_keys
from ottla.client.admin.session import Answers, Outcomes, Session, judged
from ottla.client.cluster import To
from ottla.model.ids import TopicPartition
from ottla.protocol.wire import Fields

EVERYTHING: int = -1
"""As an offset for `delete_records`: all that readers can see now."""
_CONSUMER: int = -1


class OffsetSpec(IntEnum):
    """Which offset is meant; any number from 0 on is a time in milliseconds since 1970."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3


@dataclass(frozen=True, slots=True)
class ListedOffset:
    """An offset, and the time of its record where it was looked for by time.

    `offset` is None when no record is that late.
    """

    offset: int | None
    timestamp: int
    leader_epoch: int


async def list_offsets(
    session: Session,
    wanted: Mapping[TopicPartition, OffsetSpec | int],
    *,
    read_committed: bool = False,
) -> Outcomes[TopicPartition, ListedOffset]:
    """Where each partition begins or ends, or the first offset at a time or later.

    With `read_committed` the end is before the first transaction that is still open.
    """

    async def ask(
        node: To, partitions: list[TopicPartition]
    ) -> Answers[TopicPartition, ListedOffset]:
        fields = {
            "replica_id": _CONSUMER,
            "isolation_level": int(read_committed),
            "topics": by_topic(
                "partitions",
                {
                    one: {"partition_index": one.partition, "timestamp": int(wanted[one])}
                    for one in partitions
                },
            ),
            "timeout": session.timeout_ms,
        }
        reply = await session.ask(node, api_keys.LIST_OFFSETS, fields)
        return {
            TopicPartition(topic.name, row.partition_index): judged(row, _listed(row))
            for topic in reply.topics
            for row in topic.partitions
        }

    return await session.each(wanted, session.leaders, ask)


async def delete_records(
    session: Session, before: Mapping[TopicPartition, int]
) -> Outcomes[TopicPartition, int]:
    """Forget the records below an offset of each partition; where it begins then.

    The offset -1 stands for everything that readers can see.
    """

    async def ask(node: To, partitions: list[TopicPartition]) -> Answers[TopicPartition, int]:
        fields = {
            "topics": by_topic(
                "partitions",
                {
                    one: {"partition_index": one.partition, "offset": before[one]}
                    for one in partitions
                },
            ),
            "timeout": session.timeout_ms,
        }
        reply = await session.ask(node, api_keys.DELETE_RECORDS, fields)
        return {
            TopicPartition(topic.name, row.partition_index): judged(row, row.low_watermark)
            for topic in reply.topics
            for row in topic.partitions
        }

    return await session.each(before, session.leaders, ask)


def by_topic(
    inner: str, items: Mapping[TopicPartition, object], *, name: str = "name"
) -> list[Fields]:
    """Items of partitions as requests nest them: a list of topics, each with its list."""
    topics: dict[str, list[object]] = {}
    for partition, item in items.items():
        topics.setdefault(partition.topic, []).append(item)
    return [{name: topic, inner: listed} for topic, listed in topics.items()]


def indexes_by_topic(
    inner: str, partitions: Iterable[TopicPartition], *, name: str = "name"
) -> list[Fields]:
    """Partitions as requests nest them where their number is all that is said."""
    return by_topic(inner, {one: one.partition for one in partitions}, name=name)


def _listed(row: Any) -> ListedOffset:
    return ListedOffset(
        None if row.offset < 0 else row.offset,
        row.timestamp,
        row.leader_epoch,
    )
