"""What logs need over time, and when they get it."""

from __future__ import annotations

import asyncio
import errno
from itertools import pairwise
from pathlib import Path

import pytest

from ottla.log.directories.checkpoint_file import (
    HIGH_WATERMARKS,
    RECOVERY_POINTS,
    START_OFFSETS,
    read_offsets,
)
from ottla.model.errors import ErrorCode
from ottla.model.ids import LeaderEpoch, TopicPartition
from ottla.replica.maintenance_loop import TURN, MaintenanceLoop
from ottla.replica.partition import HostedPartition
from ottla.replica.transitions import PartitionStop
from tests.fakes.data_side import TP, DataSide, data_side
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.fakes.virtual_loop import LoopClock

HOUR = 3_600_000
DAY = 24 * HOUR
QUIET = {"log.initial.task.delay.ms": "0"}


def care_of(side: DataSide) -> MaintenanceLoop:
    return side.data._maintenance


def start(side: DataSide) -> None:
    side.run(*care_of(side).loops())


def checkpoint(side: DataSide, name: str, directory: str = "/data") -> dict[TopicPartition, int]:
    return read_offsets(side.disk, Path(directory) / name)


async def grow(side: DataSide, partition: HostedPartition, segments: int) -> None:
    for _ in range(segments):
        await side.append(b"x", key=partition.key)
        partition.log.roll(side.clock.wall_ms())


async def delete(side: DataSide, key: TopicPartition) -> None:
    await side.services.transitions.stop_replicas(
        [PartitionStop(key, LeaderEpoch(-2), delete=True)]
    )


@pytest.mark.spec("LOG-62", "LOG-63")
@pytest.mark.virtual_limit(10 * DAY // 1000)
async def test_old_segments_go_when_retention_looks() -> None:
    settings = {**QUIET, "log.retention.ms": str(DAY)}
    async with data_side(settings) as side:
        partition = await side.lead()
        await grow(side, partition, 3)
        start(side)
        await side.until(DAY - HOUR)
        assert len(partition.log.segments) == 4
        await side.until(DAY + HOUR)
        assert partition.log.start_offset == 3
        assert len(partition.log.segments) == 1


@pytest.mark.spec("LOG-58", "CFG-028")
@pytest.mark.virtual_limit(HOUR)
async def test_a_changed_interval_takes_effect_soon_and_not_only_after_the_old_one() -> None:
    settings = {"log.retention.check.interval.ms": str(HOUR), "log.retention.ms": "1000"}
    async with data_side({**QUIET, **settings}) as side:
        partition = await side.lead()
        start(side)
        await side.until(10_000)
        await grow(side, partition, 2)
        await side.until(HOUR // 2)
        assert len(partition.log.segments) == 3, "the first look was before there was any"
        side.config.current = side.config.with_overrides(
            cluster={"log.retention.check.interval.ms": "60000"}, broker={}
        )
        await side.until(HOUR // 2 + 20_000)
        assert len(partition.log.segments) == 1


async def test_nothing_but_checkpoints_of_watermarks_happens_right_after_the_start() -> None:
    settings = {"log.initial.task.delay.ms": "30000", "log.retention.ms": "1"}
    async with data_side(settings) as side:
        partition = await side.lead()
        await grow(side, partition, 2)
        start(side)
        await side.until(29_000)
        assert len(partition.log.segments) == 3
        assert checkpoint(side, RECOVERY_POINTS) == {}
        await side.until(31_000)
        assert len(partition.log.segments) == 1
        assert TP in checkpoint(side, RECOVERY_POINTS)


@pytest.mark.spec("LOG-17", "REP-66", "LOG-54")
async def test_the_three_checkpoints_follow_their_logs() -> None:
    async with data_side({**QUIET, "flush.before.ack": "auto"}) as side:
        partition = await side.lead()
        start(side)
        await side.append(b"a", acks=-1)
        await side.append(b"b", acks=-1)
        await side.append(b"c", acks=1)
        partition.log.raise_start_offset(1)
        await side.until(61_000)
        assert checkpoint(side, HIGH_WATERMARKS) == {TP: 3}
        assert checkpoint(side, RECOVERY_POINTS) == {TP: 2}
        assert checkpoint(side, START_OFFSETS) == {TP: 1}


@pytest.mark.spec("LOG-65", "CFG-042")
async def test_files_are_removed_a_while_after_they_were_deleted() -> None:
    settings = {**QUIET, "log.segment.delete.delay.ms": "60000", "log.retention.ms": "1"}
    async with data_side(settings) as side:
        partition = await side.lead()
        gone = TopicPartition("gone", 0)
        await side.lead(gone)
        await grow(side, partition, 1)
        await side.until(1_000)
        start(side)
        await side.until(2_000)
        await delete(side, gone)
        names = side.disk.list(Path("/data/t-0"))
        assert any(name.endswith(".deleted") for name in names)
        assert any(name.endswith("-delete") for name in side.disk.list(Path("/data")))
        await side.until(70_000)
        assert not any(name.endswith(".deleted") for name in side.disk.list(partition.log.dir))
        assert not any(name.endswith("-delete") for name in side.disk.list(Path("/data")))


@pytest.mark.spec("TXN-09", "TXN-14")
@pytest.mark.virtual_limit(2 * DAY // 1000)
async def test_silent_producers_are_forgotten() -> None:
    settings = {**QUIET, "producer.id.expiration.ms": str(DAY)}
    async with data_side(settings) as side:
        partition = await side.lead()
        start(side)
        batch = side.batch(b"a", producer_id=9, producer_epoch=0, base_sequence=0)
        await side.start_append(records=batch)
        await side.until(DAY - HOUR)
        assert 9 in {one.producer_id for one in partition.log.producers.entries()}
        await side.until(DAY + HOUR)
        assert list(partition.log.producers.entries()) == []
        any_first = side.batch(b"b", producer_id=9, producer_epoch=0, base_sequence=7)
        outcome = await side.start_append(records=any_first)
        assert outcome.error_code is ErrorCode.none


async def test_unflushed_data_is_flushed_when_the_topic_says_it_is_old() -> None:
    never = {"log.flush.interval.ms": str(10**12), "log.flush.scheduler.interval.ms": "1000"}
    async with data_side({**QUIET, **never}) as side:
        partition = await side.lead()
        start(side)
        await side.append(b"a")
        await side.until(30_000)
        assert partition.log.recovery_point == 0, "never, unless asked to"
        side.config.set_topic("t", {"flush.ms": "5000"})
        await side.until(36_500)
        assert partition.log.recovery_point == 1
        await side.append(b"b")
        await side.until(40_000)
        assert partition.log.recovery_point == 1
        await side.until(43_000)
        assert partition.log.recovery_point == 2


@pytest.mark.parametrize("what", ["retention", "purge", "checkpoint"])
async def test_a_disk_that_fails_costs_its_directory_and_care_goes_on(what: str) -> None:
    settings = {**QUIET, "log.retention.ms": "1", "log.segment.delete.delay.ms": "0"}
    async with data_side(settings, dirs=("/a", "/b")) as side:
        other = TopicPartition("u", 0)
        bad, good = await side.lead(), await side.lead(other)
        await grow(side, bad, 2)
        await grow(side, good, 2)
        care = care_of(side)
        if what == "checkpoint":
            side.disk.sync_error = OSError(errno.EIO, "broken")
            await care.write(side.directories.checkpoints.high_watermarks()[:1])
            side.disk.sync_error = None
        elif what == "retention":
            side.disk.remove_tree(bad.log.dir)
            await care.retention()
        else:
            await delete(side, TP)
            side.pool.fault = OSError(errno.EIO, "broken")
            await care.purge()
            side.pool.fault = None
        await side.settle()
        assert [str(one.path) for one in side.directories.online] == ["/b"]
        assert (await side.append(b"x", key=other)).error_code is ErrorCode.none


async def test_a_partition_deleted_during_another_turn_is_left_alone() -> None:
    at_once = {"log.segment.delete.delay.ms": "0", "log.retention.ms": "1"}
    async with data_side({**QUIET, **at_once}) as side:
        keys = [TopicPartition("many", index) for index in range(TURN + 5)]
        for key in keys:
            await grow(side, await side.lead(key), 1)
        await side.until(10_000)
        side.run(care_of(side).retention())
        await side.once()
        await delete(side, keys[-1])
        for removal in side.directories.removals.due():
            removal.run()
        await side.settle()
        assert len(side.directories.online) == 1
        assert all(one.log.start_offset == 1 for one in side.hosted)


class SlowDisk(ForgettingDisk):
    """Renaming a file takes a millisecond of its own."""

    clock: LoopClock | None = None

    def rename(self, old: Path, new: Path) -> None:
        if self.clock is not None:
            self.clock.busy_ns += 1_000_000
        super().rename(old, new)


async def test_retention_of_many_logs_leaves_the_loop_to_others_in_between() -> None:
    """A deleted segment is renamed, with its indexes: some milliseconds for every log."""
    disk = SlowDisk(lambda: 0)
    async with data_side({"log.retention.ms": "1000"}, disk=disk) as side:
        hosted = [await side.lead(TopicPartition("t", number)) for number in range(TURN)]
        for partition in hosted:
            await grow(side, partition, 2)
        await asyncio.sleep(10)
        disk.clock = side.clock
        seen: list[int] = []

        async def watch() -> None:
            while True:
                seen.append(sum(partition.log.start_offset > 0 for partition in hosted))
                await asyncio.sleep(0)

        side.run(watch())
        await care_of(side).retention()
        assert max(after - before for before, after in pairwise([0, *seen, TURN])) <= 4
