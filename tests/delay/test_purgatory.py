"""Purgatory: an operation completes exactly once, by its condition or by its timeout."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.delay.purgatory import Delayed, Purgatory
from ottla.delay.timers import Timers
from tests.fakes.manual_time import ManualClock, ManualScheduler


class Wish(Delayed):
    """Completes once it is granted; remembers what happened to it."""

    def __init__(self, delay_ms: int = 500) -> None:
        super().__init__(delay_ms)
        self.granted = False
        self.tries = 0
        self.story: list[str] = []
        self.then: Callable[[], object] | None = None
        self.while_trying: Callable[[], object] | None = None

    def try_complete(self) -> bool:
        self.tries += 1
        if self.while_trying is not None:
            self.while_trying()
        return self.granted and self.force_complete()

    def on_complete(self) -> None:
        self.story.append("complete")
        if self.then is not None:
            self.then()

    def on_expire(self) -> None:
        self.story.append("expired")


def purgatory(purge_interval: int = 1_000) -> tuple[Purgatory[str], ManualScheduler]:
    clock = ManualClock()
    scheduler = ManualScheduler(clock)
    return Purgatory("wishes", Timers(clock, scheduler), purge_interval), scheduler


@pytest.mark.spec("DLY-01", "DLY-23")
def test_an_operation_whose_condition_holds_is_neither_watched_nor_timed() -> None:
    wishes, scheduler = purgatory()
    wish = Wish()
    wish.granted = True
    assert wishes.try_complete_else_watch(wish, ["a"])
    assert wish.story == ["complete"]
    assert (wishes.watched, wishes.delayed, scheduler.asked) == (0, 0, [])


def test_an_operation_nobody_waits_for_ends_without_an_answer() -> None:
    wishes, scheduler = purgatory()
    wish = Wish()
    assert not wishes.try_complete_else_watch(wish, ["a", "b"])
    wish.abandon()
    assert wishes.delayed == 0
    wish.granted = True
    wishes.check("a")
    wishes.check("b")
    scheduler.pass_ms(10_000)
    assert not wish.force_complete()
    assert wish.story == []
    assert (wishes.watched, wishes.key_count) == (0, 0)


@pytest.mark.spec("DLY-01", "DLY-24")
def test_a_check_of_any_of_its_keys_completes_it() -> None:
    wishes, scheduler = purgatory()
    wish, other = Wish(), Wish()
    assert not wishes.try_complete_else_watch(wish, ["a", "b"])
    wishes.try_complete_else_watch(other, ["b"])
    assert wishes.check("b") == 0
    wish.granted = True
    assert wishes.check("elsewhere") == 0
    assert wishes.check("b") == 1
    assert wish.story == ["complete"]
    assert wishes.delayed == 1
    scheduler.pass_ms(10_000)
    assert wish.story == ["complete"], "the timeout was cancelled"
    assert other.story == ["complete", "expired"]


@pytest.mark.spec("DLY-19", "DLY-20")
def test_only_the_timeout_that_completes_an_operation_runs_its_expiry() -> None:
    wishes, scheduler = purgatory()
    wish = Wish(delay_ms=30)
    wishes.try_complete_else_watch(wish, ["a"])
    scheduler.pass_ms(29)
    assert not wish.completed
    scheduler.pass_ms(1)
    assert wish.story == ["complete", "expired"]
    wish.granted = True
    assert wishes.check("a") == 0
    assert not wish.force_complete()
    assert wish.story == ["complete", "expired"]


@pytest.mark.spec("DLY-18", "DLY-19")
def test_completion_from_within_its_own_completion_happens_once() -> None:
    wishes, _ = purgatory()
    wish = Wish()
    wish.then = lambda: (wish.force_complete(), wishes.check("a"))
    wishes.try_complete_else_watch(wish, ["a"])
    wish.granted = True
    assert wishes.check("a") == 1
    assert wish.story == ["complete"]


@pytest.mark.spec("DLY-21", "DLY-23")
def test_a_trigger_during_the_first_try_is_not_lost() -> None:
    wishes, _ = purgatory()
    wish = Wish()

    def trigger_before_it_is_watched() -> None:
        wish.granted = wish.tries > 1
        if wish.tries == 1:
            wishes.check("a")

    wish.while_trying = trigger_before_it_is_watched
    assert wishes.try_complete_else_watch(wish, ["a"])
    assert wish.story == ["complete"]


@pytest.mark.spec("DLY-23")
def test_an_operation_nobody_triggered_meanwhile_is_tried_once() -> None:
    wishes, _ = purgatory()
    wish = Wish()
    wishes.try_complete_else_watch(wish, ["a", "b", "c"])
    assert wish.tries == 1


@pytest.mark.spec("DLY-21", "DLY-24")
def test_one_completion_that_enables_another_tried_before_it_is_not_lost() -> None:
    wishes, _ = purgatory()
    first, second = Wish(), Wish()
    for wish in (first, second):
        wishes.try_complete_else_watch(wish, ["a"])

    def grant_first() -> None:
        first.granted = True
        wishes.check("a")

    second.then = grant_first
    second.granted = True
    wishes.check("a")
    assert first.completed
    assert (wishes.watched, wishes.delayed) == (0, 0)


def test_what_begins_to_wait_during_a_check_waits_for_the_next_one() -> None:
    wishes, _ = purgatory()
    first, next_one = Wish(), Wish()
    wishes.try_complete_else_watch(first, ["a"])
    first.granted = True
    first.then = lambda: wishes.try_complete_else_watch(next_one, ["a"])
    assert wishes.check("a") == 1
    assert next_one.tries == 1
    next_one.granted = True
    assert wishes.check("a") == 1


@pytest.mark.spec("DLY-22", "DLY-25", "DLY-26")
def test_completed_operations_are_purged_by_count_from_lists_nobody_checks() -> None:
    wishes, scheduler = purgatory(purge_interval=100)
    for n in range(100):
        wish = Wish()
        wishes.try_complete_else_watch(wish, ["busy", f"quiet-{n}"])
        wish.granted = True
        assert wishes.check("busy") == 1
    assert wishes.delayed == 0
    assert wishes.watched == 100, "still listed under the quiet keys: a purge has to find them"
    scheduler.pass_ms(60_000)
    assert wishes.watched == 100, "the interval is a count, not a time"
    last = Wish()
    wishes.try_complete_else_watch(last, ["busy", "quiet-0"])
    last.force_complete()
    assert (wishes.watched, wishes.key_count) == (0, 0)


@pytest.mark.spec("DLY-26")
def test_operations_that_leave_their_lists_by_checks_never_need_a_purge() -> None:
    wishes, _ = purgatory(purge_interval=0)
    bystander = Wish()
    wishes.try_complete_else_watch(bystander, ["z"])
    for _ in range(1_000):
        wish = Wish()
        wishes.try_complete_else_watch(wish, ["a"])
        wish.granted = True
        wishes.check("a")
    assert (wishes.watched, wishes.key_count, wishes.delayed) == (1, 1, 1)


@pytest.mark.spec("DLY-27")
def test_each_purgatory_times_its_own_operations() -> None:
    wishes, scheduler = purgatory()
    others, other_scheduler = purgatory()
    wish, other = Wish(10), Wish(10)
    wishes.try_complete_else_watch(wish, ["a"])
    others.try_complete_else_watch(other, ["a"])
    scheduler.pass_ms(10)
    assert wish.completed
    assert not other.completed
    other_scheduler.pass_ms(10)
    assert other.completed


def test_an_operation_without_time_is_complete_on_return() -> None:
    wishes, _ = purgatory()
    wish = Wish(delay_ms=0)
    assert wishes.try_complete_else_watch(wish, ["a"])
    assert wish.story == ["complete", "expired"]


def test_a_failing_try_leaves_the_others_their_turn_and_itself_its_timeout(
    caplog: pytest.LogCaptureFixture,
) -> None:
    wishes, scheduler = purgatory()
    broken, sound = Wish(), Wish()
    for wish in (broken, sound):
        wishes.try_complete_else_watch(wish, ["a"])
        wish.granted = True
    broken.while_trying = lambda: 1 // 0
    with caplog.at_level(logging.ERROR):
        assert wishes.check("a") == 1
    assert "ZeroDivisionError" in caplog.text
    assert sound.completed
    scheduler.pass_ms(500)
    assert broken.story == ["complete", "expired"]


def test_dropping_a_key_hands_over_what_waited_under_it() -> None:
    wishes, _ = purgatory(purge_interval=0)
    wish, done = Wish(), Wish()
    wishes.try_complete_else_watch(wish, ["a"])
    wishes.try_complete_else_watch(done, ["a", "b"])
    done.force_complete()
    assert wishes.drop("a") == [wish]
    assert wishes.drop("a") == []
    assert wish.force_complete()
    assert (wishes.watched, wishes.delayed) == (0, 0)


@pytest.mark.spec("DLY-19", "DLY-22", "DLY-26")
def test_when_nobody_may_wait_any_longer_everything_completes_at_once() -> None:
    wishes, scheduler = purgatory()
    several, one = Wish(), Wish()
    wishes.try_complete_else_watch(several, ["a", "b"])
    wishes.try_complete_else_watch(one, ["b"])
    wishes.finish_all()
    assert (several.story, one.story) == (["complete"], ["complete"])
    assert (wishes.watched, wishes.delayed) == (0, 0)
    scheduler.pass_ms(1_000)
    assert several.story == ["complete"]


@given(
    st.lists(
        st.tuples(
            st.sets(st.sampled_from("abcdef"), min_size=1),
            st.sampled_from(["grant", "check", "force", "pass"]),
            st.integers(0, 30),
        ),
        max_size=60,
    )
)
def test_nothing_leaks_and_nothing_completes_twice(
    history: list[tuple[set[str], str, int]],
) -> None:
    wishes, scheduler = purgatory(purge_interval=3)
    made: list[Wish] = []
    for keys, act, number in history:
        wish = Wish(delay_ms=40)
        wishes.try_complete_else_watch(wish, sorted(keys))
        made.append(wish)
        chosen = made[number % len(made)]
        if act == "grant":
            chosen.granted = True
        elif act == "check":
            wishes.check(min(keys))
        elif act == "force":
            chosen.force_complete()
        else:
            scheduler.pass_ms(number)
        assert wishes.delayed == sum(not wish.completed for wish in made)
    scheduler.pass_ms(100)
    assert all(wish.story.count("complete") == 1 for wish in made)
    assert wishes.delayed == 0
    for key in "abcdef":
        wishes.check(key)
    assert (wishes.watched, wishes.key_count) == (0, 0)


@pytest.mark.spec("DLY-23")
def test_what_is_known_to_wait_is_watched_without_being_tried() -> None:
    wishes, scheduler = purgatory()
    wish, other = Wish(), Wish()
    wishes.watch(wish, ["a", "b"])
    wishes.watch(other, ["b"])
    assert wish.tries == 0
    wish.granted = True
    assert wishes.check("b") == 1
    scheduler.pass_ms(10_000)
    assert (wish.story, other.story) == (["complete"], ["complete", "expired"])
