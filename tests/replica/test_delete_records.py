"""Deleting records up to an offset, here and on every replica."""

from __future__ import annotations

import asyncio

import pytest

from ottla.model.errors import ErrorCode
from ottla.model.ids import CONSUMER_OFFSETS, TopicPartition
from ottla.replica.delete_records import Deletion, PartitionDeletion
from tests.fakes.data_side import ME, OTHER, TP, DataSide, data_side, fetch_from, values_of

TWO = (ME, OTHER)


async def fill(side: DataSide, count: int, key: TopicPartition = TP) -> None:
    for index in range(count):
        await side.append(b"%d" % index, key=key)


async def delete(
    side: DataSide, before: int, key: TopicPartition = TP, timeout_ms: int = 1_000
) -> Deletion:
    [one] = await side.services.deletes.delete([PartitionDeletion(key, before)], timeout_ms)
    return one


@pytest.mark.spec("REP-70", "LOG-54", "DLY-30", "REP-78")
async def test_what_lies_below_is_gone_for_readers_at_once() -> None:
    async with data_side() as side:
        await side.lead()
        await fill(side, 5)
        done = await delete(side, 3)
        assert (done.code, done.low_watermark) == (ErrorCode.none, 3)
        assert (await side.read(2)).error_code is ErrorCode.offset_out_of_range
        left = await side.read(3)
        assert (values_of(left), left.log_start_offset) == ([b"3", b"4"], 3)


@pytest.mark.spec("REP-70")
async def test_minus_one_means_all_that_is_committed() -> None:
    async with data_side() as side:
        await side.lead(replicas=TWO)
        await fill(side, 5)
        side.start_fetch(4, replica_id=OTHER)
        asyncio.get_running_loop().call_later(
            0.1, lambda: side.fetch(fetch_from(5, log_start=4), replica_id=OTHER)
        )
        done = await delete(side, -1)
        assert (done.code, done.low_watermark) == (ErrorCode.none, 4)


@pytest.mark.spec("LOG-54")
async def test_the_start_only_moves_forward() -> None:
    async with data_side() as side:
        partition = await side.lead()
        await fill(side, 5)
        await delete(side, 3)
        again = await delete(side, 1)
        assert (again.code, again.low_watermark) == (ErrorCode.none, 3)
        assert partition.log.start_offset == 3


@pytest.mark.spec("LOG-54", "REP-70")
@pytest.mark.parametrize("before", [6, -2])
async def test_nothing_above_the_high_watermark_can_be_deleted(before: int) -> None:
    async with data_side() as side:
        partition = await side.lead()
        await fill(side, 5)
        refused = await delete(side, before)
        assert (refused.code, refused.low_watermark) == (ErrorCode.offset_out_of_range, -1)
        assert partition.log.start_offset == 0


@pytest.mark.spec("DLY-30", "REP-70", "REP-04")
async def test_it_waits_until_every_live_replica_has_done_so() -> None:
    async with data_side() as side:
        await side.lead(replicas=TWO)
        await fill(side, 5)
        side.start_fetch(5, replica_id=OTHER)
        loop = asyncio.get_running_loop()
        loop.call_later(0.2, lambda: side.fetch(fetch_from(5, log_start=2), replica_id=OTHER))
        loop.call_later(0.5, lambda: side.fetch(fetch_from(5, log_start=3), replica_id=OTHER))
        done = await delete(side, 3)
        assert (done.code, done.low_watermark) == (ErrorCode.none, 3)
        assert side.clock.mono_ms() == 500


@pytest.mark.spec("REP-04", "DLY-30")
async def test_a_replica_that_is_not_alive_is_not_waited_for() -> None:
    async with data_side() as side:
        await side.lead(replicas=TWO)
        await fill(side, 5)
        side.start_fetch(5, replica_id=OTHER)
        await side.lead(TopicPartition("u", 0))  # an update that knows of one broker
        done = await delete(side, 3)
        assert (done.code, side.clock.mono_ms()) == (ErrorCode.none, 0)


@pytest.mark.spec("DLY-30")
async def test_a_replica_that_does_not_follow_is_a_timeout() -> None:
    async with data_side() as side:
        await side.lead(replicas=TWO)
        await fill(side, 5)
        side.fetch(fetch_from(5, log_start=1), replica_id=OTHER)
        late = await delete(side, 3, timeout_ms=700)
        assert late.code is ErrorCode.request_timed_out
        assert side.clock.mono_ms() == 700


@pytest.mark.spec("DLY-30")
async def test_who_waits_hears_when_the_leadership_or_the_disk_is_lost() -> None:
    async def become_follower(side: DataSide) -> None:
        await side.follow(epoch=1)

    async with data_side() as side:
        loop = asyncio.get_running_loop()
        for epoch, ends in ((0, "follow"), (2, "lose")):
            await side.lead(epoch=epoch, replicas=TWO)
            await fill(side, 5)
            side.start_fetch(side.hosted.get(TP).log.end_offset, replica_id=OTHER)
            if ends == "follow":
                loop.call_later(0.1, lambda: side.run(become_follower(side)))
            else:
                loop.call_later(0.1, lambda: side.hosted.mark_offline([TP]))
            done = await delete(side, 3 + epoch)
            expected = {
                "follow": ErrorCode.not_leader_or_follower,
                "lose": ErrorCode.kafka_storage_error,
            }
            assert done.code is expected[ends]


async def test_refusals_are_said_for_each_partition_apart() -> None:
    async with data_side() as side:
        internal, kept = TopicPartition(CONSUMER_OFFSETS, 0), TopicPartition("kept", 0)
        for key in (TP, internal, kept):
            await side.lead(key)
        side.config.set_topic("kept", {"cleanup.policy": "compact"})
        followed = TopicPartition("followed", 0)
        await side.follow(followed, epoch=0)
        await fill(side, 2)
        nowhere = TopicPartition("nowhere", 0)
        keys = (TP, internal, kept, followed, nowhere)
        deletions = await side.services.deletes.delete(
            [PartitionDeletion(k, 0) for k in keys], 1_000
        )
        assert [one.code for one in deletions] == [
            ErrorCode.none,
            ErrorCode.invalid_topic_exception,
            ErrorCode.policy_violation,
            ErrorCode.not_leader_or_follower,
            ErrorCode.unknown_topic_or_partition,
        ]


async def test_a_follower_keeps_what_only_its_leader_may_delete() -> None:
    async with data_side() as side:
        partition = await side.lead()
        await fill(side, 3)
        await side.follow(epoch=1)
        assert (await delete(side, 2)).code is ErrorCode.not_leader_or_follower
        assert partition.log.start_offset == 0


async def test_a_topic_that_is_compacted_and_deleted_may_lose_records() -> None:
    async with data_side({"log.cleanup.policy": "compact,delete"}) as side:
        await side.lead()
        await side.start_append(records=side.batch(b"x", key=b"k"))
        assert (await delete(side, 1)).code is ErrorCode.none
