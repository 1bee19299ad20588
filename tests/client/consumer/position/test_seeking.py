from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ottla.client.consumer import subscribing
from ottla.client.consumer.core import Core
from ottla.client.consumer.errors import NoOffset
from ottla.client.consumer.position import seeking
from ottla.client.consumer.position.partition_position import PositionPhase
from ottla.client.offsets import OffsetAndMetadata, OffsetAndTimestamp
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition
from tests.client.consumer.batches import batch
from tests.client.consumer.scripted import LIST_OFFSETS, Rig, offsets_at, view

HERE, THERE = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.mark.spec("CON-09")
@pytest.mark.parametrize(
    "call",
    [
        lambda core: seeking.seek(core, HERE, 1),
        lambda core: seeking.seek_to(core, [HERE], -1),
        lambda core: seeking.pause(core, [HERE]),
        lambda core: seeking.resume(core, [HERE]),
        lambda core: seeking.lag(core, HERE),
    ],
)
def test_a_partition_must_be_assigned(call: Callable[[Core], Any]) -> None:
    with pytest.raises(UserError, match="t-0 is not assigned"):
        call(Rig().core)


@pytest.mark.spec("CON-09")
def test_a_seek_places_and_with_an_epoch_is_checked() -> None:
    rig = Rig()
    subscribing.assign(rig.core, [HERE])
    seeking.seek(rig.core, HERE, 5)
    assert rig.core.subscriptions[HERE].phase is PositionPhase.READY
    seeking.seek(rig.core, HERE, OffsetAndMetadata(5, leader_epoch=2))
    assert rig.core.subscriptions[HERE].phase is PositionPhase.UNCHECKED
    with pytest.raises(UserError, match="expected an offset of 0 or more"):
        seeking.seek(rig.core, HERE, -1)
    with pytest.raises(UserError, match="milliseconds since 1970"):
        seeking.checked_time(-5)


def test_no_partition_named_means_all() -> None:
    rig = Rig()
    subscribing.assign(rig.core, [HERE, THERE])
    seeking.seek_to(rig.core, (), -2)
    assert {part.reset_to for part in rig.core.subscriptions} == {-2}


async def test_a_position_is_waited_for() -> None:
    rig = Rig()
    rig.cluster.script[LIST_OFFSETS] = offsets_at(5)
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        assert await seeking.position(core, HERE, 1_000) == 5


async def test_a_position_that_does_not_come_runs_out_of_time_or_says_why() -> None:
    rig = Rig()
    rig.cluster.metadata = view({"t": 2}, leader=-1)
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        with pytest.raises(TimeoutError, match="no position of t-0 within 2000 ms"):
            await seeking.position(core, HERE, 2_000)
    rig = Rig(auto_offset_reset="none")
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        with pytest.raises(NoOffset):
            await seeking.position(core, HERE, 2_000)


@pytest.mark.spec("CON-11")
async def test_what_is_paused_is_not_fetched_and_comes_back() -> None:
    rig = Rig()
    rig.cluster.logs = {HERE: [batch(0, 2)], THERE: [batch(0, 3)]}
    async with rig.run() as core:
        subscribing.assign(core, [HERE, THERE])
        seeking.pause(core, [HERE])
        assert seeking.paused_partitions(core) == {HERE}
        assert len(await rig.poll()) == 3
        assert await rig.poll(10) == []
        seeking.resume(core, [HERE])
        assert len(await rig.poll()) == 2


@pytest.mark.spec("CON-10")
async def test_offsets_by_time_and_at_the_ends() -> None:
    rig = Rig()
    rig.cluster.script[LIST_OFFSETS] = offsets_at(5)
    found = await seeking.offsets_for_times(rig.core, {HERE: 9}, 1_000)
    assert found == {HERE: OffsetAndTimestamp(5, -1, 0)}
    assert await seeking.beginning_offsets(rig.core, [HERE], 1_000) == {HERE: 5}
    assert await seeking.end_offsets(rig.core, [HERE], 1_000) == {HERE: 5}
    rig.cluster.script[LIST_OFFSETS] = offsets_at(-1)
    assert await seeking.offsets_for_times(rig.core, {HERE: 9}, 1_000) == {HERE: None}


async def test_what_was_taken_and_not_seen_is_read_again() -> None:
    rig = Rig()
    rig.cluster.logs[HERE] = [batch(0, 8)]
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        await rig.poll()
        seeking.rewind(core, {HERE: 5, THERE: 1})
        assert [record.offset for record in await rig.poll()] == [5, 6, 7]
