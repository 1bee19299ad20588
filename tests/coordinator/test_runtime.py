"""A decision is answered when it is committed, and state is what the log says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from ottla.coordinator.group.classic.heartbeat import MemberIdentity
from ottla.coordinator.group.classic.sync import SyncRequest
from ottla.coordinator.internal_topic_log import RecordProducer
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import ProducerId, TopicPartition
from ottla.protocol.records.control import ControlType, EndTxnMarker
from ottla.protocol.records.header import CorruptBatch
from tests.coordinator.group.group_members import joined
from tests.coordinator.group.scene import code_of
from tests.coordinator.group_coordinator import OFFSETS, coordinating
from tests.fakes.data_side import ME, OTHER, fetch_from
from tests.fakes.forgetting_disk import ForgettingDisk

TWO = (ME, OTHER)
SEVEN = RecordProducer(ProducerId(7), 0)


async def code_when_awaited(work: Awaitable[object]) -> ErrorCode:
    try:
        await work
    except KafkaError as refusal:
        return refusal.code
    return ErrorCode.none


@pytest.mark.spec("GRP-59", "GRP-62")
async def test_a_commit_is_answered_when_the_high_watermark_covers_it() -> None:
    async with coordinating(lead=False) as made:
        await made.side.lead(OFFSETS, replicas=TWO)
        await made.side.settle()
        work = asyncio.ensure_future(made.commit(5))
        await made.side.settle()
        assert not work.done()
        reading = asyncio.ensure_future(made.committed())
        await made.side.settle()
        assert not reading.done(), "what is not committed is not shown"
        made.side.fetch(fetch_from(1, OFFSETS), replica_id=OTHER)
        assert await work == [ErrorCode.none]
        assert await reading == 5


@pytest.mark.spec("GRP-23", "GRP-79")
async def test_without_the_topic_or_its_partition_there_is_no_coordinator() -> None:
    async with coordinating(lead=False) as made:
        unavailable = await code_when_awaited(made.commit(5))
        assert unavailable is ErrorCode.coordinator_not_available
        await made.side.follow(OFFSETS, epoch=0)
        assert await code_when_awaited(made.commit(5)) is ErrorCode.not_coordinator


@pytest.mark.spec("GRP-23", "GRP-38", "GRP-43", "GRP-74")
async def test_while_it_loads_requests_hear_so_and_members_are_kept_patient() -> None:
    async with coordinating() as made:
        await made.commit(5)
        await made.side.follow(OFFSETS, epoch=1)
        made.side.pool.held = True
        await made.side.lead(OFFSETS, epoch=2)
        await made.side.settle()
        assert made.runtime.is_loading()
        assert await code_when_awaited(made.commit(6)) is ErrorCode.coordinator_load_in_progress
        assert (
            code_of(made.groups.overviews, set(), set()) is ErrorCode.coordinator_load_in_progress
        )
        ask = SyncRequest("m", None, 1, None, None, {})
        assert (await made.groups.sync("g", ask)).error is ErrorCode.rebalance_in_progress
        assert await made.groups.heartbeat("g", MemberIdentity("m"), 1) is ErrorCode.none
        made.side.pool.held = False
        made.side.pool.run_all()
        await made.side.settle()
        assert await made.committed() == 5


@pytest.mark.spec("GRP-74", "GRP-78")
async def test_a_load_that_is_not_wanted_any_more_ends_quietly() -> None:
    async with coordinating() as made:
        await made.commit(5)
        await made.side.follow(OFFSETS, epoch=1)
        made.side.pool.held = True
        await made.side.lead(OFFSETS, epoch=2)
        await made.side.settle()
        await made.side.follow(OFFSETS, epoch=3)
        made.side.pool.held = False
        made.side.pool.run_all()
        await made.side.settle()
        assert made.runtime.active() == []
        await made.side.lead(OFFSETS, epoch=4)
        await made.side.settle()
        assert await made.committed() == 5


async def test_rot_that_is_found_while_it_loads_takes_the_partition_offline() -> None:
    async with coordinating() as made:
        await made.commit(5)
        await made.side.follow(OFFSETS, epoch=1)
        made.side.pool.fault = CorruptBatch("rotten")
        await made.side.lead(OFFSETS, epoch=2)
        await made.side.settle()
        made.side.pool.fault = None
        assert made.runtime.active() == []
        assert OFFSETS in made.side.hosted.offline


@pytest.mark.spec("GRP-78")
async def test_what_waits_hears_that_the_coordinator_moved() -> None:
    async with coordinating(lead=False) as made:
        await made.side.lead(OFFSETS, replicas=TWO)
        await made.side.settle()
        work = asyncio.ensure_future(made.commit(5))
        await made.side.settle()
        await made.side.follow(OFFSETS, epoch=1)
        assert await code_when_awaited(work) is ErrorCode.not_coordinator


async def test_leading_on_under_a_newer_epoch_keeps_the_state() -> None:
    async with coordinating() as made:
        await made.commit(5)
        shard = made.shard
        await made.side.lead(OFFSETS, epoch=1)
        assert made.shard is shard
        assert made.runtime.owned_shard("g").epoch == 1


@pytest.mark.spec("GRP-59")
async def test_a_commit_that_is_not_replicated_in_time_says_so_and_stays() -> None:
    async with coordinating(lead=False, timeout_ms=500) as made:
        await made.side.lead(OFFSETS, replicas=TWO)
        await made.side.settle()
        assert await code_when_awaited(made.commit(5)) is ErrorCode.coordinator_not_available
        assert made.shard.offsets.get("g", "t", 0) is not None, "it stands in the log"


@pytest.mark.spec("GRP-59", "GRP-62")
async def test_a_refused_append_leaves_no_trace() -> None:
    async with coordinating({"min.insync.replicas": "2"}, lead=False) as made:
        await made.side.lead(OFFSETS, replicas=TWO, isr=(ME,))
        await made.side.settle()
        assert await code_when_awaited(made.commit(5)) is ErrorCode.coordinator_not_available
        assert made.shard.offsets.groups() == []


@pytest.mark.spec("GRP-66", "GRP-76")
async def test_offsets_of_a_transaction_count_with_its_marker_now_and_after_loading() -> None:
    disk = ForgettingDisk()
    async with coordinating(disk=disk) as made:
        await made.commit(5)
        await made.commit(6, producer=SEVEN)
        assert await made.committed() == 5
        assert await made.committed(stable=True) is ErrorCode.unstable_offset_commit
        await made.side.follow(OFFSETS, epoch=1)
        await made.side.lead(OFFSETS, epoch=2)
        await made.side.settle()
        assert await made.committed(stable=True) is ErrorCode.unstable_offset_commit
        marker = EndTxnMarker(ControlType.COMMIT, 0)
        await made.runtime.end_transaction(0, SEVEN, marker)
        assert await made.committed(stable=True) == 6
        await made.commit(9, producer=SEVEN)
        await made.runtime.end_transaction(0, SEVEN, EndTxnMarker(ControlType.ABORT, 0))
        assert await made.committed(stable=True) == 6
        await made.side.follow(OFFSETS, epoch=3)
        await made.side.lead(OFFSETS, epoch=4)
        await made.side.settle()
        assert await made.committed(stable=True) == 6


@pytest.mark.spec("GRP-72", "MDC-11")
async def test_partitions_that_are_deleted_take_their_offsets_with_them() -> None:
    async with coordinating() as made:
        await made.commit(5)
        made.groups.topics_changed(["t"], [TopicPartition("t", 0)])
        await made.side.settle()
        assert await made.committed() is None


async def test_more_than_one_batch_can_hold_is_written_in_several() -> None:
    settings = {"message.max.bytes": "4096"}
    async with coordinating(settings) as made:
        for partition in range(200):
            await made.commit(partition, partition=partition)
        gone = [TopicPartition("t", partition) for partition in range(200)]
        made.groups.topics_changed(["t"], gone)
        await made.side.settle()
        assert made.shard.offsets.groups() == []


@pytest.mark.spec("GRP-44")
async def test_timers_ring_on_the_shared_wheel() -> None:
    async with coordinating() as made:
        await joined(made, "g")
        assert len(made.shard.groups["g"].members) == 1
        await made.side.until(made.side.clock.mono_ms() + 11_000)
        await made.side.settle()
        assert made.shard.groups["g"].members == {}


@pytest.mark.spec("GRP-59", "GRP-75")
@pytest.mark.parametrize("seed", range(30))
async def test_committed_offsets_survive_a_power_cut(seed: int) -> None:
    """Whatever the disk forgets, it is nothing that a committer was told is stored."""
    disk = ForgettingDisk()
    told: dict[str, int] = {}
    async with coordinating({"flush.before.ack": "auto"}, disk=disk) as made:
        for value in range(1, 8):
            group = f"g{value % 3}"
            await made.commit(value, group)
            told[group] = value
        made.side.pool.held = True  # this one is never flushed, and nobody is told
        work = asyncio.ensure_future(made.commit(99))
        await made.side.settle()
        work.cancel()
        disk.crash(seed)
        made.side.pool.held = False
    async with coordinating({"flush.before.ack": "auto"}, disk=disk) as made:
        for group, value in told.items():
            assert await made.committed(group) == value
