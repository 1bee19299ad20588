"""A second replica moves the high watermark, falls behind, leaves the ISR and comes back."""

from __future__ import annotations

import asyncio

import pytest

from ottla.model.errors import ErrorCode
from tests.fakes.async_tests import played_by
from tests.sim.second_replica import FOLLOWER, LEADER, Pair, play

LAG_MS = 10_000
QUICK = {"replica.lag.time.max.ms": str(LAG_MS)}


@pytest.mark.spec("REP-02", "REP-03", "REP-10", "REP-11", "REP-14", "REP-15", "REP-16")
@pytest.mark.parametrize("version", [4, 12, 13, 17])
def test_the_high_watermark_follows_one_fetch_behind(version: int) -> None:
    async def story(pair: Pair) -> None:
        replica = pair.replica
        assert await pair.high_watermark() == 0
        await pair.produce(b"one")
        assert await pair.high_watermark() == 0  # the other copy has not got it
        assert await replica.fetch() == 1
        assert (replica.end, replica.high_watermark) == (1, 0)
        assert await pair.high_watermark() == 0  # it was sent; whether it arrived nobody knows
        assert await replica.fetch() == 0
        assert (replica.end, replica.high_watermark) == (1, 1)
        assert await pair.high_watermark() == 1

    play(story, version=version)


@pytest.mark.spec("REP-13", "REP-17")
@played_by(play)
async def test_a_fetch_that_waits_is_answered_as_soon_as_there_is_a_record(pair: Pair) -> None:
    loop, replica = asyncio.get_running_loop(), pair.replica
    await asyncio.sleep(2)  # shortly after an election followers wait hardly at all
    began_s = loop.time()
    assert await replica.fetch(max_wait_ms=500) == 0
    assert loop.time() - began_s > 0.499  # the broker counts whole milliseconds
    waiting = asyncio.ensure_future(replica.fetch(max_wait_ms=30_000))
    await asyncio.sleep(1)
    assert not waiting.done()
    began_s = loop.time()
    await pair.produce(b"one")
    assert await waiting == 1
    assert loop.time() - began_s < 0.1
    assert await pair.high_watermark() == 0
    await replica.fetch()
    assert await pair.high_watermark() == 1


@pytest.mark.spec("REP-16", "REP-18")
@played_by(play)
async def test_a_follower_that_takes_a_part_moves_the_watermark_by_that_part(pair: Pair) -> None:
    replica = pair.replica
    await pair.produce(b"1", b"2", b"3", b"4", b"5")
    while replica.end < 3:
        await replica.fetch(max_bytes=1)
    assert (replica.end, replica.high_watermark) == (3, 2)
    await pair.produce(b"6", b"7")
    assert await replica.fetch() == 4
    assert await pair.high_watermark() == 3
    assert (replica.end, replica.high_watermark) == (7, 3)


@pytest.mark.spec("REP-21")
@played_by(play)
async def test_acks_all_waits_for_every_replica_in_sync(pair: Pair) -> None:
    acknowledged = asyncio.ensure_future(pair.produce(b"one", acks=-1))
    await asyncio.sleep(1)
    assert not acknowledged.done()
    assert await pair.replica.fetch() == 1
    await asyncio.sleep(1)
    assert not acknowledged.done()
    await pair.replica.fetch()
    assert await acknowledged is ErrorCode.none


@pytest.mark.spec("REP-20", "REP-24", "REP-26", "REP-28", "REP-29", "REP-30")
@played_by(play, QUICK)
async def test_a_follower_that_stops_fetching_leaves_the_isr_and_holds_nobody_up(
    pair: Pair,
) -> None:
    acknowledged = asyncio.ensure_future(pair.produce(b"one", acks=-1))
    took_s = await pair.until_isr(LEADER)
    assert LAG_MS <= took_s * 1000 <= LAG_MS * 1.5 + 100
    assert await acknowledged is ErrorCode.none
    assert await pair.high_watermark() == 1


@pytest.mark.spec("REP-26", "REP-27")
@played_by(play, QUICK)
async def test_a_follower_with_nothing_to_fetch_stays_in_the_isr(pair: Pair) -> None:
    await pair.produce(b"one")
    await pair.replica.fetch()
    await pair.replica.fetch()
    await asyncio.sleep(5 * LAG_MS / 1000)
    assert pair.isr() == (LEADER, FOLLOWER)


@pytest.mark.spec("REP-26", "REP-27")
@played_by(play, QUICK)
async def test_a_follower_that_is_always_a_little_behind_stays_in_the_isr(pair: Pair) -> None:
    for _ in range(100):
        await pair.produce(b"one", b"two", b"three")
        await pair.replica.fetch()
        await asyncio.sleep(LAG_MS / 1000 / 20)
        assert pair.isr() == (LEADER, FOLLOWER)


@pytest.mark.spec("REP-31", "REP-32", "REP-34")
@played_by(play, QUICK)
async def test_the_controller_and_then_everybody_hears_of_a_changed_isr(pair: Pair) -> None:
    await pair.produce(b"one")
    await pair.until_isr(LEADER)
    await pair.until_metadata_says(LEADER)
    await asyncio.sleep(1)
    assert pair.announcements() == []  # read, and cleared away
    while pair.replica.end < 1:
        await pair.replica.fetch()
    await pair.replica.fetch()
    await pair.until_isr(LEADER, FOLLOWER)
    await pair.until_metadata_says(LEADER, FOLLOWER)


@pytest.mark.spec("REP-33")
@played_by(play, QUICK)
async def test_a_follower_rejoins_once_it_has_reached_the_high_watermark(pair: Pair) -> None:
    replica = pair.replica
    await pair.produce(b"1", b"2", b"3", b"4")
    await pair.until_isr(LEADER)
    assert await pair.high_watermark() == 4
    while replica.end < 3:
        await replica.fetch(max_bytes=1)
    await replica.fetch(max_bytes=1)  # says that it has three of the four, and gets the last
    await asyncio.sleep(1)
    assert pair.isr() == (LEADER,)
    await replica.fetch()
    await pair.until_isr(LEADER, FOLLOWER, within_s=1)
    await pair.produce(b"5")
    assert await pair.high_watermark() == 4  # it counts again


@pytest.mark.spec("REP-22")
@played_by(play, {**QUICK, "min.insync.replicas": "2"})
async def test_too_small_an_isr_refuses_acks_all_and_nothing_else(pair: Pair) -> None:
    late = asyncio.ensure_future(pair.produce(b"caught out", acks=-1, timeout_ms=20_000))
    await pair.until_isr(LEADER)
    assert await pair.produce(b"no", acks=-1) is ErrorCode.not_enough_replicas
    assert await pair.produce(b"yes", acks=1) is ErrorCode.none
    assert await late is not ErrorCode.none
    assert await pair.high_watermark() == 0  # nothing counts as committed meanwhile
    while pair.replica.end < 2:
        await pair.replica.fetch()
    await pair.replica.fetch()
    await pair.until_isr(LEADER, FOLLOWER)
    acknowledged = asyncio.ensure_future(pair.produce(b"again", acks=-1))
    for _ in range(3):
        await asyncio.sleep(0.1)
        await pair.replica.fetch()
    assert await acknowledged is ErrorCode.none
    assert await pair.high_watermark() == 3
