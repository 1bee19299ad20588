"""When what a shortage prevented is tried again."""

from __future__ import annotations

from ottla.model.clock import MonoMs
from ottla.model.ids import TopicPartition
from ottla.replica.retries.schedule import FIRST_MS, LONGEST_MS, RetrySchedule

A, B, C = (TopicPartition("t", number) for number in range(3))


def test_pauses_double_up_to_the_longest_and_begin_anew_after_a_success() -> None:
    schedule, now_ms = RetrySchedule[str](), MonoMs(7_000)
    schedule.add(A, "open", now_ms)
    schedule.add(B, "open", now_ms)
    pauses = []
    for _ in range(8):
        pauses.append(schedule.pause_ms(now_ms))
        now_ms = MonoMs(now_ms + pauses[-1])
        schedule.end_round(now_ms, any_done=False)
    assert pauses == [500, 1_000, 2_000, 4_000, 8_000, LONGEST_MS, LONGEST_MS, LONGEST_MS]
    schedule.remove(A)
    schedule.end_round(now_ms, any_done=True)
    assert schedule.pause_ms(now_ms) == FIRST_MS
    assert schedule.pause_ms(MonoMs(now_ms + 9 * FIRST_MS)) == 0, "it is late: at once"


def test_one_that_joins_the_others_does_not_change_when_they_are_tried() -> None:
    schedule = RetrySchedule[str]()
    schedule.add(A, "open", MonoMs(0))
    for round_ms in (500, 1_500, 3_500):
        schedule.end_round(MonoMs(round_ms), any_done=False)
    schedule.add(B, "open", MonoMs(4_000))
    assert schedule.pause_ms(MonoMs(4_000)) == 3_500
    schedule.remove(A)
    schedule.remove(B)
    schedule.add(C, "open", MonoMs(5_000))
    assert schedule.pause_ms(MonoMs(5_000)) == FIRST_MS, "an earlier shortage is over"


def test_the_latest_work_counts_and_what_failed_again_goes_to_the_back() -> None:
    schedule = RetrySchedule[str]()
    for key in (A, B, C):
        schedule.add(key, "open", MonoMs(0))
    schedule.add(A, "delete", MonoMs(1))
    assert list(schedule) == [B, C, A]
    assert (schedule.get(A), schedule.get(B)) == ("delete", "open")
    assert schedule.remove(B) == "open"
    assert schedule.remove(B) is None
    assert len(schedule) == 2
