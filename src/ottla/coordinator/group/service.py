"""The asynchronous interface of the group coordinator for API handlers.

Owns nothing. Each call finds the group's shard, decides there, and waits for the commit or the
reply. Errors are raised as KafkaError.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence, Set
from typing import Final, NamedTuple, TypeVar

from ottla.coordinator.group import descriptions, offset_commit
from ottla.coordinator.group.classic.heartbeat import MemberIdentity
from ottla.coordinator.group.classic.join import JoinRequest
from ottla.coordinator.group.classic.member import JoinReply, SyncReply
from ottla.coordinator.group.classic.sync import SyncRequest
from ottla.coordinator.group.consumer.group import ConsumerGroup, check_fetch
from ottla.coordinator.group.consumer.service import ConsumerGroups
from ottla.coordinator.group.descriptions import GroupOverview, GroupSummary
from ottla.coordinator.group.offset_commit import CommitRequest
from ottla.coordinator.group.records import Committed
from ottla.coordinator.group.shard import GroupShard
from ottla.coordinator.internal_topic_log import TransactionalWriter
from ottla.coordinator.runtime import Runtime
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicPartition

R = TypeVar("R")

RequestedPartitions = dict[str, list[int]]
"""Partitions by topic."""
FetchedOffsets = dict[str, dict[int, Committed | ErrorCode | None]]


class Fetcher(NamedTuple):
    """The member that fetches offsets of its own group."""

    member_id: str | None
    epoch: int


NOBODY: Final = Fetcher(None, -1)


class Groups:
    def __init__(self, runtime: Runtime[GroupShard], consumer: ConsumerGroups) -> None:
        self.runtime = runtime
        self.consumer = consumer

    def partition_of(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` that a group belongs to."""
        _check_id(group_id)
        return self.runtime.partition_of(group_id)

    # Members

    async def join(self, group_id: str, request: JoinRequest) -> JoinReply:
        _check_id(group_id)
        reply, answer = _promise(JoinReply)
        await self.runtime.write(
            group_id, lambda shard, now: shard.join(group_id, request, answer, now)
        )
        return await reply

    async def sync(self, group_id: str, request: SyncRequest) -> SyncReply:
        _check_id(group_id)
        reply, answer = _promise(SyncReply)
        try:
            await self.runtime.write(
                group_id, lambda shard, now: shard.sync(group_id, request, answer, now)
            )
        except KafkaError as refusal:
            if refusal.code is ErrorCode.coordinator_load_in_progress:
                # The generation may be lost: the member has to rejoin.
                return SyncReply(ErrorCode.rebalance_in_progress)
            if not reply.done():
                raise
        return await reply

    async def heartbeat(
        self, group_id: str, identity: MemberIdentity, generation: int
    ) -> ErrorCode:
        _check_id(group_id)
        try:
            return await self.runtime.write(
                group_id, lambda shard, now: shard.heartbeat(group_id, identity, generation, now)
            )
        except KafkaError as refusal:
            if refusal.code is ErrorCode.coordinator_load_in_progress:
                return ErrorCode.none  # sessions restart when the group is loaded
            raise

    async def leave(self, group_id: str, leavers: Sequence[MemberIdentity]) -> list[ErrorCode]:
        _check_id(group_id)
        return await self.runtime.write(
            group_id, lambda shard, now: shard.leave(group_id, leavers, now)
        )

    # Offsets

    async def commit(
        self, request: CommitRequest, producer: TransactionalWriter | None = None
    ) -> list[ErrorCode]:
        """One error code for each offset; in a transaction they take effect with its commit."""
        _check_id(request.group_id)
        return await self.runtime.write(
            request.group_id, lambda shard, now: shard.commit(request, now), producer=producer
        )

    async def fetch(
        self,
        group_id: str,
        partitions: RequestedPartitions | None,
        *,
        stable: bool,
        fetcher: Fetcher = NOBODY,
    ) -> FetchedOffsets:
        """Committed offsets, of all partitions if none are given; None where there is none.

        With `stable`, offsets pending in a transaction are UNSTABLE_OFFSET_COMMIT.
        """
        _check_id(group_id)

        def query(shard: GroupShard) -> FetchedOffsets:
            group = shard.groups.get(group_id)
            if isinstance(group, ConsumerGroup):
                check_fetch(group, *fetcher)
            return _committed_offsets(shard, group_id, partitions, stable=stable)

        return await self.runtime.read(group_id, query)

    async def delete_offsets(
        self, group_id: str, keys: Collection[tuple[str, int]]
    ) -> dict[str, ErrorCode]:
        """The error of each topic whose offsets were not deleted."""
        _check_id(group_id)
        return await self.runtime.write(
            group_id,
            lambda shard, now: offset_commit.delete_offsets(
                shard.groups.get(group_id), shard.offsets, keys, now
            ),
        )

    def topics_changed(self, names: Collection[str], deleted: Collection[TopicPartition]) -> None:
        """Topics were created, deleted or have more partitions; some partitions were deleted."""
        if names:
            self.consumer.topics_changed(names)
        if deleted:
            self.runtime.write_all(lambda shard, now: shard.forget_partitions(deleted, now))

    # Tools

    async def describe(self, group_id: str) -> GroupSummary | None:
        _check_id(group_id)
        return await self.runtime.read(
            group_id, lambda shard: descriptions.summary(shard.groups.get(group_id))
        )

    def overviews(self, states: Set[str], types: Set[str]) -> Iterator[GroupOverview]:
        """The groups of this coordinator that pass the filters (in lower case), lazily."""
        if self.runtime.is_loading():
            raise KafkaError(ErrorCode.coordinator_load_in_progress)
        groups = [group for owned in self.runtime.active() for group in owned.shard.groups.values()]
        overviews = map(descriptions.overview, groups)
        return filter(descriptions.GroupFilter(states, types).passes, overviews)

    async def delete(self, group_id: str) -> None:
        _check_id(group_id)
        await self.runtime.write(
            group_id,
            lambda shard, now: descriptions.delete(shard.groups.get(group_id), shard.offsets, now),
        )


def _check_id(group_id: str) -> None:
    if not group_id:
        raise KafkaError(ErrorCode.invalid_group_id)


def _promise(_: type[R]) -> tuple[asyncio.Future[R], Callable[[R], None]]:
    """A future reply, and the function that completes it."""
    future: asyncio.Future[R] = asyncio.get_running_loop().create_future()

    def answer(reply: R) -> None:
        if not future.done():  # the waiting request may have been cancelled
            future.set_result(reply)

    return future, answer


def _committed_offsets(
    shard: GroupShard, group_id: str, partitions: RequestedPartitions | None, *, stable: bool
) -> FetchedOffsets:
    offsets = shard.offsets
    if partitions is None:
        partitions = {topic: list(packed) for topic, packed in offsets.of(group_id).items()}

    def committed_offset(topic: str, partition: int) -> Committed | ErrorCode | None:
        if stable and offsets.is_pending(group_id, topic, partition):
            return ErrorCode.unstable_offset_commit
        return offsets.get(group_id, topic, partition)

    return {
        topic: {partition: committed_offset(topic, partition) for partition in indexes}
        for topic, indexes in partitions.items()
    }
