"""Compaction over time: what is chosen, at what pace, and what may happen meanwhile."""

from __future__ import annotations

import errno

import pytest

from ottla.log.compaction.cleaner import SegmentSwap
from ottla.log.directories.checkpoint_file import CLEANED_OFFSETS, RECOVERY_POINTS, read_offsets
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId, LeaderEpoch, TopicPartition
from ottla.replica.compaction_loop import CompactionLoop
from ottla.replica.partition import HostedPartition
from ottla.replica.transitions import PartitionStop
from tests.fakes.data_side import ME, NEW_TOPIC_ID, OTHER, TP, DataSide, data_side
from tests.log.memory_directories import values

COMPACT = {"log.cleanup.policy": "compact", "log.cleaner.min.cleanable.ratio": "0.01"}
DIRS = ("/a", "/b")


def loop_of(side: DataSide) -> CompactionLoop:
    return side.data._compaction


async def fill(side: DataSide, key: TopicPartition = TP, times: int = 3) -> HostedPartition:
    """A closed segment in which each of two keys stands several times, and an open one."""
    partition = side.hosted.get(key)
    for turn in range(times):
        for name in (b"a", b"b"):
            records = side.batch(b"%d" % turn, key=name)
            await side.start_append(records=records, key=key)
    partition.log.roll(side.clock.wall_ms())
    await side.start_append(records=side.batch(b"end", key=b"c"), key=key)
    return partition


def cleaned(side: DataSide, partition: HostedPartition) -> int | None:
    path = partition.log.dir.parent / CLEANED_OFFSETS
    return read_offsets(side.disk, path).get(partition.key)


@pytest.mark.spec("LOG-66", "LOG-67")
async def test_one_round_keeps_the_last_of_each_key_and_remembers_how_far_it_came() -> None:
    async with data_side(COMPACT) as side:
        await side.lead()
        partition = await fill(side)
        assert await loop_of(side).compact_one()
        assert values(partition.log) == [b"2", b"2", b"end"]
        assert cleaned(side, partition) == 6
        assert not await loop_of(side).compact_one(), "there is nothing more to do"
        assert side.count("kafka_log_logcleaner_rounds_total") == 1
        assert side.count("kafka_log_logcleaner_cleaned_bytes_total") > 0


async def test_before_a_segment_is_replaced_it_is_written_down_that_the_log_is_on_the_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a start after a crash would read the segments again, and cut the log at a gap."""
    told: list[int] = []

    async with data_side(COMPACT) as side:
        await side.lead()
        partition = await fill(side)
        path = partition.log.dir.parent / RECOVERY_POINTS

        def perform(swap: SegmentSwap, now_ms: int) -> None:
            told.append(read_offsets(side.disk, path)[TP])
            replace(swap, WallMs(now_ms))

        replace = SegmentSwap.perform
        monkeypatch.setattr(SegmentSwap, "perform", perform)
        assert await loop_of(side).compact_one()
    assert told == [7]


async def test_the_dirtiest_log_goes_first_and_logs_that_are_not_compacted_never() -> None:
    async with data_side(COMPACT) as side:
        keys = [TopicPartition(name, 0) for name in ("little", "much", "kept")]
        for key in keys:
            await side.lead(key)
        side.config.set_topic("kept", {"cleanup.policy": "delete"})
        little, much, kept = [await fill(side, key) for key in keys]
        while await loop_of(side).compact_one():
            pass
        assert (cleaned(side, little), cleaned(side, much), cleaned(side, kept)) == (6, 6, None)
        await fill(side, keys[0], times=1)
        await fill(side, keys[1], times=9)
        await loop_of(side).compact_one()
        assert (cleaned(side, little), cleaned(side, much)) == (6, 25)
        await loop_of(side).compact_one()
        assert (cleaned(side, little), cleaned(side, much)) == (9, 25)


async def test_the_loop_works_while_there_is_work_and_then_looks_now_and_then() -> None:
    async with data_side({**COMPACT, "log.cleaner.backoff.ms": "15000"}) as side:
        await side.lead()
        side.run(loop_of(side).run())
        partition = await fill(side)
        assert cleaned(side, partition) is None
        await side.until(15_001)
        assert cleaned(side, partition) == 6
        side.config.set_broker({"log.cleaner.backoff.ms": "1000"})
        await fill(side)
        await side.until(30_001)
        assert cleaned(side, partition) == 13
        await fill(side)
        await side.until(32_001)
        assert cleaned(side, partition) == 20


async def test_nothing_is_compacted_faster_than_the_operator_allows() -> None:
    settings = {**COMPACT, "log.cleaner.io.max.bytes.per.second": "100"}
    async with data_side(settings) as side:
        await side.lead()
        partition = await fill(side, times=20)
        size = partition.log.segments.first.size
        began = side.clock.mono_ms()
        await loop_of(side).compact_one()
        assert side.clock.mono_ms() - began >= size * 10, "a hundred bytes a second"


async def stopped(side: DataSide, stop: PartitionStop) -> None:
    await side.services.transitions.stop_replicas([stop])


async def test_a_topic_deleted_while_it_is_compacted_harms_nobody() -> None:
    async with data_side(COMPACT, dirs=DIRS) as side:
        await side.lead()
        await fill(side)
        side.pool.held = True
        side.run(loop_of(side).run())
        for steps in range(8):
            await side.settle()
            if steps == 3:
                stop = PartitionStop(TP, LeaderEpoch(-2), delete=True)
                side.run(stopped(side, stop))
                await side.settle()
            side.pool.run_all()
        await side.settle()
        assert len(side.directories.online) == 2
        assert side.hosted.offline == frozenset()


@pytest.mark.parametrize("after", range(6))
async def test_a_topic_made_anew_meanwhile_is_not_taken_for_the_compacted_one(after: int) -> None:
    async with data_side(COMPACT) as side:
        await side.lead()
        await fill(side)
        side.pool.held = True
        side.run(loop_of(side).run())
        for steps in range(8):
            await side.settle()
            if steps == after:
                stop = PartitionStop(TP, LeaderEpoch(-2), delete=True)
                side.run(stopped(side, stop))
                await side.settle()
                side.pool.held = False  # the sync of the new log's directory
                await side.lead(topic_id=NEW_TOPIC_ID)
                side.pool.held = True
            side.pool.run_all()
        await side.settle()
        fresh = side.hosted.get(TP)
        assert cleaned(side, fresh) is None
        assert fresh.log.end_offset == 0
        assert (await side.append(None, acks=1)).error_code is ErrorCode.invalid_record
        assert len(side.directories.online) == 1


async def test_rot_makes_one_log_uncleanable_and_the_rest_go_on() -> None:
    async with data_side(COMPACT) as side:
        other = TopicPartition("u", 0)
        await side.lead()
        await side.lead(other)
        rotten, sound = await fill(side, times=9), await fill(side, other)
        path = rotten.log.segments.first.files.path()
        content = bytearray(side.disk.read(path))
        content[70] ^= 1
        side.disk.replace(path, bytes(content))
        while await loop_of(side).compact_one():
            pass
        assert cleaned(side, rotten) is None
        assert cleaned(side, sound) == 6
        assert side.count("kafka_log_logcleaner_uncleanable_partitions_count") == 1
        stop = PartitionStop(TP, LeaderEpoch(-2), delete=True)
        await side.services.transitions.stop_replicas([stop])
        await side.lead(topic_id=NEW_TOPIC_ID)
        assert side.count("kafka_log_logcleaner_uncleanable_partitions_count") == 0
        fresh = await fill(side)
        await loop_of(side).compact_one()
        assert cleaned(side, fresh) == 6, "another topic, though of the same name"


@pytest.mark.parametrize("isr", [(ME, OTHER), (ME,)], ids=["two in sync", "alone"])
async def test_rot_found_by_compaction_gives_up_a_log_that_another_replica_has(
    isr: tuple[BrokerId, ...],
) -> None:
    async with data_side({**COMPACT, "min.insync.replicas": "1"}) as side:
        partition = await side.lead(replicas=(ME, OTHER), isr=isr)
        await fill(side)
        partition.log.set_high_watermark(partition.log.end_offset)
        path = partition.log.segments.first.files.path()
        content = bytearray(side.disk.read(path))
        content[70] ^= 1
        side.disk.replace(path, bytes(content))
        await loop_of(side).compact_one()
        assert (side.hosted.offline == {TP}) is (len(isr) > 1)


@pytest.mark.parametrize("good_writes", range(4))
async def test_a_disk_that_fails_during_compaction_costs_its_directory_and_nothing_else(
    good_writes: int,
) -> None:
    async with data_side(COMPACT, dirs=DIRS) as side:
        await side.lead()
        await fill(side)
        side.pool.held = True
        side.run(loop_of(side).run())
        for steps in range(8):
            await side.settle()
            if steps == good_writes:
                side.disk.sync_error = OSError(errno.EIO, "broken")
                side.disk.capacity_bytes = side.disk.written_bytes
            side.pool.run_all()
        side.disk.sync_error = None
        side.disk.capacity_bytes = None
        await side.settle()
        assert [str(one.path) for one in side.directories.online] == ["/b"]
        assert side.hosted.offline == {TP}
