"""Flushes that acknowledgements wait for, and what a power cut may take."""

from __future__ import annotations

import asyncio
import errno

import pytest

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.replica.flush_loop import FlushLoop
from tests.fakes.data_side import ME, OTHER, TP, data_side, values_of
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.fakes.virtual_loop import run

AUTO, ALL = {"flush.before.ack": "auto"}, {"flush.before.ack": "all"}
TWO = (ME, OTHER)
FAILED = ErrorCode.kafka_storage_error


@pytest.mark.parametrize("settings", [AUTO, ALL])
def test_the_acknowledgement_and_the_readers_wait_for_the_disk(settings: dict[str, str]) -> None:
    async def story() -> None:
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

    run(story())


def test_with_two_copies_in_sync_auto_trusts_them_and_all_does_not() -> None:
    async def story(settings: dict[str, str], expected: bool) -> None:
        async with data_side(settings) as side:
            await side.lead(replicas=TWO)
            side.pool.held = True
            waiting = side.start_append(b"a", acks=-1)
            side.start_fetch(1, replica_id=OTHER, max_wait_ms=0)
            assert waiting.done() is expected
            side.pool.held = False
            side.pool.run_all()
            assert (await waiting).error_code is ErrorCode.none

    run(story(AUTO, True))
    run(story(ALL, False))


def test_never_and_lesser_acks_do_not_wait_for_the_disk() -> None:
    async def story() -> None:
        async with data_side() as side:
            await side.lead()
            side.pool.held = True
            assert side.start_append(b"a", acks=-1).done()
            side.config.set_topic("t", {"flush.before.ack": "all"})
            assert side.start_append(b"b", acks=1).done()
            assert values_of(await side.read()) == [b"a", b"b"]

    run(story())


def test_one_flush_serves_every_append_before_it() -> None:
    async def story() -> None:
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

    run(story())


def test_what_comes_during_a_flush_waits_for_the_next() -> None:
    async def story() -> None:
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

    run(story())


def test_a_repeat_of_an_old_batch_does_not_let_newer_ones_pass_unflushed() -> None:
    async def story() -> None:
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

    run(story())


def test_a_shrinking_in_sync_set_makes_the_disk_count_before_anything_is_acknowledged() -> None:
    async def story() -> None:
        async with data_side(AUTO) as side:
            partition = await side.lead(replicas=TWO)
            side.run(*side.data.loops())
            waiting = side.start_append(b"a", acks=-1, timeout_ms=600_000)
            side.pool.held = True
            while partition.led().isr != {ME}:
                await side.until(side.clock.mono_ms() + 1_000)
            await side.settle()
            assert not waiting.done()
            assert partition.log.high_watermark == 0
            side.pool.held = False
            side.pool.run_all()
            assert (await waiting).error_code is ErrorCode.none
            assert partition.log.recovery_point == 1

    run(story())


@pytest.mark.parametrize("settings", [AUTO, ALL])
def test_a_failed_flush_is_never_tried_again_and_the_directory_is_given_up(
    settings: dict[str, str],
) -> None:
    async def story() -> None:
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

    run(story())


def test_a_disk_that_is_full_when_a_flush_begins_leaves_nobody_waiting() -> None:
    async def story() -> None:
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

    run(story())


async def reopened(disk: ForgettingDisk, settings: dict[str, str]) -> list[bytes | None]:
    async with data_side(settings, disk=disk) as side:
        await side.lead(epoch=1)
        return values_of(await side.read())


@pytest.mark.parametrize("settings", [AUTO, ALL])
@pytest.mark.parametrize("seed", range(40))
def test_a_power_cut_takes_nothing_that_was_acknowledged(
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

    async def story() -> None:
        disk = ForgettingDisk()
        acknowledged = await before(disk)
        disk.crash(seed)
        kept = await reopened(disk, settings)
        assert kept[: len(acknowledged)] == acknowledged
        assert kept[len(acknowledged) :] in ([], [b"unfinished"])

    run(story())


def test_without_flushes_a_power_cut_does_take_what_was_acknowledged() -> None:
    """The test above can fail: the disk forgets."""

    async def story(seed: int) -> bool:
        disk = ForgettingDisk()
        async with data_side(disk=disk) as side:
            await side.lead()
            await side.append(b"a", acks=-1)
        disk.crash(seed)
        return await reopened(disk, {}) == []

    assert any(run(story(seed)) for seed in range(10))


def test_a_killed_process_loses_nothing_without_flushes_either() -> None:
    async def story() -> None:
        disk = ForgettingDisk()
        async with data_side(disk=disk) as side:
            await side.lead()
            await side.append(b"a", acks=1)
        disk.kill()
        assert await reopened(disk, {}) == [b"a"]

    run(story())


def test_who_waits_for_a_flush_that_cannot_begin_hears_of_it() -> None:
    async def story() -> None:
        async with data_side(dirs=("/a", "/b")) as side:
            partition = await side.lead()
            await side.append(b"a")
            side.disk.capacity_bytes = side.disk.written_bytes
            with pytest.raises(OSError, match="No space"):
                await FlushLoop(side.hosted).until(partition, 1)
            side.disk.capacity_bytes = None
            assert side.hosted.offline == {TP}

    run(story())


def test_a_closed_segment_is_flushed_though_nobody_waits() -> None:
    async def story() -> None:
        async with data_side({"log.segment.bytes": "1048576"}) as side:
            partition = await side.lead()
            value = bytes(300_000)
            for _ in range(4):
                await side.append(value)
            await side.settle()
            assert len(partition.log.segments) == 2
            assert partition.log.recovery_point == partition.log.end_offset

    run(story())


def test_who_waits_for_an_offset_hears_when_it_is_on_the_disk_and_not_before() -> None:
    async def story() -> None:
        async with data_side() as side:
            partition = await side.lead()
            await side.append(b"x")
            side.pool.held = True
            waiting = asyncio.ensure_future(FlushLoop(side.hosted).until(partition, 1))
            await side.settle()
            assert not waiting.done()
            side.pool.run_all()
            await waiting
            assert partition.log.recovery_point == 1

    run(story())


def test_who_waits_for_an_offset_hears_that_the_disk_failed() -> None:
    async def story() -> None:
        async with data_side(dirs=("/data", "/other")) as side:
            partition = await side.lead()
            await side.append(b"x")
            side.disk.sync_error = OSError(errno.EIO, "bad sector")
            with pytest.raises(OSError, match="bad sector"):
                await FlushLoop(side.hosted).until(partition, 1)

    run(story())
