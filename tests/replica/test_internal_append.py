"""Batches of the broker's own: as durable as a produce with acks=all, and in their turn."""

from __future__ import annotations

from collections import deque

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.records.batch import build, crc_ok, read_header
from ottla.protocol.records.record import NewRecord
from ottla.replica.internal_append import InternalAppender
from tests.fakes.data_side import ME, OTHER, DataSide, data_side, values_of
from tests.fakes.forgetting_disk import ForgettingDisk

BATCH = build([NewRecord(b"k", b"ours", (), 1_000)])
AUTO = {"flush.before.ack": "auto"}


def appended(side: DataSide, batch: bytes = BATCH) -> list[ErrorCode]:
    codes: list[ErrorCode] = []
    [partition] = side.hosted
    InternalAppender(side.hosted).append(partition, batch, 1_000, codes.append)
    return codes


async def test_it_is_answered_when_the_disk_has_it() -> None:
    async with data_side(AUTO) as side:
        await side.lead()
        side.pool.held = True
        codes = appended(side)
        await side.settle()
        assert codes == []
        side.pool.run_all()
        await side.settle()
        assert codes == [ErrorCode.none]


@pytest.mark.parametrize("seed", range(20))
async def test_a_power_cut_takes_nothing_that_was_answered(seed: int) -> None:
    disk = ForgettingDisk()
    async with data_side(AUTO, disk=disk) as side:
        await side.lead()
        codes = appended(side)
        await side.settle()
        assert codes == [ErrorCode.none]
    disk.crash(seed)
    async with data_side(AUTO, disk=disk) as side:
        await side.lead(epoch=1)
        assert values_of(await side.read()) == [b"ours"]


async def test_it_waits_for_the_followers_and_no_longer_than_it_may() -> None:
    async with data_side() as side:
        await side.lead(replicas=(ME, OTHER))
        first = appended(side)
        side.start_fetch(1, replica_id=OTHER, max_wait_ms=0)
        assert first == [ErrorCode.none]
        second = appended(side)
        await side.until(side.clock.mono_ms() + 999)
        assert second == []
        await side.until(side.clock.mono_ms() + 2)
        assert second == [ErrorCode.request_timed_out]


async def test_whoever_appends_hears_where_it_stands_before_anybody_else_hears_of_anything() -> (
    None
):
    async with data_side() as side:
        partition = await side.lead()
        heard: list[object] = []

        def stands(first: int) -> None:
            heard.append((first, partition.log.end_offset, partition.log.high_watermark))

        own = InternalAppender(side.hosted)
        own.append(partition, BATCH, 1_000, heard.append, stands)
        own.append(partition, BATCH, 1_000, heard.append, stands)
        assert heard == [(0, 1, 0), ErrorCode.none, (1, 2, 1), ErrorCode.none]
        side.config.set_topic("t", {"max.message.bytes": str(len(BATCH) - 1)})
        own.append(partition, BATCH, 1_000, heard.append, stands)
        assert heard[4:] == [ErrorCode.message_too_large], "what is refused stands nowhere"


async def test_who_does_not_lead_and_too_large_a_batch_are_refused() -> None:
    async with data_side() as side:
        partition = await side.lead()
        side.config.set_topic("t", {"max.message.bytes": str(len(BATCH) - 1)})
        assert appended(side) == [ErrorCode.message_too_large]
        side.config.set_topic("t", {})
        await side.follow(epoch=1)
        assert appended(side) == [ErrorCode.not_leader_or_follower]
        assert partition.log.end_offset == 0
        assert partition.topic_metrics.failed_produce_requests.value == 2


async def test_a_disk_that_fails_says_so() -> None:
    async with data_side(dirs=("/a", "/b")) as side:
        await side.lead()
        side.disk.capacity_bytes = side.disk.written_bytes
        assert appended(side) == [ErrorCode.kafka_storage_error]


async def test_it_takes_its_turn_behind_a_batch_that_is_being_rewritten() -> None:
    async with data_side() as side:
        partition = await side.lead()
        partition.rewriting = deque()
        codes = appended(side)
        assert (codes, partition.log.end_offset) == ([], 0)
        queue, partition.rewriting = partition.rewriting, None
        for turn in queue:
            turn()
        assert (codes, partition.log.end_offset) == ([ErrorCode.none], 1)


async def test_where_the_topic_wants_our_time_it_has_it() -> None:
    async with data_side({"log.message.timestamp.type": "LogAppendTime"}) as side:
        partition = await side.lead()
        assert appended(side) == [ErrorCode.none]
        read = partition.log.read(0, 1 << 20, end=1, min_one=True)
        assert read.slice is not None
        header = read_header(read.slice.read())
        assert header.timestamp_type
        assert header.max_timestamp == side.clock.wall_ms()
        assert crc_ok(read.slice.read())
