"""The asynchronous face of the group coordinator: what API handlers call.

Owns nothing. Each call finds the group's shard, decides there, and waits for what the decision
waits for. Refusals are raised as KafkaError.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from ottla.coordinator.group import descriptions, offset_commit
from ottla.coordinator.group.classic.heartbeat import LeavingMember
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

Asked = dict[str, list[int]]
"""Topics with the partitions asked for."""
Found = dict[str, dict[int, Committed | ErrorCode | None]]


class Fetcher(NamedTuple):
    """A member of a consumer group that asks for its own sake."""

    member_id: str | None
    epoch: int


NOBODY: Final = Fetcher(None, -1)


class Groups:
    def __init__(self, runtime: Runtime[GroupShard], consumer: ConsumerGroups) -> None:
        self.runtime = runtime
        self.consumer = consumer

    def partition_of(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` a group belongs to."""
        _check_id(group_id)
        return self.runtime.partition_of(group_id)

    # Members

    async def join(self, group_id: str, ask: JoinRequest) -> JoinReply:
        _check_id(group_id)
        reply, answer = _promise(JoinReply)
        await self.runtime.write(
            group_id, lambda shard, now: shard.join(group_id, ask, answer, now)
        )
        return await reply

    async def sync(self, group_id: str, ask: SyncRequest) -> SyncReply:
        _check_id(group_id)
        reply, answer = _promise(SyncReply)
        try:
            await self.runtime.write(
                group_id, lambda shard, now: shard.sync(group_id, ask, answer, now)
            )
        except KafkaError as refusal:
            if refusal.code is ErrorCode.coordinator_load_in_progress:
                # The generation may be lost: joining again is what helps.
                return SyncReply(ErrorCode.rebalance_in_progress)
            if not reply.done():
                raise
        return await reply

    async def heartbeat(self, group_id: str, who: LeavingMember, generation: int) -> ErrorCode:
        _check_id(group_id)
        try:
            return await self.runtime.write(
                group_id, lambda shard, now: shard.heartbeat(group_id, who, generation, now)
            )
        except KafkaError as refusal:
            if refusal.code is ErrorCode.coordinator_load_in_progress:
                return ErrorCode.none  # sessions begin anew when it is loaded
            raise

    async def leave(self, group_id: str, leavers: Sequence[LeavingMember]) -> list[ErrorCode]:
        _check_id(group_id)
        return await self.runtime.write(
            group_id, lambda shard, now: shard.leave(group_id, leavers, now)
        )

    # Offsets

    async def commit(
        self, ask: CommitRequest, producer: TransactionalWriter | None = None
    ) -> list[ErrorCode]:
        """A code for each offset; in a transaction they count when it is committed."""
        _check_id(ask.group_id)
        return await self.runtime.write(
            ask.group_id, lambda shard, now: shard.commit(ask, now), producer=producer
        )

    async def fetch(
        self, group_id: str, asked: Asked | None, *, stable: bool, who: Fetcher = NOBODY
    ) -> Found:
        """Committed offsets, all of them if none are named; None where there is none.

        With `stable`, one that an open transaction may change is said to be unstable.
        """
        _check_id(group_id)

        def query(shard: GroupShard) -> Found:
            group = shard.groups.get(group_id)
            if isinstance(group, ConsumerGroup):
                check_fetch(group, *who)
            return _found(shard, group_id, asked, stable=stable)

        return await self.runtime.read(group_id, query)

    async def delete_offsets(
        self, group_id: str, keys: Collection[tuple[str, int]]
    ) -> dict[str, ErrorCode]:
        """The refusal for each topic that was not touched."""
        _check_id(group_id)
        return await self.runtime.write(
            group_id,
            lambda shard, now: offset_commit.delete_offsets(
                shard.groups.get(group_id), shard.offsets, keys, now
            ),
        )

    def topics_changed(self, names: Collection[str], gone: Collection[TopicPartition]) -> None:
        """Topics were created, deleted or have other partitions; some partitions are gone."""
        if names:
            self.consumer.topics_changed(names)
        if gone:
            self.runtime.write_all(lambda shard, now: shard.forget_partitions(gone, now))

    # Tools

    async def describe(self, group_id: str) -> GroupSummary | None:
        _check_id(group_id)
        return await self.runtime.read(
            group_id, lambda shard: descriptions.summary(shard.groups.get(group_id))
        )

    def overviews(self, states: Collection[str], types: Collection[str]) -> Iterator[GroupOverview]:
        """Every group coordinated here now that passes the filters, looked at one by one."""
        if self.runtime.is_loading():
            raise KafkaError(ErrorCode.coordinator_load_in_progress)
        groups = [group for owned in self.runtime.active() for group in owned.shard.groups.values()]
        shown = map(descriptions.overview, groups)
        return (one for one in shown if descriptions.is_asked_for(one, states, types))

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
    """A reply to wait for, and how it is given."""
    future: asyncio.Future[R] = asyncio.get_running_loop().create_future()

    def answer(reply: R) -> None:
        if not future.done():  # whoever waited may have gone
            future.set_result(reply)

    return future, answer


def _found(shard: GroupShard, group_id: str, asked: Asked | None, *, stable: bool) -> Found:
    offsets = shard.offsets
    if asked is None:
        asked = {topic: list(kept) for topic, kept in offsets.of(group_id).items()}

    def one(topic: str, partition: int) -> Committed | ErrorCode | None:
        if stable and offsets.is_pending(group_id, topic, partition):
            return ErrorCode.unstable_offset_commit
        return offsets.get(group_id, topic, partition)

    return {
        topic: {partition: one(topic, partition) for partition in partitions}
        for topic, partitions in asked.items()
    }
