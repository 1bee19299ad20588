"""Groups on a broker's data side: a real log on a disk that forgets, on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import count

from ottla.coordinator.group.consumer.service import ConsumerGroups
from ottla.coordinator.group.offset_commit import CommitRequest, OffsetToCommit
from ottla.coordinator.group.service import Groups
from ottla.coordinator.group.settings import GroupSettings
from ottla.coordinator.group.shard import GroupShard
from ottla.coordinator.internal_topic_log import InternalTopicLog, TransactionalWriter
from ottla.coordinator.runtime import Runtime, RuntimeContext
from ottla.model.errors import ErrorCode
from ottla.model.ids import CONSUMER_OFFSETS, TopicPartition
from tests.fakes.data_side import DataSide, data_side
from tests.fakes.forgetting_disk import ForgettingDisk

OFFSETS = TopicPartition(CONSUMER_OFFSETS, 0)
LIMITS = GroupSettings(initial_rebalance_delay_ms=0)


class Coordinating:
    """A group coordinator whose topic has one partition."""

    def __init__(self, side: DataSide, tasks: asyncio.TaskGroup, timeout_ms: int) -> None:
        numbers = count(1)
        self.side = side
        self.runtime = Runtime(
            CONSUMER_OFFSETS,
            lambda _: GroupShard(
                lambda: LIMITS, lambda: f"id{next(numbers)}", lambda: side.metadata.image
            ),
            RuntimeContext(side.hosted, side.metadata, side.data.timers, tasks.create_task),
            InternalTopicLog(side.hosted, timeout_ms=timeout_ms),
        )
        self.groups = Groups(self.runtime, ConsumerGroups(self.runtime, side.hosted.environment))
        side.hosted.listeners.append(self.runtime)

    @property
    def shard(self) -> GroupShard:
        [owned] = self.runtime.active()
        return owned.shard

    async def commit(
        self,
        value: int,
        group: str = "g",
        partition: int = 0,
        producer: TransactionalWriter | None = None,
    ) -> list[ErrorCode]:
        offsets = [OffsetToCommit("t", partition, value, -1, "")]
        ask = CommitRequest(group, "", None, -1, offsets, transactional=producer is not None)
        return await self.groups.commit(ask, producer)

    async def committed(self, group: str = "g", *, stable: bool = False) -> int | ErrorCode | None:
        found = await self.groups.fetch(group, {"t": [0]}, stable=stable)
        one = found["t"][0]
        return one.offset if one is not None and not isinstance(one, ErrorCode) else one


@asynccontextmanager
async def coordinating(
    settings: Mapping[str, str] | None = None,
    *,
    disk: ForgettingDisk | None = None,
    lead: bool = True,
    timeout_ms: int = 5_000,
) -> AsyncIterator[Coordinating]:
    async with (
        data_side(settings, disk=disk) as side,
        asyncio.TaskGroup() as tasks,
    ):
        made = Coordinating(side, tasks, timeout_ms)
        if lead:
            await side.lead(OFFSETS, is_new=disk is None)
            await side.settle()
        yield made
        made.runtime.close()
        side.end()
