"""Offsets of partitions: start, end, by timestamp; and deleting records below an offset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from ottla.client.admin import api_keys
from ottla.client.admin.session import Answers, Outcomes, Session, result_or_error
from ottla.client.cluster import To
from ottla.model.ids import TopicPartition
from ottla.protocol.schema import KioStruct
from ottla.protocol.wire import Fields

EVERYTHING: int = -1
"""As an offset for `delete_records`: the high watermark."""
_CONSUMER: int = -1


class OffsetSpec(IntEnum):
    """Which offset to list; a number from 0 on is a timestamp in milliseconds since 1970."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3


@dataclass(frozen=True, slots=True)
class ListedOffset:
    """An offset, and its record's timestamp if it was listed by timestamp.

    `offset` is None if there is no record at or after the timestamp.
    """

    offset: int | None
    timestamp: int
    leader_epoch: int


async def list_offsets(
    session: Session,
    specs: Mapping[TopicPartition, OffsetSpec | int],
    *,
    read_committed: bool = False,
    exists: bool = False,
) -> Outcomes[TopicPartition, ListedOffset]:
    """The start or end offset of each partition, or the first offset at or after a timestamp.

    With `read_committed` the end offset is the last stable offset. With `exists` the caller knows
    that the partitions exist: if brokers have not heard of them yet, they are asked again.
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
                    partition: {
                        "partition_index": partition.partition,
                        "timestamp": int(specs[partition]),
                    }
                    for partition in partitions
                },
            ),
            "timeout": session.timeout_ms,
        }
        reply = await session.ask(node, api_keys.LIST_OFFSETS, fields)
        return {
            TopicPartition(topic.name, row.partition_index): result_or_error(
                row, _listed_offset(row)
            )
            for topic in reply.topics
            for row in topic.partitions
        }

    route = session.leaders_of_existing if exists else session.leaders
    return await session.for_each(specs, route, ask)


async def delete_records(
    session: Session, before: Mapping[TopicPartition, int]
) -> Outcomes[TopicPartition, int]:
    """Delete the records below an offset of each partition; its new start offset.

    The offset -1 stands for the high watermark.
    """

    async def ask(node: To, partitions: list[TopicPartition]) -> Answers[TopicPartition, int]:
        fields = {
            "topics": by_topic(
                "partitions",
                {
                    partition: {"partition_index": partition.partition, "offset": before[partition]}
                    for partition in partitions
                },
            ),
            "timeout": session.timeout_ms,
        }
        reply = await session.ask(node, api_keys.DELETE_RECORDS, fields)
        return {
            TopicPartition(topic.name, row.partition_index): result_or_error(row, row.low_watermark)
            for topic in reply.topics
            for row in topic.partitions
        }

    return await session.for_each(before, session.leaders, ask)


def by_topic(
    inner: str, items: Mapping[TopicPartition, object], *, name: str = "name"
) -> list[Fields]:
    """Items of partitions, nested as in requests: a list of topics, each with its list."""
    topics: dict[str, list[object]] = {}
    for partition, item in items.items():
        topics.setdefault(partition.topic, []).append(item)
    return [{name: topic, inner: listed} for topic, listed in topics.items()]


def indexes_by_topic(
    inner: str, partitions: Iterable[TopicPartition], *, name: str = "name"
) -> list[Fields]:
    """Partition indexes, nested as in requests."""
    return by_topic(inner, {partition: partition.partition for partition in partitions}, name=name)


def _listed_offset(row: KioStruct) -> ListedOffset:
    return ListedOffset(
        None if row.offset < 0 else row.offset,
        row.timestamp,
        row.leader_epoch,
    )
