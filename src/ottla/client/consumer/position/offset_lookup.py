"""Offset look-ups: by timestamp, by leader epoch, by group.

Owns the three requests and their distribution over leaders. Never changes a position.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from itertools import groupby
from typing import Final, NamedTuple, TypeVar

from ottla.client.cluster import Cluster, ConnectionLane, CoordinatorKind
from ottla.client.consumer.group.classic_member import GroupMetadata
from ottla.client.errors import KafkaError, refusal
from ottla.client.offsets import OffsetAndMetadata, OffsetAndTimestamp
from ottla.client.retry import STALE, Deadline, is_retriable, retrying
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol.schema import KioStruct

LIST_OFFSETS: Final = 2
OFFSET_FETCH: Final = 9
OFFSET_FOR_LEADER_EPOCH: Final = 23
NEWEST_LIST_OFFSETS: Final = 10
BY_NAME_OFFSET_FETCH: Final = 9
CONSUMER: Final = -1  # instead of a replica's id
NO_OFFSET: Final = -1

Answer = TypeVar("Answer")


class EpochEnd(NamedTuple):
    """The end offset of a leader epoch in the leader's log."""

    leader_epoch: int
    end: int


class OffsetQuery(NamedTuple):
    """A query for one partition."""

    current_leader_epoch: int
    about: int  # a timestamp, or a leader epoch


class OffsetLookup:
    """Look-ups of offsets, each sent once unless its docstring says otherwise."""

    def __init__(self, cluster: Cluster, *, read_committed: bool) -> None:
        self._cluster = cluster
        self._isolation = int(read_committed)

    async def offsets_at(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: int
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after each timestamp, with retries; None if there is none.

        -1 stands for the end of the readable log, -2 for its start.
        """
        offsets: dict[TopicPartition, OffsetAndTimestamp | None] = {}

        # Error codes here are the leaders', each of its partition.
        async def look_up_missing() -> None:
            missing = {tp: time for tp, time in timestamps.items() if tp not in offsets}
            answers, failed = await self.times(missing)
            offsets.update(answers)
            if failed:
                raise next(iter(failed.values()))

        topics = {tp.topic for tp in timestamps}
        await retrying(
            self._cluster, look_up_missing, Deadline(self._cluster.clock, timeout_ms), topics
        )
        return offsets

    async def times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> tuple[
        dict[TopicPartition, OffsetAndTimestamp | None], dict[TopicPartition, KafkaError | OSError]
    ]:
        """ListOffsets, once: offsets, and errors by partition."""

        async def ask(
            node: int, queries: Mapping[TopicPartition, OffsetQuery]
        ) -> dict[TopicPartition, OffsetAndTimestamp | KafkaError | None]:
            fields = {
                "replica_id": CONSUMER,
                "isolation_level": self._isolation,
                "topics": [
                    {"name": topic, "partitions": [_time(tp, queries[tp]) for tp in group]}
                    for topic, group in groupby(sorted(queries), key=lambda tp: tp.topic)
                ],
                "timeout": self._cluster.config.request_timeout_ms,
            }
            reply = await self._cluster.ask(
                node,
                LIST_OFFSETS,
                fields,
                at_most=NEWEST_LIST_OFFSETS,
                lane=ConnectionLane.COORDINATION,
            )
            return {
                TopicPartition(topic.name, partition.partition_index): _offset_and_timestamp(
                    partition
                )
                for topic in reply.topics
                for partition in topic.partitions
            }

        return await self._ask_leaders(timestamps, ask)

    async def epoch_ends(
        self, epochs: Mapping[TopicPartition, int]
    ) -> tuple[dict[TopicPartition, EpochEnd], dict[TopicPartition, KafkaError | OSError]]:
        """OffsetForLeaderEpoch, once: the end offset of each of these epochs."""

        async def ask(
            node: int, queries: Mapping[TopicPartition, OffsetQuery]
        ) -> dict[TopicPartition, EpochEnd | KafkaError]:
            fields = {
                "replica_id": CONSUMER,
                "topics": [
                    {"topic": topic, "partitions": [_epoch(tp, queries[tp]) for tp in group]}
                    for topic, group in groupby(sorted(queries), key=lambda tp: tp.topic)
                ],
            }
            reply = await self._cluster.ask(
                node, OFFSET_FOR_LEADER_EPOCH, fields, lane=ConnectionLane.COORDINATION
            )
            return {
                TopicPartition(topic.topic, partition.partition): (
                    refusal(partition.error_code)
                    if partition.error_code
                    else EpochEnd(partition.leader_epoch, partition.end_offset)
                )
                for topic in reply.topics
                for partition in topic.partitions
            }

        return await self._ask_leaders(epochs, ask)

    async def committed_offsets(
        self, group: GroupMetadata, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """OffsetFetch, once: committed offsets; partitions without one are omitted."""
        cluster = self._cluster
        topics = [
            {"name": topic, "partition_indexes": [tp.partition for tp in partitions_of_topic]}
            for topic, partitions_of_topic in groupby(sorted(partitions), key=lambda tp: tp.topic)
        ]
        fields = {
            "group_id": group.group_id,
            "topics": topics,
            "groups": [
                {
                    "group_id": group.group_id,
                    "member_id": group.member_id or None,
                    "member_epoch": group.generation_id if group.member_id else -1,
                    "topics": topics,
                }
            ],
            "require_stable": True,
        }
        node = await cluster.coordinator(CoordinatorKind.GROUP, group.group_id)
        try:
            reply = await cluster.ask(
                node,
                OFFSET_FETCH,
                fields,
                at_most=BY_NAME_OFFSET_FETCH,
                lane=ConnectionLane.COORDINATION,
            )
        except OSError:
            cluster.forget_coordinator(CoordinatorKind.GROUP, group.group_id)
            raise
        group_reply = reply.groups[0] if reply.groups else reply
        if group_reply.error_code:
            if group_reply.error_code in (
                ErrorCode.not_coordinator,
                ErrorCode.coordinator_not_available,
            ):
                cluster.forget_coordinator(CoordinatorKind.GROUP, group.group_id)
            raise refusal(group_reply.error_code)
        return _committed_offsets(group_reply.topics)

    async def _ask_leaders(
        self,
        values: Mapping[TopicPartition, int],
        ask: Callable[
            [int, Mapping[TopicPartition, OffsetQuery]],
            Awaitable[dict[TopicPartition, Answer | KafkaError]],
        ],
    ) -> tuple[dict[TopicPartition, Answer], dict[TopicPartition, KafkaError | OSError]]:
        """Ask each leader about its partitions, all at the same time."""
        results: dict[TopicPartition, Answer] = {}
        failed: dict[TopicPartition, KafkaError | OSError] = {}
        by_leader: dict[int, dict[TopicPartition, OffsetQuery]] = {}
        view = self._cluster.metadata
        for tp, about in values.items():
            partition = view.partition(tp)
            if partition is None or partition.leader < 0:
                code = ErrorCode.leader_not_available
                if partition is None:
                    code = view.errors.get(tp.topic, ErrorCode.unknown_topic_or_partition)
                failed[tp] = refusal(code, f"{tp}: {code.name}")
            else:
                by_leader.setdefault(partition.leader, {})[tp] = OffsetQuery(
                    partition.leader_epoch, about
                )

        async def ask_leader(node: int, queries: Mapping[TopicPartition, OffsetQuery]) -> None:
            try:
                answers = await ask(node, queries)
            except (KafkaError, OSError) as error:
                failed.update(dict.fromkeys(queries, error))
                return
            for tp in queries:
                answer = answers.get(tp, refusal(ErrorCode.unknown_topic_or_partition))
                if isinstance(answer, KafkaError):
                    failed[tp] = answer
                else:
                    results[tp] = answer

        async with asyncio.TaskGroup() as tasks:
            for node, queries in by_leader.items():
                tasks.create_task(ask_leader(node, queries))
        return results, failed


def is_retriable_lookup(error: BaseException) -> bool:
    """Whether an error is retriable, or a metadata refresh may resolve it."""
    return is_retriable(error) or (isinstance(error, KafkaError) and error.code in STALE)


def _time(tp: TopicPartition, query: OffsetQuery) -> dict[str, int]:
    return {
        "partition_index": tp.partition,
        "current_leader_epoch": query.current_leader_epoch,
        "timestamp": query.about,
    }


def _epoch(tp: TopicPartition, query: OffsetQuery) -> dict[str, int]:
    return {
        "partition": tp.partition,
        "current_leader_epoch": query.current_leader_epoch,
        "leader_epoch": query.about,
    }


def _offset_and_timestamp(row: KioStruct) -> OffsetAndTimestamp | KafkaError | None:
    if row.error_code:
        return refusal(row.error_code)
    if row.offset == NO_OFFSET:
        return None
    return OffsetAndTimestamp(row.offset, row.timestamp, row.leader_epoch)


def _committed_offsets(topics: Iterable[KioStruct]) -> dict[TopicPartition, OffsetAndMetadata]:
    offsets: dict[TopicPartition, OffsetAndMetadata] = {}
    for topic in topics:
        for partition in topic.partitions:
            if partition.error_code:
                tp = TopicPartition(topic.name, partition.partition_index)
                code = partition.error_code
                raise refusal(code, f"cannot read the committed offset of {tp}: {code.name}")
            if partition.committed_offset != NO_OFFSET:
                offsets[TopicPartition(topic.name, partition.partition_index)] = OffsetAndMetadata(
                    partition.committed_offset,
                    partition.metadata or "",
                    partition.committed_leader_epoch,
                )
    return offsets
