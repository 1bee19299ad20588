from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.client.consumer import subscribing
from ottla.client.consumer.errors import LogTruncated, NoOffset
from ottla.client.consumer.position.partition_position import AssignedPartition, PositionPhase
from ottla.client.errors import KafkaError, UnsupportedVersion
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from tests.client.consumer.batches import batch
from tests.client.consumer.scripted import (
    LIST_OFFSETS,
    OFFSET_FETCH,
    OFFSET_FOR_LEADER_EPOCH,
    Rig,
    committed,
    offsets_at,
    view,
)

HERE = TopicPartition("t", 0)


def epoch_end(end: int, epoch: int, code: ErrorCode = ErrorCode.none) -> Any:
    told = SimpleNamespace(partition=0, error_code=code, leader_epoch=epoch, end_offset=end)
    return SimpleNamespace(topics=[SimpleNamespace(topic="t", partitions=[told])])


async def positions_found(rig: Rig) -> AssignedPartition:
    part = rig.core.subscriptions[HERE]
    await rig.until(lambda: part.phase is PositionPhase.READY)
    return part


@pytest.mark.spec("CON-12")
async def test_reading_begins_at_the_committed_offset() -> None:
    rig = Rig(group_id="g")
    rig.cluster.script[OFFSET_FETCH] = committed({HERE: (7, -1)})
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        assert (await positions_found(rig)).offset == 7
    assert rig.cluster.times(LIST_OFFSETS) == 0


@pytest.mark.spec("CON-12", "CFG-110")
@pytest.mark.parametrize(("policy", "time"), [("earliest", -2), ("latest", -1)])
async def test_without_one_the_policy_is_asked_for(policy: str, time: int) -> None:
    rig = Rig(group_id="g", auto_offset_reset=policy)
    rig.cluster.script[OFFSET_FETCH] = committed({})
    rig.cluster.script[LIST_OFFSETS] = offsets_at(5, epoch=3)
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        part = await positions_found(rig)
        assert (part.offset, part.epoch) == (5, 3)
    asked = rig.cluster.last(LIST_OFFSETS)["topics"][0]["partitions"][0]
    assert asked["timestamp"] == time


async def test_without_a_policy_every_poll_says_so_until_the_user_seeks() -> None:
    rig = Rig(group_id="g", auto_offset_reset="none")
    rig.cluster.script[OFFSET_FETCH] = committed({})
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        for _ in range(3):
            with pytest.raises(NoOffset):
                await rig.until(lambda: False)
        core.subscriptions[HERE].seek(0)
        assert await rig.poll(0.1) == []


async def test_what_passes_is_tried_again_what_does_not_is_raised() -> None:
    rig = Rig(group_id="g")
    rig.cluster.script[OFFSET_FETCH] = [
        ConnectionError("gone"),
        SimpleNamespace(groups=[SimpleNamespace(error_code=ErrorCode.not_coordinator, topics=[])]),
        SimpleNamespace(
            groups=[SimpleNamespace(error_code=ErrorCode.unstable_offset_commit, topics=[])]
        ),
        SimpleNamespace(
            groups=[SimpleNamespace(error_code=ErrorCode.group_authorization_failed, topics=[])]
        ),
        committed({HERE: (3, -1)}),
    ]
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        with pytest.raises(KafkaError) as caught:
            await rig.until(lambda: False)
        assert caught.value.code is ErrorCode.group_authorization_failed
        assert rig.cluster.forgotten == 2, "the connection failed, then another was named"
        assert (await positions_found(rig)).offset == 3, "the next poll asks again"


async def test_a_seek_while_the_answer_is_under_way_wins() -> None:
    async def slowly(fields: Any) -> Any:
        await asyncio.sleep(5)
        return committed({HERE: (7, -1)})(fields)

    rig = Rig(group_id="g")
    rig.cluster.script[OFFSET_FETCH] = slowly
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        await rig.until(lambda: bool(rig.cluster.asked))
        core.subscriptions[HERE].seek(2)
        await rig.poll(10)
        assert core.subscriptions[HERE].offset == 2


async def test_a_partition_without_a_leader_waits_for_one() -> None:
    rig = Rig()
    rig.cluster.metadata = view({"t": 1}, leader=-1)
    rig.cluster.next_views = [view({"t": 1}, leader=-1), view({"t": 1}, leader=1)]
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        assert (await positions_found(rig)).offset == 0
    assert len(rig.cluster.refreshed) >= 2


async def at_eight(rig: Rig, *log_after: bytes) -> AssignedPartition:
    """Has read up to offset 8, written in epoch 1; then a leader of epoch 2 takes over."""
    rig.cluster.metadata = view({"t": 1}, epoch=1)
    rig.cluster.logs[HERE] = [batch(0, 8, leader_epoch=1)]
    subscribing.assign(rig.core, [HERE])
    await rig.until(lambda: rig.core.subscriptions[HERE].offset == 8)
    rig.cluster.next_views = [view({"t": 1}, epoch=2, leader=2)]
    rig.cluster.logs[HERE] = list(log_after) or rig.cluster.logs[HERE]
    rig.core.watch.request_refresh()
    await rig.until(lambda: bool(rig.cluster.times(OFFSET_FOR_LEADER_EPOCH)))
    return rig.core.subscriptions[HERE]


@pytest.mark.spec("CON-17")
async def test_a_new_leader_that_has_what_was_read_is_read_on_from() -> None:
    rig = Rig({"t": 1})
    rig.cluster.script[OFFSET_FOR_LEADER_EPOCH] = epoch_end(8, 1)
    async with rig.run():
        await at_eight(rig)
        assert (await positions_found(rig)).offset == 8
    asked = rig.cluster.last(OFFSET_FOR_LEADER_EPOCH)["topics"][0]["partitions"][0]
    assert asked == {"partition": 0, "current_leader_epoch": 2, "leader_epoch": 1}
    assert rig.cluster.fetched[-1][0] == 2, "and it is the new leader that is asked"


async def test_a_truncated_log_is_read_on_from_where_it_parts() -> None:
    rig = Rig({"t": 1})
    rig.cluster.script[OFFSET_FOR_LEADER_EPOCH] = epoch_end(5, 1)
    async with rig.run() as core:
        part = await at_eight(rig, batch(0, 5, leader_epoch=1), batch(5, 2, leader_epoch=2))
        await rig.until(lambda: part.offset == 7)
        assert core.records == 10, "the eight, and the two that took their place"


async def test_a_truncated_log_is_the_users_matter_without_a_policy() -> None:
    rig = Rig({"t": 1}, auto_offset_reset="none", group_id="g")
    rig.cluster.script[OFFSET_FETCH] = committed({HERE: (0, -1)})
    rig.cluster.script[OFFSET_FOR_LEADER_EPOCH] = epoch_end(5, 1)
    async with rig.run():
        with pytest.raises(LogTruncated) as caught:
            await at_eight(rig)
            await rig.until(lambda: False)
        assert (caught.value.position, caught.value.end) == (8, 5)


async def test_an_epoch_nobody_knows_any_more_is_reset() -> None:
    rig = Rig({"t": 1})
    rig.cluster.script[OFFSET_FOR_LEADER_EPOCH] = epoch_end(-1, -1)
    async with rig.run():
        part = await at_eight(rig, batch(0, 2, leader_epoch=2))
        await rig.until(lambda: part.offset == 2)


async def test_a_broker_too_old_to_say_is_believed() -> None:
    rig = Rig({"t": 1})
    rig.cluster.script[OFFSET_FOR_LEADER_EPOCH] = UnsupportedVersion("too old")
    async with rig.run():
        await at_eight(rig)
        assert (await positions_found(rig)).offset == 8
