"""Timers: one wake-up of the loop serves any number of timeouts."""

from __future__ import annotations

import asyncio
import logging

import pytest

from ottla.delay.timers import Timers
from ottla.model.clock import SystemClock
from tests.fakes.manual_time import ManualClock, ManualScheduler


def manual() -> tuple[Timers, ManualScheduler, ManualClock]:
    clock = ManualClock(5_000)
    scheduler = ManualScheduler(clock)
    return Timers(clock, scheduler), scheduler, clock


@pytest.mark.spec("DLY-15", "DLY-16")
def test_a_call_is_made_when_its_time_has_come_and_not_before() -> None:
    timers, scheduler, _ = manual()
    made: list[str] = []
    timers.call_later(450, lambda: made.append("late"))
    timers.call_later(30, lambda: made.append("early"))
    scheduler.pass_ms(29)
    assert made == []
    scheduler.pass_ms(1)
    assert made == ["early"]
    scheduler.pass_ms(419)
    assert made == ["early"]
    scheduler.pass_ms(1)
    assert made == ["early", "late"]
    assert len(timers) == 0
    assert scheduler.pending == [], "nothing waits, so nothing wakes the loop"


@pytest.mark.spec("DLY-14", "DLY-25")
def test_ten_thousand_timeouts_keep_one_wake_up_pending() -> None:
    timers, scheduler, _ = manual()
    calls = [timers.call_later(500 + n % 7, lambda: None) for n in range(10_000)]
    assert len(scheduler.pending) == 1
    assert len(scheduler.asked) < 10, "adding must not ask the loop each time"
    for call in calls:
        timers.cancel(call)
    assert len(timers) == 0
    scheduler.pass_ms(1_000)
    assert scheduler.pending == []


@pytest.mark.spec("DLY-17")
def test_a_call_without_delay_is_made_before_add_returns() -> None:
    timers, scheduler, _ = manual()
    made: list[str] = []
    timers.call_later(0, lambda: made.append("now"))
    assert made == ["now"]
    assert scheduler.pending == []


def test_a_wake_up_that_comes_too_early_is_asked_for_again() -> None:
    """An event loop may call up to the resolution of its clock before the time."""
    timers, scheduler, _ = manual()
    made: list[str] = []
    timers.call_later(10, lambda: made.append("call"))
    [wake] = scheduler.pending
    wake.cancel()
    wake.callback()
    assert made == []
    scheduler.pass_ms(10)
    assert made == ["call"]


def test_an_earlier_timeout_moves_the_wake_up_forward() -> None:
    timers, scheduler, _ = manual()
    made: list[int] = []
    timers.call_later(10_000, lambda: made.append(10_000))
    timers.call_later(3, lambda: made.append(3))
    assert len(scheduler.pending) == 1
    scheduler.pass_ms(3)
    assert made == [3]
    scheduler.pass_ms(9_997)
    assert made == [3, 10_000]


def test_a_failing_timeout_does_not_cost_the_others_theirs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    timers, scheduler, _ = manual()
    made: list[str] = []

    def fail() -> None:
        raise RuntimeError("of this one only")

    timers.call_later(10, fail)
    timers.call_later(10, lambda: made.append("same bucket"))
    timers.call_later(20, lambda: made.append("later"))
    with caplog.at_level(logging.ERROR):
        scheduler.pass_ms(30)
    assert made == ["same bucket", "later"]
    assert "of this one only" in caplog.text


def test_after_close_nothing_wakes_the_loop() -> None:
    timers, scheduler, _ = manual()
    timers.call_later(10, lambda: pytest.fail("closed"))
    timers.close()
    scheduler.pass_ms(100)


async def test_an_event_loop_is_a_scheduler() -> None:
    loop = asyncio.get_running_loop()
    timers = Timers(SystemClock(), loop)
    done = loop.create_future()
    timers.call_later(2, lambda: done.set_result(None))
    await asyncio.wait_for(done, 5)


def test_a_call_can_be_hastened_and_never_put_off() -> None:
    timers, scheduler, _ = manual()
    made: list[str] = []
    call = timers.call_later(450, lambda: made.append("made"))
    timers.hasten(call, 900)
    timers.hasten(call, 5)
    scheduler.pass_ms(4)
    assert made == []
    scheduler.pass_ms(1)
    assert made == ["made"]
    timers.hasten(call, 1)  # it is over
    scheduler.pass_ms(1_000)
    assert made == ["made"]
    assert scheduler.pending == []
