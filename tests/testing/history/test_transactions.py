"""A transaction that is torn, comes back, or outlives its producer must be caught."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ottla.testing.history import (
    FINAL,
    Commit,
    Ended,
    Event,
    OffsetRead,
    Outcome,
    Poll,
    ProducerInit,
    Reset,
    Send,
    check,
)
from ottla.testing.history.transactions import LSO_BOUND_NS

OK, FAIL, UNKNOWN = Outcome.OK, Outcome.FAIL, Outcome.UNKNOWN
A, B = "t-0", "t-1"
S = 1_000_000_000


def sent(value: str, at: str, offset: int, transaction: str, when: int = 0) -> Send:
    return Send("p1", at, value, when, when + 1, OK, offset, transaction=transaction)


def clean() -> list[Event]:
    """One committed, one aborted, one nobody knows of, over two partitions."""
    return [
        ProducerInit("p1", "id", 1, 2, OK),
        sent("a1", A, 0, "first", 3),
        sent("b1", B, 0, "first", 4),
        Commit("p1", "g", "in-0", 10, 5, 6, OK, transaction="first"),
        Ended("p1", "first", True, 7, 8, OK),
        sent("a2", A, 2, "second", 9),
        sent("b2", B, 2, "second", 10),
        Ended("p1", "second", False, 11, 12, OK),
        sent("a3", A, 4, "third", 13),
        sent("b3", B, 4, "third", 14),
        Ended("p1", "third", True, 15, 16, UNKNOWN),
        OffsetRead("c", "g", "in-0", 10, 20, 21),
        *finals(((0, "a1"),), ((0, "b1"),)),
    ]


def finals(*of: tuple[tuple[int, str], ...]) -> list[Event]:
    """All that stands there, and what counts of it."""
    return [
        Poll(FINAL, A, 0, ((0, "a1"), (2, "a2"), (4, "a3"))),
        Poll(FINAL, B, 0, ((0, "b1"), (2, "b2"), (4, "b3"))),
        Poll(FINAL, A, 0, of[0], committed=True),
        Poll(FINAL, B, 0, of[1], committed=True),
    ]


def found(events: list[Event]) -> set[str]:
    return {violation.invariant for violation in check(events)}


def test_transactions_that_are_whole_break_nothing() -> None:
    assert check(clean()) == []


def test_an_unknown_end_may_be_either_as_long_as_it_is_whole() -> None:
    counted = finals(((0, "a1"), (4, "a3")), ((0, "b1"), (4, "b3")))
    assert check([*clean()[:-4], *counted]) == []


def test_an_aborted_read_is_caught() -> None:
    early = Poll("c", A, 0, ((0, "a1"), (2, "a2")), committed=True)
    assert "aborted_read" in found([*clean(), early])
    assert check([*clean(), replace(early, committed=False)]) == []


@pytest.mark.parametrize(
    "last",
    [
        finals(((0, "a1"),), ()),  # committed, and half of it is not there
        finals(((0, "a1"), (4, "a3")), ((0, "b1"),)),  # unknown, and half of it is there
    ],
)
def test_a_torn_transaction_is_caught(last: list[Event]) -> None:
    assert "torn_transaction" in found([*clean()[:-4], *last])


def test_a_transaction_torn_from_its_offsets_is_caught() -> None:
    events = clean()
    events[11] = OffsetRead("c", "g", "in-0", 9, 20, 21)
    assert "torn_transaction" in found(events)
    assert "torn_transaction" not in found([*events, Reset("g", "in-0", 19)])


def test_a_commit_in_spite_of_a_failed_record_is_caught() -> None:
    events = clean()
    events[1] = replace(sent("a1", A, 0, "first", 3), outcome=FAIL, offset=-1)
    assert "torn_transaction" in found(events)


@pytest.mark.parametrize(
    "late",
    [
        sent("a3", A, 4, "third", 23),
        Ended("p1", "third", True, 23, 24, OK),
        Commit("p1", "g", "in-0", 11, 23, 24, OK, transaction="third"),
    ],
)
def test_a_zombie_is_caught(late: Send | Ended | Commit) -> None:
    events = [
        *clean()[:8],
        ProducerInit("p2", "id", 21, 22, OK),
        sent("b3", B, 4, "third", 20),
        late,
    ]
    assert "zombie" in found(events)
    assert "zombie" not in found([*events[:-1], replace(late, outcome=UNKNOWN)])
    assert "zombie" not in found([*events[:-1], replace(late, invoked_ns=21)])


def waiting(*at: int, last_stable: int = 6) -> list[Event]:
    return [
        Poll("c", A, 0, (), high_watermark=9, last_stable=last_stable, at_ns=when) for when in at
    ]


def test_a_last_stable_offset_that_nothing_holds_up_must_move() -> None:
    assert "stuck_lso" in found([*clean()[:8], *waiting(20, LSO_BOUND_NS + 22)])
    assert "stuck_lso" not in found([*clean()[:8], *waiting(20, LSO_BOUND_NS)])


@pytest.mark.parametrize(
    ("open_until", "stuck"), [(0, True), (S, True), (40 * S, False), (LSO_BOUND_NS + 2 * S, False)]
)
def test_an_open_transaction_holds_it_up_for_as_long_as_it_is_open(
    open_until: int, stuck: bool
) -> None:
    longest = sent("a3", A, 4, "third", 20)
    events: list[Event] = [*clean()[:8], longest, Ended("p1", "third", True, 21, open_until, OK)]
    assert ("stuck_lso" in found([*events, *waiting(22, 40 * S)])) is stuck


def test_a_transaction_of_unknown_end_holds_it_up_until_its_timeout_or_its_successor() -> None:
    events = clean()[:11]
    assert "stuck_lso" not in found([*events, *waiting(20, 60 * S)])
    assert "stuck_lso" in found([*events, *waiting(20, 60 * S + LSO_BOUND_NS + S)])
    successor = ProducerInit("p2", "id", 18, 19, OK)
    assert "stuck_lso" in found([*events, successor, *waiting(20, LSO_BOUND_NS + S)])
