"""Thousands of partitions that the controller hands over at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import pairwise
from pathlib import Path
from uuid import UUID

from ottla.log.directories.checkpoint_file import HIGH_WATERMARKS, RECOVERY_POINTS
from ottla.model.errors import ErrorCode
from ottla.model.ids import LeaderEpoch, TopicPartition
from ottla.replica.leader import LeaderAssignment
from ottla.replica.transitions import PartitionStop, PartitionTransition
from tests.fakes.data_side import ME, NEW_TOPIC_ID, TOPIC_ID, data_side
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.fakes.virtual_loop import LoopClock

LED = LeaderAssignment(ME, LeaderEpoch(0), (ME,), (ME,), version=0)


class CountingDisk(ForgettingDisk):
    """Counts how often each file was replaced; making a directory takes 3 ms of its own."""

    def __init__(self) -> None:
        super().__init__(lambda: 0)
        self.replaced: Counter[str] = Counter()
        self.clock: LoopClock | None = None

    def replace(self, path: Path, content: bytes, *, sync: bool = True) -> None:
        self.replaced[path.name] += 1
        super().replace(path, content, sync=sync)

    def mkdir(self, path: Path) -> None:
        if self.clock is not None:
            self.clock.busy_ns += 3_000_000
        super().mkdir(path)


def many(count: int, topic_id: UUID = TOPIC_ID) -> list[PartitionTransition]:
    return [
        PartitionTransition(TopicPartition("t", number), topic_id, LED, is_new=True)
        for number in range(count)
    ]


async def test_a_topic_that_is_made_again_has_each_checkpoint_written_once() -> None:
    disk = CountingDisk()
    async with data_side(disk=disk) as side:
        transitions, states = side.services.transitions, many(50)
        await transitions.apply_leader_and_isr(states)
        for write in side.directories.checkpoints.recovery_points():
            write.run()
        for write in side.directories.checkpoints.high_watermarks():
            write.run()
        stops = [PartitionStop(each.key, LeaderEpoch(1), delete=True) for each in states]
        await transitions.stop_replicas(stops)
        disk.replaced.clear()
        codes = await transitions.apply_leader_and_isr(many(50, NEW_TOPIC_ID))
        assert set(codes.values()) == {ErrorCode.none}
        assert disk.replaced[RECOVERY_POINTS] == disk.replaced[HIGH_WATERMARKS] == 1
        assert not side.directories.all[0].offsets(RECOVERY_POINTS).keys() & codes.keys()


async def test_logs_that_take_long_to_make_leave_the_loop_to_others_in_between() -> None:
    disk = CountingDisk()
    async with data_side(disk=disk) as side:
        disk.clock = side.clock
        seen: list[int] = []

        async def watch() -> None:
            while True:
                seen.append(len(side.directories.logs))
                await asyncio.sleep(0)

        side.run(watch())
        await side.services.transitions.apply_leader_and_isr(many(20))
        most = max(after - before for before, after in pairwise(seen))
        assert most <= 2, "no more than two logs of 3 ms each between two turns"
