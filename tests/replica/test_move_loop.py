"""Partitions that change their log directory while they are written and read."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path

import pytest

from ottla.log.directories.replica_moves import STEP_BYTES
from ottla.model.clock import MonoMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import LeaderEpoch
from ottla.replica.move_loop import MoveLoop
from ottla.replica.partition import HostedPartition
from ottla.replica.transitions import PartitionStop
from tests.fakes.data_side import TP, DataSide, data_side
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.log.memory_directories import values

pytestmark = pytest.mark.spec("REP-75")

DIRS = ("/a", "/b")
B = Path("/b")


def moves_of(side: DataSide) -> MoveLoop:
    return side.services.moves


@pytest.mark.parametrize("policy", ["never", "auto"])
async def test_a_partition_moves_under_load_and_loses_nothing(policy: str) -> None:
    async with data_side({"flush.before.ack": policy}, dirs=DIRS) as side:
        partition = await side.lead()
        side.run(moves_of(side).run())
        sent = [b"%d" % n for n in range(300)]
        for at, value in enumerate(sent):
            if at == 100:
                moves_of(side).begin(TP, B)
            outcome = await side.append(value, acks=-1)
            assert (outcome.error_code, outcome.base_offset) == (ErrorCode.none, at)
        await side.settle()
        assert partition.log.dir == B / "t-0"
        assert values(partition.log) == sent
        assert partition.log.high_watermark == 300
        assert side.directories.futures == {}


async def test_the_copy_is_made_durable_off_the_loop_before_the_swap() -> None:
    async with data_side(dirs=DIRS) as side:
        partition = await side.lead()
        await side.append(b"a")
        side.run(moves_of(side).run())
        side.pool.held = True
        moves_of(side).begin(TP, B)
        await side.settle()
        assert side.pool.waiting == 1
        assert partition.log.dir == Path("/a/t-0")
        assert (await side.append(b"b")).error_code is ErrorCode.none
        side.pool.held = False
        side.pool.run_all()
        await side.settle()
        assert partition.log.dir == B / "t-0"
        assert values(partition.log) == [b"a", b"b"]


async def test_a_flush_or_a_rewrite_under_way_is_waited_for() -> None:
    async with data_side({"flush.before.ack": "auto"}, dirs=DIRS) as side:
        partition = await side.lead()
        side.run(moves_of(side).run())
        moves_of(side).begin(TP, B)
        partition.flushing = True
        await side.until(1_000)
        assert partition.log.dir == Path("/a/t-0")
        partition.flushing = False
        await side.until(2_000)
        assert partition.log.dir == B / "t-0"


async def test_a_move_that_a_restart_cut_short_is_finished() -> None:
    disk = ForgettingDisk()
    async with data_side(disk=disk, dirs=DIRS) as side:
        await side.lead()
        await side.append(b"a")
        moves_of(side).begin(TP, B)
        disk.kill()
    async with data_side(disk=disk, dirs=DIRS) as side:
        side.run(moves_of(side).run())
        await side.until(5_000)
        assert side.directories.futures, "nobody has said yet what the partition is for"
        partition = await side.lead(epoch=1)
        await side.until(6_000)
        assert partition.log.dir == B / "t-0"
        assert values(partition.log) == [b"a"]


async def test_a_deleted_partition_ends_its_move() -> None:
    async with data_side(dirs=DIRS) as side:
        await side.lead()
        side.run(moves_of(side).run())
        moves_of(side).begin(TP, B)
        side.pool.held = True
        await side.settle()
        stop = PartitionStop(TP, LeaderEpoch(-2), delete=True)
        stopping = asyncio.ensure_future(side.services.transitions.stop_replicas([stop]))
        await side.settle()  # the directories are synced on the pool, which is held
        side.pool.held = False
        side.pool.run_all()
        await stopping
        await side.settle()
        assert side.directories.futures == {}
        assert len(side.directories.online) == 2


async def test_a_target_that_fails_ends_the_move_and_the_partition_stays() -> None:
    async with data_side(dirs=DIRS) as side:
        partition = await side.lead()
        await side.append(b"a")
        side.run(moves_of(side).run())
        moves_of(side).begin(TP, B)
        side.disk.sync_error = OSError(errno.EIO, "broken")
        await side.settle()
        side.disk.sync_error = None
        assert [str(one.path) for one in side.directories.online] == ["/a"]
        assert side.directories.futures == {}
        assert (await side.append(b"b")).error_code is ErrorCode.none
        assert values(partition.log) == [b"a", b"b"]


async def test_a_move_to_a_disk_that_fails_at_once_is_refused_as_a_fault_of_the_disk() -> None:
    async with data_side(dirs=DIRS) as side:
        partition = await side.lead()
        await side.append(b"a")
        side.disk.failed_directory = B
        with pytest.raises(KafkaError) as refused:
            moves_of(side).begin(TP, B)
        side.disk.failed_directory = None
        assert refused.value.code is ErrorCode.kafka_storage_error
        await side.settle()
        assert [str(one.path) for one in side.directories.online] == ["/a"]
        assert values(partition.log) == [b"a"]


async def test_rot_found_by_a_move_takes_the_partition_offline() -> None:
    async with data_side(dirs=DIRS) as side:
        partition = await side.lead()
        await side.append(b"a")
        segment = partition.log.segments.first
        rotten = bytearray(side.disk.read(segment.files.path()))
        rotten[65] ^= 1
        side.disk.replace(segment.files.path(), bytes(rotten))
        segment.release()
        side.run(moves_of(side).run())
        moves_of(side).begin(TP, B)
        await side.settle()
        assert side.hosted.offline == {TP}
        assert side.directories.futures == {}


THROTTLE = "replica.alter.log.dirs.io.max.bytes.per.second"


async def filled(side: DataSide, megabytes: int) -> HostedPartition:
    partition = await side.lead()
    for _ in range(10 * megabytes):
        await side.append(bytes(100_000))
    return partition


@pytest.mark.spec("SEC-08")
@pytest.mark.parametrize("rate", [500_000, 1_000_000])
async def test_a_move_takes_the_time_that_its_throttle_demands(rate: int) -> None:
    async with data_side({THROTTLE: str(rate)}, dirs=DIRS) as side:
        partition = await filled(side, 12)
        began_ms = side.clock.mono_ms()
        side.run(moves_of(side).run())
        moves_of(side).begin(TP, B)
        while partition.log.dir != B / "t-0":
            await side.until(MonoMs(side.clock.mono_ms() + 100))
        took_s = (side.clock.mono_ms() - began_ms) / 1_000
        step_s = STEP_BYTES / rate  # the last step is not waited for
        assert abs(took_s - partition.log.size / rate) <= step_s + 1


@pytest.mark.spec("SEC-08")
async def test_a_throttle_that_is_lifted_holds_back_a_move_no_longer() -> None:
    async with data_side({THROTTLE: "100000"}, dirs=DIRS) as side:
        partition = await filled(side, 6)
        side.run(moves_of(side).run())
        moves_of(side).begin(TP, B)
        await side.until(MonoMs(side.clock.mono_ms() + 30_000))
        assert partition.log.dir == Path("/a/t-0"), "60 seconds at this rate"
        side.config.set_cluster({THROTTLE: "1000000000"})
        await side.until(MonoMs(side.clock.mono_ms() + 2_000))
        assert partition.log.dir == B / "t-0"
