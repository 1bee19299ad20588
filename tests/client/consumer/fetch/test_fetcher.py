from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ottla.client.cluster import ConnectionLane
from ottla.client.consumer import subscribing
from ottla.client.consumer.fetch.delivery import take
from ottla.client.consumer.fetch.fetcher import COLUMNS_BYTES
from ottla.client.consumer.fetch.partition_selection import LARGE_BYTES
from ottla.client.consumer.position import seeking
from ottla.client.retry import Deadline
from ottla.model.ids import TopicPartition
from tests.client.consumer.batches import batch, large
from tests.client.consumer.scripted import FETCH, Rig

HERE, THERE = TopicPartition("t", 0), TopicPartition("t", 1)


def offsets_asked(rig: Rig) -> list[int]:
    """The offsets asked of partition 0, one for each fetch that asked it anew."""
    return [
        each.fetch_offset
        for _, request in rig.cluster.fetched
        for topic in request.topics
        for each in topic.partitions
        if each.partition == 0
    ]


@pytest.mark.spec("CON-13", "CFG-112", "CFG-113", "CFG-114", "CFG-115")
async def test_a_fetch_carries_the_settings() -> None:
    rig = Rig(
        fetch_min_bytes=5,
        fetch_max_wait_ms=77,
        fetch_max_bytes=1_000,
        max_partition_fetch_bytes=300,
        isolation_level="read_committed",
        client_rack="eu",
    )
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        await rig.until(lambda: bool(rig.cluster.fetched))
    _, request = rig.cluster.fetched[0]
    assert (request.min_bytes, request.max_bytes, request.rack_id) == (5, 1_000, "eu")
    assert request.max_wait.total_seconds() == 0.077
    assert request.isolation_level == 1
    (asked,) = request.topics[0].partitions
    assert (asked.partition_max_bytes, asked.current_leader_epoch) == (300, 0)


@pytest.mark.spec("CON-15")
async def test_fetches_run_ahead_of_the_user_and_not_too_far() -> None:
    rig = Rig()
    rig.cluster.logs[HERE] = [batch(at, 10) for at in range(0, 100, 10)]
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        await core.wait(Deadline(core.clock, 1_000))
        await asyncio.sleep(60)
        assert offsets_asked(rig) == [0, 10], "one to read, one to read next"
        assert [record.offset for record in await rig.poll()] == [*range(20)]
        await asyncio.sleep(1)
        assert offsets_asked(rig) == [0, 10, 20, 30]


async def test_a_broker_out_of_reach_is_tried_again_and_told_everything() -> None:
    rig = Rig()
    rig.cluster.logs[HERE] = [batch(0, 1)]
    rig.cluster.fetch_answers = [ConnectionError("gone"), TimeoutError("slow")]
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        assert len(await rig.poll(5)) == 1
        assert rig.cluster.refreshed, "perhaps somebody else leads by now"


async def test_closing_lets_brokers_forget_the_sessions() -> None:
    rig = Rig()
    rig.cluster.script[FETCH] = None
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        await rig.until(lambda: bool(rig.cluster.fetched))
        session = core.fetcher._sessions[1, ConnectionLane.DATA]
        session.id, session.epoch = 42, 3
        await core.fetcher.close()
    closing = rig.cluster.last(FETCH)
    assert (closing["session_id"], closing["session_epoch"]) == (42, -1)


async def test_a_reader_of_one_full_partition_never_waits_for_those_without_records() -> None:
    rig = Rig(fetch_max_wait_ms=500)
    rig.cluster.logs[HERE] = [batch(at, 1) for at in range(40)]
    async with rig.run() as core:
        subscribing.assign(core, [HERE, THERE])
        seen, begun_ms = 0, core.clock.mono_ms()
        while seen < 40:
            seen += len(await rig.poll())
            await asyncio.sleep(0.005)  # the user does something with them
        assert core.clock.mono_ms() - begun_ms < 500


async def test_those_without_records_are_asked_for_again_when_the_full_one_is_paused() -> None:
    rig = Rig(fetch_max_wait_ms=500)
    rig.cluster.logs[HERE] = [batch(at, 1) for at in range(40)]
    async with rig.run() as core:
        subscribing.assign(core, [HERE, THERE])
        await core.wait(Deadline(core.clock, 1_000))
        await asyncio.sleep(2)
        asked = len(rig.cluster.fetched)
        await asyncio.sleep(2)
        assert len(rig.cluster.fetched) == asked, "all waits for the user"
        seeking.pause(core, [HERE])
        rig.cluster.logs[THERE] = [batch(0, 1)]
        assert [(each.partition, each.offset) for each in await rig.poll()] == [(1, 0)]


def large_logs(rig: Rig) -> None:
    for tp in (HERE, THERE):
        rig.cluster.logs[tp] = [large(at, LARGE_BYTES) for at in range(6)]


async def read_all(rig: Rig) -> dict[TopicPartition, list[int]]:
    seen: dict[TopicPartition, list[int]] = {HERE: [], THERE: []}

    def note() -> bool:
        for record in take(rig.core) if rig.core.buffer.has_some else ():
            seen[TopicPartition(record.topic, record.partition)].append(record.offset)
        return sum(map(len, seen.values())) >= 12

    deadline = Deadline(rig.core.clock, 60_000)
    while not note() and await rig.core.wait(deadline):
        pass
    return seen


async def test_large_replies_are_fetched_two_at_a_time_and_each_record_once() -> None:
    rig = Rig()
    large_logs(rig)
    async with rig.run() as core:
        subscribing.assign(core, [HERE, THERE])
        assert await read_all(rig) == {HERE: [*range(6)], THERE: [*range(6)]}
    assert ConnectionLane.MORE_DATA in rig.cluster.fetched_by
    assert rig.cluster.fetched_by[0] is ConnectionLane.DATA


async def test_small_replies_are_fetched_over_one_connection() -> None:
    rig = Rig()
    for tp in (HERE, THERE):
        rig.cluster.logs[tp] = [batch(at, 1) for at in range(6)]
    async with rig.run() as core:
        subscribing.assign(core, [HERE, THERE])
        assert await read_all(rig) == {HERE: [*range(6)], THERE: [*range(6)]}
    assert set(rig.cluster.fetched_by) == {ConnectionLane.DATA}


async def test_without_a_second_connection_the_first_brings_everything() -> None:
    rig = Rig()
    rig.cluster.unreachable = {ConnectionLane.MORE_DATA}
    large_logs(rig)
    async with rig.run() as core:
        subscribing.assign(core, [HERE, THERE])
        assert await read_all(rig) == {HERE: [*range(6)], THERE: [*range(6)]}
    assert ConnectionLane.MORE_DATA in rig.cluster.fetched_by, "it was tried"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, COLUMNS_BYTES),
        ({"fetch_max_bytes": 6 << 20}, 3 << 20),
        ({"fetch_max_bytes": 1 << 20}, 1 << 20),
        ({"max_partition_fetch_bytes": 300}, 300),
    ],
)
async def test_columns_are_fetched_in_larger_pieces_unless_the_user_says_how_large(
    options: dict[str, Any], expected: int
) -> None:
    rig = Rig(**options)
    rig.core.fetcher.reads_columns = True
    async with rig.run() as core:
        subscribing.assign(core, [HERE, THERE])
        await rig.until(lambda: bool(rig.cluster.fetched))
    _, request = rig.cluster.fetched[-1]
    assert {each.partition_max_bytes for each in request.topics[0].partitions} == {expected}
