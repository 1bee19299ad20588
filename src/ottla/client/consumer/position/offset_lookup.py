"""Asking brokers where offsets lie: by time, by leader epoch, by group.

Owns the three questions and how they are spread over leaders. Never changes a position.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from itertools import groupby
from typing import Any, Final, NamedTuple, TypeVar

from ottla.client.cluster import Cluster, ConnectionLane, CoordinatorKind
from ottla.client.consumer.group.classic_member import GroupMetadata
from ottla.client.errors import KafkaError, refusal
from ottla.client.offsets import OffsetAndMetadata, OffsetAndTimestamp
from ottla.client.retry import STALE, Deadline, is_retriable, retrying
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition

LIST_OFFSETS: Final = 2
OFFSET_FETCH: Final = 9
OFFSET_FOR_LEADER_EPOCH: Final = 23
NEWEST_LIST_OFFSETS: Final = 10
BY_NAME_OFFSET_FETCH: Final = 9
CONSUMER: Final = -1  # instead of a replica's id
NO_OFFSET: Final = -1

Answer = TypeVar("Answer")


class EpochEnd(NamedTuple):
    """How far a leader epoch goes in the leader's log."""

    leader_epoch: int
    end: int


class OffsetQuery(NamedTuple):
    """One question about one partition."""

    current_leader_epoch: int
    about: int  # a timestamp, or a leader epoch


class OffsetLookup:
    """Questions about offsets, each asked once unless its name says otherwise."""

    def __init__(self, cluster: Cluster, *, read_committed: bool) -> None:
        self._cluster = cluster
        self._isolation = int(read_committed)

    async def offsets_at(
        self, wanted: Mapping[TopicPartition, int], timeout_ms: int
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after each time, retried until all are known; None: there is none.

        -1 asks for the end of the log that may be read, -2 for its start.
        """
        found: dict[TopicPartition, OffsetAndTimestamp | None] = {}

        # Codes here are the leaders', each of its partition.
        async def the_rest() -> None:
            left = {tp: time for tp, time in wanted.items() if tp not in found}
            answers, failed = await self.times(left)
            found.update(answers)
            if failed:
                raise next(iter(failed.values()))

        topics = {tp.topic for tp in wanted}
        await retrying(self._cluster, the_rest, Deadline(self._cluster.clock, timeout_ms), topics)
        return found

    async def times(
        self, wanted: Mapping[TopicPartition, int]
    ) -> tuple[
        dict[TopicPartition, OffsetAndTimestamp | None], dict[TopicPartition, KafkaError | OSError]
    ]:
        """ListOffsets, once: what was found, and what was not with the reason."""

        async def ask(
            node: int, asked: Mapping[TopicPartition, OffsetQuery]
        ) -> dict[TopicPartition, OffsetAndTimestamp | KafkaError | None]:
            fields = {
                "replica_id": CONSUMER,
                "isolation_level": self._isolation,
                "topics": [
                    {"name": topic, "partitions": [_time(tp, asked[tp]) for tp in group]}
                    for topic, group in groupby(sorted(asked), key=lambda tp: tp.topic)
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
                TopicPartition(topic.name, each.partition_index): _offset_and_timestamp(each)
                for topic in reply.topics
                for each in topic.partitions
            }

        return await self._ask_leaders(wanted, ask)

    async def epoch_ends(
        self, wanted: Mapping[TopicPartition, int]
    ) -> tuple[dict[TopicPartition, EpochEnd], dict[TopicPartition, KafkaError | OSError]]:
        """OffsetForLeaderEpoch, once: where each of these epochs ends."""

        async def ask(
            node: int, asked: Mapping[TopicPartition, OffsetQuery]
        ) -> dict[TopicPartition, EpochEnd | KafkaError]:
            fields = {
                "replica_id": CONSUMER,
                "topics": [
                    {"topic": topic, "partitions": [_epoch(tp, asked[tp]) for tp in group]}
                    for topic, group in groupby(sorted(asked), key=lambda tp: tp.topic)
                ],
            }
            reply = await self._cluster.ask(
                node, OFFSET_FOR_LEADER_EPOCH, fields, lane=ConnectionLane.COORDINATION
            )
            return {
                TopicPartition(topic.topic, each.partition): (
                    refusal(each.error_code)
                    if each.error_code
                    else EpochEnd(each.leader_epoch, each.end_offset)
                )
                for topic in reply.topics
                for each in topic.partitions
            }

        return await self._ask_leaders(wanted, ask)

    async def committed(
        self, group: GroupMetadata, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """OffsetFetch, once: what the group has committed; partitions without are left out."""
        cluster = self._cluster
        topics = [
            {"name": topic, "partition_indexes": [tp.partition for tp in held]}
            for topic, held in groupby(sorted(partitions), key=lambda tp: tp.topic)
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
        told = reply.groups[0] if reply.groups else reply
        if told.error_code:
            if told.error_code in (
                ErrorCode.not_coordinator,
                ErrorCode.coordinator_not_available,
            ):
                cluster.forget_coordinator(CoordinatorKind.GROUP, group.group_id)
            raise refusal(told.error_code)
        return _committed(told.topics)

    async def _ask_leaders(
        self,
        wanted: Mapping[TopicPartition, int],
        ask: Callable[
            [int, Mapping[TopicPartition, OffsetQuery]],
            Awaitable[dict[TopicPartition, Answer | KafkaError]],
        ],
    ) -> tuple[dict[TopicPartition, Answer], dict[TopicPartition, KafkaError | OSError]]:
        """Ask each leader about its partitions, all at the same time."""
        found: dict[TopicPartition, Answer] = {}
        failed: dict[TopicPartition, KafkaError | OSError] = {}
        by_leader: dict[int, dict[TopicPartition, OffsetQuery]] = {}
        view = self._cluster.metadata
        for tp, about in wanted.items():
            seen = view.partition(tp)
            if seen is None or seen.leader < 0:
                code = ErrorCode.leader_not_available
                if seen is None:
                    code = view.errors.get(tp.topic, ErrorCode.unknown_topic_or_partition)
                failed[tp] = refusal(code, f"{tp}: {code.name}")
            else:
                by_leader.setdefault(seen.leader, {})[tp] = OffsetQuery(seen.leader_epoch, about)

        async def one(node: int, asked: Mapping[TopicPartition, OffsetQuery]) -> None:
            try:
                answers = await ask(node, asked)
            except (KafkaError, OSError) as error:
                failed.update(dict.fromkeys(asked, error))
                return
            for tp in asked:
                answer = answers.get(tp, refusal(ErrorCode.unknown_topic_or_partition))
                if isinstance(answer, KafkaError):
                    failed[tp] = answer
                else:
                    found[tp] = answer

        async with asyncio.TaskGroup() as tasks:
            for node, asked in by_leader.items():
                tasks.create_task(one(node, asked))
        return found, failed


def is_retriable_lookup(error: BaseException) -> bool:
    """A partition's refusal that passes, or that a look at the metadata may cure."""
    return is_retriable(error) or (isinstance(error, KafkaError) and error.code in STALE)


def _time(tp: TopicPartition, asked: OffsetQuery) -> dict[str, int]:
    return {
        "partition_index": tp.partition,
        "current_leader_epoch": asked.current_leader_epoch,
        "timestamp": asked.about,
    }


def _epoch(tp: TopicPartition, asked: OffsetQuery) -> dict[str, int]:
    return {
        "partition": tp.partition,
        "current_leader_epoch": asked.current_leader_epoch,
        "leader_epoch": asked.about,
    }


def _offset_and_timestamp(told: Any) -> OffsetAndTimestamp | KafkaError | None:
    if told.error_code:
        return refusal(told.error_code)
    if told.offset == NO_OFFSET:
        return None
    return OffsetAndTimestamp(told.offset, told.timestamp, told.leader_epoch)


def _committed(topics: Iterable[Any]) -> dict[TopicPartition, OffsetAndMetadata]:
    found: dict[TopicPartition, OffsetAndMetadata] = {}
    for topic in topics:
        for each in topic.partitions:
            if each.error_code:
                raise refusal(each.error_code, f"{topic.name}-{each.partition_index}")
            if each.committed_offset != NO_OFFSET:
                found[TopicPartition(topic.name, each.partition_index)] = OffsetAndMetadata(
                    each.committed_offset, each.metadata or "", each.committed_leader_epoch
                )
    return found
