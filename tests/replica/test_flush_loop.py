"""Flushes that acknowledgements wait for, and what a power cut may take."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ottla.log.flush import Flush
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.replica.flush_loop import SHARES, FlushLoop, sync_all
from tests.fakes.data_side import ME, OTHER, TP, DataSide, data_side, values_of
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.fakes.sync_ring import FakeRing
from tests.fakes.virtual_loop import LoopClock

AUTO, ALL = {"flush.before.ack": "auto"}, {"flush.before.ack": "all"}
TWO = (ME, OTHER)
FAILED = ErrorCode.kafka_storage_error


@pytest.mark.parametrize("settings", [AUTO, ALL])
async def test_the_acknowledgement_and_the_readers_wait_for_the_disk(
    settings: dict[str, str],
) -> None:
    async with data_side(settings) as side:
        partition = await side.lead()
        side.pool.held = True
        waiting = side.start_append(b"a", acks=-1)
        parked = side.start_fetch(0)
        await side.settle()
        assert not waiting.done()
        assert not parked.done()
        assert partition.log.high_watermark == 0
        assert values_of(await side.read()) == []
        side.pool.run_all()
        assert (await waiting).error_code is ErrorCode.none
        assert values_of((await parked)[0].part) == [b"a"]
        assert partition.log.recovery_point == 1


@pytest.mark.parametrize(("settings", "expected"), [(AUTO, True), (ALL, False)])
async def test_with_two_copies_in_sync_auto_trusts_them_and_all_does_not(
    settings: dict[str, str], expected: bool
) -> None:
    async with data_side(settings) as side:
        await side.lead(replicas=TWO)
        side.pool.held = True
        waiting = side.start_append(b"a", acks=-1)
        side.start_fetch(1, replica_id=OTHER, max_wait_ms=0)
        assert waiting.done() is expected
        side.pool.held = False
        side.pool.run_all()
        assert (await waiting).error_code is ErrorCode.none


async def test_never_and_lesser_acks_do_not_wait_for_the_disk() -> None:
    async with data_side() as side:
        await side.lead()
        side.pool.held = True
        assert side.start_append(b"a", acks=-1).done()
        side.config.set_topic("t", {"flush.before.ack": "all"})
        assert side.start_append(b"b", acks=1).done()
        assert values_of(await side.read()) == [b"a", b"b"]


async def test_one_flush_serves_every_append_before_it() -> None:
    async with data_side(AUTO) as side:
        await side.lead()
        await side.append(b"first", acks=-1)
        side.pool.held = True
        waiting = [side.start_append(b"%d" % n, acks=-1) for n in range(50)]
        await side.settle()
        assert side.pool.waiting == 1
        before = side.disk.syncs
        side.pool.run_all()
        await side.settle()
        assert all(one.done() for one in waiting)
        assert side.disk.syncs - before == 1


async def test_what_comes_during_a_flush_waits_for_the_next() -> None:
    async with data_side(AUTO) as side:
        partition = await side.lead()
        side.pool.held = True
        first = side.start_append(b"a", acks=-1)
        await side.settle()
        second = side.start_append(b"b", acks=-1)
        await side.settle()
        assert side.pool.waiting == 1, "one flush of a partition at a time"
        side.pool.run_all()
        await side.settle()
        assert first.done()
        assert not second.done()
        assert partition.log.high_watermark == 1
        side.pool.run_all()
        await side.settle()
        assert second.done()


async def test_a_repeat_of_an_old_batch_does_not_let_newer_ones_pass_unflushed() -> None:
    async with data_side(AUTO) as side:
        partition = await side.lead()
        batch = [
            side.batch(b"%d" % n, producer_id=9, producer_epoch=0, base_sequence=n)
            for n in range(3)
        ]
        await side.start_append(records=batch[0], acks=-1)
        side.pool.held = True
        under_way = side.start_append(records=batch[1], acks=-1)
        await side.settle()
        unflushed = side.start_append(records=batch[2], acks=-1)
        repeat = side.start_append(records=batch[0], acks=-1)
        assert repeat.done(), "it is on the disk already"
        side.pool.run_all()
        await side.settle()
        assert under_way.done()
        assert not unflushed.done()
        assert partition.log.high_watermark == 2
        side.pool.run_all()
        assert (await unflushed).base_offset == 2


async def test_a_shrinking_in_sync_set_makes_the_disk_count_before_anything_is_acknowledged() -> (
    None
):
    async with data_side(AUTO) as side:
        partition = await side.lead(replicas=TWO)
        side.run(*side.data.loops())
        waiting = side.start_append(b"a", acks=-1, timeout_ms=600_000)
        side.pool.held = True
        while partition.require_leadership().isr != {ME}:
            await side.until(side.clock.mono_ms() + 1_000)
        await side.settle()
        assert not waiting.done()
        assert partition.log.high_watermark == 0
        side.pool.held = False
        side.pool.run_all()
        assert (await waiting).error_code is ErrorCode.none
        assert partition.log.recovery_point == 1


@pytest.mark.parametrize("settings", [AUTO, ALL])
async def test_a_failed_flush_is_never_tried_again_and_the_directory_is_given_up(
    settings: dict[str, str],
) -> None:
    async with data_side(settings, dirs=("/a", "/b")) as side:
        await side.lead()
        other = TopicPartition("u", 0)
        await side.lead(other)
        assert side.hosted.get(other).log.dir.parent != side.hosted.get(TP).log.dir.parent
        side.pool.held = True
        waiting = side.start_append(b"a", acks=-1)
        await side.settle()
        side.disk.sync_error = OSError(errno.EIO, "the disk is broken")
        side.pool.run_all()
        assert (await waiting).error_code is ErrorCode.kafka_storage_error
        side.disk.sync_error = None
        syncs = side.disk.syncs
        await side.settle()
        assert side.disk.syncs == syncs
        assert (await side.append(b"b")).error_code is ErrorCode.kafka_storage_error
        refused = await side.start_fetch(0)
        assert refused[0].part.error_code is ErrorCode.kafka_storage_error
        side.pool.held = False
        assert (await side.append(b"c", key=other, acks=-1)).error_code is ErrorCode.none


async def test_a_disk_that_is_full_when_a_flush_begins_leaves_nobody_waiting() -> None:
    async with data_side(AUTO, dirs=("/data", "/other", "/spare")) as side:
        await side.lead()
        other = TopicPartition("u", 0)
        await side.lead(other)
        side.pool.held = True
        waiting = [
            side.start_append(b"a", acks=-1),
            side.start_append(b"b", key=other, acks=-1),
        ]
        side.disk.capacity_bytes = side.disk.written_bytes
        await side.settle()
        assert all(one.done() for one in waiting)
        assert [one.result().error_code for one in waiting] == [FAILED, FAILED]


async def test_flushes_that_many_wait_for_share_a_job_on_the_pool() -> None:
    async with data_side(AUTO) as side:
        keys = [TopicPartition("t", number) for number in range(9)]
        for key in keys:
            await side.lead(key)
        side.pool.held = True
        waiting = [side.start_append(b"a", key=key, acks=-1) for key in keys]
        await side.settle()
        assert side.pool.waiting == SHARES
        late = side.start_append(b"b", key=keys[0], acks=-1)
        side.pool.held = False  # the sync of the new log's directory
        more = await side.lead(TopicPartition("t", 9))
        side.pool.held = True
        later = side.start_append(b"b", key=more.key, acks=-1)
        await side.settle()
        assert side.pool.waiting == SHARES, "no thread is left for the rest"
        side.pool.held = False
        side.pool.run_all()
        for one in (*waiting, late, later):
            assert (await one).error_code is ErrorCode.none


def test_a_flush_that_fails_does_not_keep_those_that_share_its_job_from_theirs() -> None:
    class Broken:
        def fileno(self) -> int:
            raise AssertionError("nobody asks")

        def pread(self, size: int, position: int) -> bytes:
            raise AssertionError("nobody reads")

        def sync(self) -> None:
            raise OSError(errno.EIO, "the disk is broken")

    disk = ForgettingDisk()
    good = [disk.open_append(Path(name)) for name in ("/a", "/b")]
    flushes = [
        Flush(disk, [source], [], 1, 0) for source in (good[0].source(), Broken(), good[1].source())
    ]
    first, second, third = sync_all(flushes)
    assert (first, third) == (None, None)
    assert isinstance(second, OSError)
    assert disk.syncs == 2


@asynccontextmanager
async def by_ring(
    disk: ForgettingDisk | None = None, dirs: tuple[str, ...] = ("/data",)
) -> AsyncIterator[tuple[DataSide, FakeRing]]:
    """Flushes go to the kernel, once a first one on the pool has synced the folder as well."""
    ring = FakeRing()
    async with data_side(AUTO, disk=disk, dirs=dirs, ring=ring) as side:
        await side.lead()
        await side.append(b"first", acks=-1)
        assert ring.taken == 0
        yield side, ring
        asyncio.get_running_loop().remove_reader(ring.fileno())
    ring.close()


async def test_where_the_kernel_syncs_by_itself_the_acknowledgement_waits_for_it() -> None:
    async with by_ring() as (side, ring):
        side.pool.held = ring.held = True
        waiting = [side.start_append(b"%d" % number, acks=-1) for number in range(5)]
        await side.settle()
        assert len(ring.waiting) == 1, "one serves every append before it"
        assert side.pool.waiting == 0
        assert not any(one.done() for one in waiting)
        behind = side.start_append(b"behind", acks=-1)
        await side.settle()
        ring.run_all()
        await side.settle()
        assert [one.result().error_code for one in waiting] == [ErrorCode.none] * 5
        assert not behind.done(), "it was written after that sync had begun"
        ring.run_all()
        await side.settle()
        assert behind.result().error_code is ErrorCode.none


async def test_what_the_kernel_does_not_take_goes_to_the_pool() -> None:
    async with by_ring() as (side, ring):
        ring.refuses = True
        assert (await side.append(b"a", acks=-1)).error_code is ErrorCode.none
        assert ring.taken == 0


async def test_a_sync_that_fails_in_the_kernel_costs_the_directory_too() -> None:
    async with by_ring(dirs=("/a", "/b")) as (side, ring):
        ring.held = True
        waiting = side.start_append(b"a", acks=-1)
        await side.settle()
        side.disk.sync_error = OSError(errno.EIO, "the disk is broken")
        ring.run_all()
        await side.settle()
        assert waiting.result().error_code is FAILED
        side.disk.sync_error = None
        assert (await side.append(b"b")).error_code is FAILED


@pytest.mark.parametrize("seed", range(20))
async def test_a_power_cut_takes_nothing_that_was_acknowledged_after_the_kernel_synced(
    seed: int,
) -> None:
    disk = ForgettingDisk()
    async with by_ring(disk) as (side, ring):
        for number in range(seed % 5):
            await side.append(b"%d" % number, acks=-1)
        acknowledged = values_of(await side.read())
        side.pool.held = ring.held = True
        unfinished = side.start_append(b"unfinished", acks=-1)
        await side.settle()
        assert not unfinished.done()
    disk.crash(seed)
    kept = await reopened(disk, AUTO)
    assert kept[: len(acknowledged)] == acknowledged


async def reopened(disk: ForgettingDisk, settings: dict[str, str]) -> list[bytes | None]:
    async with data_side(settings, disk=disk) as side:
        await side.lead(epoch=1)
        return values_of(await side.read())


@pytest.mark.parametrize("settings", [AUTO, ALL])
@pytest.mark.parametrize("seed", range(40))
async def test_a_power_cut_takes_nothing_that_was_acknowledged(
    settings: dict[str, str], seed: int
) -> None:
    async def before(disk: ForgettingDisk) -> list[bytes]:
        async with data_side(settings, disk=disk) as side:
            await side.lead()
            acknowledged = [b"%d" % n for n in range(seed % 7 + 1)]
            for value in acknowledged:
                await side.append(value, acks=-1)
            side.pool.held = True
            unfinished = side.start_append(b"unfinished", acks=-1)
            await side.settle()
            assert not unfinished.done()
            return acknowledged

    disk = ForgettingDisk()
    acknowledged = await before(disk)
    disk.crash(seed)
    kept = await reopened(disk, settings)
    assert kept[: len(acknowledged)] == acknowledged
    assert kept[len(acknowledged) :] in ([], [b"unfinished"])


async def test_without_flushes_a_power_cut_does_take_what_was_acknowledged() -> None:
    """The test above can fail: the disk forgets."""

    async def is_lost(seed: int) -> bool:
        disk = ForgettingDisk()
        async with data_side(disk=disk) as side:
            await side.lead()
            await side.append(b"a", acks=-1)
        disk.crash(seed)
        return await reopened(disk, {}) == []

    assert any([await is_lost(seed) for seed in range(10)])


async def test_a_killed_process_loses_nothing_without_flushes_either() -> None:
    disk = ForgettingDisk()
    async with data_side(disk=disk) as side:
        await side.lead()
        await side.append(b"a", acks=1)
    disk.kill()
    assert await reopened(disk, {}) == [b"a"]


async def test_who_waits_for_a_flush_that_cannot_begin_hears_of_it() -> None:
    async with data_side(dirs=("/a", "/b")) as side:
        partition = await side.lead()
        await side.append(b"a")
        side.disk.capacity_bytes = side.disk.written_bytes
        with pytest.raises(OSError, match="No space"):
            await FlushLoop(side.hosted).wait_until_flushed(partition, 1)
        side.disk.capacity_bytes = None
        assert side.hosted.offline == {TP}


async def test_a_closed_segment_is_flushed_though_nobody_waits() -> None:
    async with data_side({"log.segment.bytes": "1048576"}) as side:
        partition = await side.lead()
        value = bytes(300_000)
        for _ in range(4):
            await side.append(value)
        await side.settle()
        assert len(partition.log.segments) == 2
        assert partition.log.recovery_point == partition.log.end_offset


async def test_who_waits_for_an_offset_hears_when_it_is_on_the_disk_and_not_before() -> None:
    async with data_side() as side:
        partition = await side.lead()
        await side.append(b"x")
        side.pool.held = True
        waiting = asyncio.ensure_future(FlushLoop(side.hosted).wait_until_flushed(partition, 1))
        await side.settle()
        assert not waiting.done()
        side.pool.run_all()
        await waiting
        assert partition.log.recovery_point == 1


async def test_who_waits_for_an_offset_hears_that_the_disk_failed() -> None:
    async with data_side(dirs=("/data", "/other")) as side:
        partition = await side.lead()
        await side.append(b"x")
        side.disk.sync_error = OSError(errno.EIO, "bad sector")
        with pytest.raises(OSError, match="bad sector"):
            await FlushLoop(side.hosted).wait_until_flushed(partition, 1)


class SlowDisk(ForgettingDisk):
    """Writing a file takes a millisecond of its own."""

    clock: LoopClock | None = None

    def replace(self, path: Path, content: bytes, *, sync: bool = True) -> None:
        if self.clock is not None:
            self.clock.busy_ns += 1_000_000
        super().replace(path, content, sync=sync)


async def test_flushes_that_take_long_to_begin_begin_some_at_a_time() -> None:
    """Each writes the leader epochs of its partition first."""
    disk = SlowDisk(lambda: 0)
    async with data_side(ALL, disk=disk) as side:
        keys = [TopicPartition("t", number) for number in range(40)]
        hosted = [await side.lead(key) for key in keys]
        disk.clock = side.clock
        side.pool.held = True
        waiting = [side.start_append(b"a", key=key, acks=-1) for key in keys]
        await side.settle()
        assert 1 <= sum(partition.flushing for partition in hosted) <= 4
        side.pool.held = False
        side.pool.run_all()
        assert {(await one).error_code for one in waiting} == {ErrorCode.none}
