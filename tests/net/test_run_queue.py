"""The run queue: fair, bounded, the control plane first."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.net.limits import CONTROL_QUEUE_LIMIT
from ottla.net.run_queue import INLINE_TURNS, ROUND_NS, RunQueue
from tests.fakes.manual_time import ManualClock


class Loop:
    """Runs what was asked for when the test says so, one pass at a time."""

    def __init__(self) -> None:
        self.asked: list[Callable[[], None]] = []

    def soon(self, callback: Callable[[], None]) -> None:
        self.asked.append(callback)

    def one_pass(self) -> None:
        asked, self.asked = self.asked, []
        for callback in asked:
            callback()


class Busy:
    """A connection with so many turns' worth of requests."""

    def __init__(self, name: str, queue: RunQueue, story: list[str], turns: int = 1) -> None:
        self.name = name
        self._queue = queue
        self._story = story
        self._left = turns
        self.cost: Callable[[], object] = lambda: None

    def turn(self) -> None:
        self._story.append(self.name)
        self.cost()
        self._left -= 1
        if self._left:
            self._queue.enqueue(self, control=False)


def queue(limit: int = 500) -> tuple[RunQueue, Loop, ManualClock]:
    loop, clock = Loop(), ManualClock()
    made = RunQueue(clock, loop.soon)
    made.limit = limit
    return made, loop, clock


def test_while_nobody_waits_a_connection_goes_at_once() -> None:
    line, loop, _ = queue()
    assert line.may_run_now(control=False)
    assert loop.asked == [], "and costs the loop nothing"


def test_who_comes_while_others_wait_waits_behind_them() -> None:
    line, loop, _ = queue()
    story: list[str] = []
    line.enqueue(Busy("first", line, story), control=False)
    assert not line.may_run_now(control=False)
    line.enqueue(Busy("second", line, story), control=False)
    loop.one_pass()
    assert story == ["first", "second"]
    assert line.may_run_now(control=False)


def test_a_connection_with_thousands_of_requests_shares_with_the_others() -> None:
    line, loop, _ = queue()
    story: list[str] = []
    line.enqueue(Busy("greedy", line, story, turns=1_000), control=False)
    line.enqueue(Busy("modest", line, story), control=False)
    loop.one_pass()
    assert story == ["greedy", "modest"]
    loop.one_pass()
    assert story[2:] == ["greedy"], "one turn a pass: sockets are looked at in between"


@pytest.mark.spec("NET-31", "NET-32")
def test_the_control_plane_goes_before_everything_that_waits() -> None:
    line, loop, _ = queue()
    story: list[str] = []
    for n in range(3):
        line.enqueue(Busy(f"data-{n}", line, story), control=False)
    assert line.may_run_now(control=True), "data that waits does not hold up control"
    line.enqueue(Busy("control", line, story), control=True)
    loop.one_pass()
    assert story == ["control", "data-0", "data-1", "data-2"]


@pytest.mark.spec("NET-31")
def test_control_that_arrives_during_a_round_goes_next() -> None:
    line, loop, _ = queue()
    story: list[str] = []
    first = Busy("data-0", line, story)
    control = Busy("control", line, story)
    first.cost = lambda: line.enqueue(control, control=True)
    for data in (first, Busy("data-1", line, story), Busy("data-2", line, story)):
        line.enqueue(data, control=False)
    loop.one_pass()
    assert story[:2] == ["data-0", "control"]


@pytest.mark.spec("NET-23", "NET-25")
def test_over_the_bound_the_newcomer_is_told_to_stop_reading() -> None:
    line, loop, _ = queue(limit=2)
    story: list[str] = []
    told = [line.enqueue(Busy(str(n), line, story), control=False) for n in range(4)]
    assert told == [True, True, False, False]
    assert line.data_size == 4
    loop.one_pass()
    assert story == ["0", "1", "2", "3"], "who was told to wait is served all the same"
    assert line.enqueue(Busy("again", line, story), control=False)


@pytest.mark.spec("NET-32")
def test_the_control_plane_has_a_bound_of_its_own() -> None:
    line, _, _ = queue(limit=1)
    story: list[str] = []
    told = [line.enqueue(Busy(str(n), line, story), control=True) for n in range(21)]
    assert told == [True] * CONTROL_QUEUE_LIMIT + [False]
    assert line.control_size == 21
    assert line.data_size == 0


def test_a_round_that_takes_long_lets_the_loop_look_at_its_sockets() -> None:
    line, loop, clock = queue()
    story: list[str] = []
    for n in range(3):
        slow = Busy(str(n), line, story)
        slow.cost = lambda: setattr(clock, "ns", clock.ns + ROUND_NS)
        line.enqueue(slow, control=False)
    loop.one_pass()
    assert story == ["0"]
    loop.one_pass()
    loop.one_pass()
    assert story == ["0", "1", "2"]
    assert loop.asked == []


def test_so_many_turns_without_queueing_and_then_one_has_to_queue() -> None:
    line, loop, _ = queue()
    assert all(line.may_run_now(control=False) for _ in range(INLINE_TURNS))
    assert not line.may_run_now(control=False), "one pass of the loop is bounded"
    assert line.may_run_now(control=True)
    story: list[str] = []
    line.enqueue(Busy("queued", line, story), control=False)
    loop.one_pass()
    assert line.may_run_now(control=False)


@pytest.mark.spec("NET-15")
def test_a_turn_that_fails_does_not_stop_the_queue() -> None:
    line, loop, _ = queue()
    story: list[str] = []
    broken = Busy("broken", line, story)
    broken.cost = lambda: 1 // 0
    line.enqueue(broken, control=False)
    line.enqueue(Busy("sound", line, story), control=False)
    with pytest.raises(ZeroDivisionError):
        loop.one_pass()
    loop.one_pass()
    assert story == ["broken", "sound"]
