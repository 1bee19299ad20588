"""The timing wheel: every entry expires once, in time, wherever it was put."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.delay.wheel import Entry, TimingWheel
from ottla.model.clock import MonoMs


class Alarm(Entry):
    def on_timeout(self) -> None:
        raise AssertionError("a pure wheel runs nothing")


def stops(wheel: TimingWheel, alarm: Alarm) -> list[int]:
    """The times at which the wheel wants to be advanced until `alarm` is due."""
    times: list[int] = []
    while alarm.waiting:
        now = wheel.next_ms()
        assert now is not None
        times.append(now)
        wheel.advance(now)
    return times


@pytest.mark.spec("DLY-03", "DLY-11")
def test_a_timeout_of_450_ms_falls_through_three_levels_and_is_on_time() -> None:
    wheel, alarm = TimingWheel(MonoMs(0)), Alarm()
    assert wheel.add(alarm, MonoMs(450))
    assert wheel.level_count == 3
    assert stops(wheel, alarm) == [400, 440, 450]


@pytest.mark.spec("DLY-09", "DLY-10")
def test_an_entry_shares_the_bucket_of_its_level_that_covers_it() -> None:
    wheel, alarm, neighbour = TimingWheel(MonoMs(0), tick_ms=20), Alarm(), Alarm()
    wheel.add(alarm, MonoMs(237))
    wheel.add(neighbour, MonoMs(220))
    assert wheel.next_ms() == 220
    assert wheel.advance(MonoMs(219)) == []
    assert wheel.advance(MonoMs(220)) == [alarm, neighbour], "one bucket covers 220 to 240"


@pytest.mark.spec("DLY-04")
def test_a_bucket_is_due_as_a_whole_and_all_levels_share_one_count() -> None:
    wheel, alarms = TimingWheel(MonoMs(0)), [Alarm() for _ in range(4)]
    for alarm, at_ms in zip(alarms, (3, 25, 39, 450), strict=True):
        wheel.add(alarm, MonoMs(at_ms))
    assert (len(wheel), wheel.next_ms()) == (4, 3)
    assert wheel.advance(MonoMs(3)) == alarms[:1]
    assert (len(wheel), wheel.next_ms()) == (3, 20), "the bucket of 25 and 39 begins at 20"
    wheel.cancel(alarms[1])
    wheel.cancel(alarms[2])
    assert (len(wheel), wheel.next_ms()) == (1, 400), "an empty bucket is not waited for"


@pytest.mark.spec("DLY-08")
def test_the_clock_of_a_level_is_a_multiple_of_its_tick() -> None:
    wheel, alarm = TimingWheel(MonoMs(123), tick_ms=20), Alarm()
    assert not wheel.add(alarm, MonoMs(139)), "due: 120 + 20 has not been reached by 139"
    assert wheel.add(alarm, MonoMs(140))


@pytest.mark.spec("DLY-09", "DLY-17")
def test_what_is_due_already_is_not_added() -> None:
    wheel, alarm = TimingWheel(MonoMs(1_000)), Alarm()
    assert not wheel.add(alarm, MonoMs(1_000))
    assert not wheel.add(alarm, MonoMs(10))
    assert not alarm.waiting
    assert len(wheel) == 0


@pytest.mark.spec("DLY-05", "DLY-07")
def test_a_cancelled_entry_is_gone_at_once_and_can_be_added_again() -> None:
    wheel, alarm = TimingWheel(MonoMs(0)), Alarm()
    wheel.add(alarm, MonoMs(50))
    assert wheel.cancel(alarm)
    assert not wheel.cancel(alarm)
    assert (len(wheel), alarm.waiting, wheel.next_ms()) == (0, False, None)
    wheel.add(alarm, MonoMs(70))
    assert wheel.advance(MonoMs(60)) == []
    assert wheel.advance(MonoMs(70)) == [alarm]


@pytest.mark.spec("DLY-13")
def test_a_bucket_that_was_not_waited_for_is_queued_again_for_the_same_time() -> None:
    wheel, alarm = TimingWheel(MonoMs(0)), Alarm()
    wheel.add(alarm, MonoMs(7))
    wheel.cancel(alarm)
    assert wheel.next_ms() is None, "its bucket leaves the queue, empty"
    wheel.add(alarm, MonoMs(7))
    assert wheel.next_ms() == 7
    assert wheel.advance(MonoMs(7)) == [alarm]


@pytest.mark.spec("DLY-07")
def test_adding_an_entry_that_waits_moves_it() -> None:
    wheel, alarm = TimingWheel(MonoMs(0)), Alarm()
    wheel.add(alarm, MonoMs(5))
    wheel.add(alarm, MonoMs(500))
    assert len(wheel) == 1
    assert wheel.advance(MonoMs(499)) == []
    assert wheel.advance(MonoMs(500)) == [alarm]


@pytest.mark.spec("DLY-12", "DLY-13")
def test_a_bucket_is_queued_once_for_each_turn_of_its_wheel() -> None:
    wheel = TimingWheel(MonoMs(0))
    for _ in range(3):
        wheel.add(Alarm(), MonoMs(7))
    assert len(wheel.advance(MonoMs(7))) == 3
    wheel.advance(MonoMs(10))
    later = Alarm()
    wheel.add(later, MonoMs(27))  # the same bucket of level 1, one turn on
    assert wheel.next_ms() == 27
    assert wheel.advance(MonoMs(27)) == [later]
    assert wheel.next_ms() is None


@pytest.mark.spec("DLY-02", "DLY-14", "DLY-15")
@given(
    delays=st.lists(st.integers(1, 200_000), max_size=60),
    cancelled=st.sets(st.integers(0, 59)),
    steps=st.lists(st.integers(1, 30_000), min_size=1, max_size=40),
    start=st.integers(0, 10_000),
)
def test_every_entry_expires_once_and_neither_early_nor_late(
    delays: list[int], cancelled: set[int], steps: list[int], start: int
) -> None:
    wheel = TimingWheel(MonoMs(start))
    alarms = [Alarm() for _ in delays]
    for alarm, delay in zip(alarms, delays, strict=True):
        assert wheel.add(alarm, MonoMs(start + delay))
    waiting = set(alarms)
    for index in cancelled & set(range(len(alarms))):
        wheel.cancel(alarms[index])
        waiting.discard(alarms[index])
    now = start
    for step in [*steps, 200_000]:
        now += step
        due = wheel.advance(MonoMs(now))
        assert set(due) == {alarm for alarm in waiting if alarm.expires_ms <= now}
        assert len(due) == len(set(due))
        waiting -= set(due)
        assert len(wheel) == len(waiting)
    assert not waiting
    assert wheel.next_ms() is None


@pytest.mark.spec("DLY-14")
@given(delays=st.lists(st.integers(1, 50_000), min_size=1, max_size=30))
def test_waking_only_when_asked_for_misses_nothing(delays: list[int]) -> None:
    wheel = TimingWheel(MonoMs(0))
    for delay in delays:
        wheel.add(Alarm(), MonoMs(delay))
    expired: list[int] = []
    while (now := wheel.next_ms()) is not None:
        for entry in wheel.advance(now):
            assert entry.expires_ms == now
            expired.append(now)
    assert expired == sorted(delays)
