"""Waits for what the broker wrote itself: in order, each told once, none for ever."""

from __future__ import annotations

import pytest

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.replica.commit_waiter import CommitWaiter
from tests.fakes.data_side import ME, OTHER, TP, DataSide, data_side

TOGETHER = (ME, OTHER)
SECOND = TopicPartition("t", 1)
Heard = list[tuple[str, ErrorCode]]


def commits(side: DataSide) -> CommitWaiter:
    return side.hosted.waiting.commits


def wait(
    side: DataSide, heard: Heard, who: str, end: int, timeout_ms: int = 1_000, key: object = TP
) -> None:
    [partition] = [one for one in side.hosted if one.key == key]
    commits(side).wait(partition, end, timeout_ms, lambda code: heard.append((who, code)))


async def test_each_hears_when_its_own_is_committed_and_in_the_order_of_the_log() -> None:
    async with data_side() as side:
        await side.lead(replicas=TOGETHER)
        heard: Heard = []
        for end, who in enumerate("abc", 1):
            side.start_append(b"x")
            wait(side, heard, who, end)
        assert heard == []
        side.start_fetch(2, replica_id=OTHER, max_wait_ms=0)
        assert heard == [("a", ErrorCode.none), ("b", ErrorCode.none)]
        side.start_fetch(3, replica_id=OTHER, max_wait_ms=0)
        assert heard[2:] == [("c", ErrorCode.none)]
        assert len(commits(side)) == 0


async def test_one_that_came_later_and_waits_for_less_is_not_held_up() -> None:
    async with data_side() as side:
        await side.lead(replicas=TOGETHER)
        heard: Heard = []
        side.start_append(b"x")
        side.start_append(b"x")
        wait(side, heard, "all", 2)
        wait(side, heard, "one", 1)
        side.start_fetch(1, replica_id=OTHER, max_wait_ms=0)
        assert heard == [("one", ErrorCode.none)]


async def test_what_is_committed_already_is_said_at_once() -> None:
    async with data_side() as side:
        await side.lead()
        heard: Heard = []
        side.start_append(b"x")
        wait(side, heard, "a", 1)
        assert heard == [("a", ErrorCode.none)]


async def test_whoever_may_wait_for_less_time_is_sent_away_first_and_nobody_else_with_it() -> None:
    async with data_side() as side:
        await side.lead(replicas=TOGETHER)
        await side.lead(SECOND, replicas=TOGETHER)
        heard: Heard = []
        side.start_append(b"x")
        side.start_append(b"x", key=SECOND)
        start = side.clock.mono_ms()
        wait(side, heard, "long", 1, 3_000)
        wait(side, heard, "short", 1, 1_000)
        wait(side, heard, "elsewhere", 1, 2_000, SECOND)
        await side.until(start + 999)
        assert heard == []
        await side.until(start + 1_002)
        assert heard == [("short", ErrorCode.request_timed_out)]
        await side.until(start + 2_002)
        assert heard[1:] == [("elsewhere", ErrorCode.request_timed_out)]
        side.start_fetch(1, replica_id=OTHER, max_wait_ms=0)
        assert heard[2:] == [("long", ErrorCode.none)]
        await side.until(start + 10_000)
        assert len(heard) == 3


async def test_one_that_waits_after_the_timer_was_set_has_all_of_its_own_time() -> None:
    async with data_side() as side:
        await side.lead(replicas=TOGETHER)
        heard: Heard = []
        side.start_append(b"x")
        start = side.clock.mono_ms()
        wait(side, heard, "first", 1)
        await side.until(start + 600)
        wait(side, heard, "second", 1)
        await side.until(start + 1_500)
        assert heard == [("first", ErrorCode.request_timed_out)]
        await side.until(start + 1_602)
        assert heard[1:] == [("second", ErrorCode.request_timed_out)]


async def test_waits_end_with_the_leadership_and_not_with_its_epoch() -> None:
    async with data_side() as side:
        await side.lead(replicas=TOGETHER)
        heard: Heard = []
        side.start_append(b"x")
        wait(side, heard, "a", 1)
        wait(side, heard, "b", 1)
        await side.lead(replicas=TOGETHER, epoch=1)
        assert heard == [], "the same broker leads"
        await side.lead(replicas=TOGETHER, epoch=2, leader=OTHER)
        assert heard == [(who, ErrorCode.not_leader_or_follower) for who in "ab"]


async def test_whoever_hears_may_wait_again_and_its_fault_costs_the_others_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with data_side() as side:
        partition = await side.lead(replicas=TOGETHER)
        heard: Heard = []

        def again(_: ErrorCode) -> None:
            side.start_append(b"y")
            wait(side, heard, "again", 2)
            raise ZeroDivisionError

        side.start_append(b"x")
        commits(side).wait(partition, 1, 1_000, again)
        wait(side, heard, "b", 1)
        side.start_fetch(1, replica_id=OTHER, max_wait_ms=0)
        assert heard == [("b", ErrorCode.none)]
        side.start_fetch(2, replica_id=OTHER, max_wait_ms=0)
        assert heard[1:] == [("again", ErrorCode.none)]
    assert "a callback waiting for a commit of" in caplog.text


async def test_what_lesser_acks_committed_before_the_disk_had_it_waits_for_the_disk() -> None:
    async with data_side({"flush.before.ack": "auto"}) as side:
        partition = await side.lead()
        side.pool.held = True
        heard: Heard = []
        side.start_append(b"x", acks=-1)
        wait(side, heard, "a", 1)
        await side.settle()
        assert partition.log.end_offset == 1
        assert heard == []
        side.pool.run_all()
        await side.settle()
        assert heard == [("a", ErrorCode.none)]
