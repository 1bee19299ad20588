"""Memory for requests: bounded, in order of arrival, and never a deadlock."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.net.admission import MEDIUM_BYTES, Admission, Ticket

MB = 1 << 20


def waits(
    admission: Admission, size: int, called: list[int], partial_bytes: int = 0
) -> Ticket | None:
    return admission.wait(size, partial_bytes, lambda: called.append(size))


@pytest.mark.spec("NET-20")
def test_without_a_limit_everything_is_granted() -> None:
    admission = Admission()
    assert all(admission.try_acquire(100 * MB) for _ in range(1_000))
    assert not admission.is_exhausted


@pytest.mark.spec("NET-20")
def test_large_frames_leave_a_quarter_to_those_of_medium_size() -> None:
    admission = Admission(400 * MB)
    assert [admission.try_acquire(100 * MB) for _ in range(4)] == [True, True, True, False]
    assert all(admission.try_acquire(MB) for _ in range(100))
    assert not admission.try_acquire(MB)
    assert admission.used == admission.limit


@pytest.mark.spec("NET-20", "NET-25")
def test_those_who_wait_are_served_in_order_of_arrival() -> None:
    admission, called = Admission(400 * MB), list[int]()
    for _ in range(3):
        assert admission.try_acquire(100 * MB)
    waits(admission, 90 * MB, called)
    waits(admission, 2 * MB, called)
    assert not admission.try_acquire(2 * MB), "nobody overtakes"
    admission.release(100 * MB)
    assert called == [90 * MB, 2 * MB]
    assert not admission.contended


@pytest.mark.spec("NET-20")
def test_one_frame_larger_than_all_the_memory_is_granted_when_it_is_alone() -> None:
    admission, called = Admission(50 * MB), list[int]()
    assert admission.try_acquire(100 * MB)
    waits(admission, 100 * MB, called)
    admission.release(100 * MB)
    assert called == [100 * MB]


@pytest.mark.spec("NET-20")
def test_a_frame_of_medium_size_is_granted_though_requests_in_progress_hold_everything() -> None:
    admission = Admission(50 * MB)
    admission.take(60 * MB)
    assert admission.is_exhausted
    assert admission.try_acquire(MEDIUM_BYTES)
    assert not admission.try_acquire(MEDIUM_BYTES)
    admission.give_back(60 * MB)
    assert admission.try_acquire(MEDIUM_BYTES)


def test_beginnings_of_frames_that_wait_are_bounded_too() -> None:
    admission, called = Admission(40 * MB), list[int]()
    assert admission.try_acquire(30 * MB)
    tickets = [waits(admission, 30 * MB, called, partial_bytes=MB) for _ in range(12)]
    assert [ticket is not None for ticket in tickets] == [True] * 10 + [False] * 2
    assert tickets[0] is not None
    admission.leave(tickets[0])
    admission.leave(tickets[0])
    assert admission.partial_bytes == 9 * MB
    assert waits(admission, 30 * MB, called, partial_bytes=MB) is not None


def test_who_leaves_the_line_lets_the_next_one_through() -> None:
    admission, called = Admission(40 * MB), list[int]()
    assert admission.try_acquire(20 * MB)
    first = waits(admission, 25 * MB, called)
    waits(admission, 5 * MB, called)
    assert first is not None
    admission.leave(first)
    assert called == [5 * MB]


def test_a_limit_that_grows_serves_those_who_wait() -> None:
    admission, called = Admission(10 * MB), list[int]()
    assert admission.try_acquire(10 * MB)
    waits(admission, 10 * MB, called)
    admission.set_limit(40 * MB)
    assert called == [10 * MB]


@pytest.mark.spec("NET-20")
@settings(max_examples=50)
@given(
    sizes=st.lists(
        st.integers(1, 4).map(lambda n: n * MB // 4) | st.integers(2, 100).map(lambda n: n * MB),
        min_size=1,
        max_size=60,
    ),
    limit=st.integers(1, 200).map(lambda n: n * MB),
    seed=st.integers(0, 99),
)
def test_whatever_is_asked_for_is_granted_in_the_end_and_the_limit_holds(
    sizes: list[int], limit: int, seed: int
) -> None:
    """Whoever was granted finishes after a while, in any order."""
    admission, dice, done = Admission(limit), Random(seed), 0
    running: list[int] = []
    for size in sizes:
        if admission.try_acquire(size):
            running.append(size)
        else:
            admission.wait(size, 0, lambda size=size: running.append(size))  # type: ignore[misc]
        largest = max(sizes)
        assert admission.used == sum(running) <= max(limit, 0) + largest + MEDIUM_BYTES
    while running:
        admission.release(running.pop(dice.randrange(len(running))))
        done += 1
        assert admission.used == sum(running) <= max(limit, 0) + largest + MEDIUM_BYTES
    assert done == len(sizes)
    assert (admission.used, admission.partial_bytes, admission.waiting) == (0, 0, 0)
