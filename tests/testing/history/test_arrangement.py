"""What can be concluded from events alone."""

from __future__ import annotations

import pytest

from ottla.testing.history import FINAL, Ended, Event, Outcome, Poll, Send
from ottla.testing.history.arrangement import Fate, History

OK, FAIL, UNKNOWN = Outcome.OK, Outcome.FAIL, Outcome.UNKNOWN
TP = "t-0"
PART = Send("p", TP, "v", 1, 2, OK, 0, transaction="x")


def end(commit: bool, outcome: Outcome) -> Ended:
    return Ended("p", "x", commit, 3, 4, outcome)


@pytest.mark.parametrize(
    ("ends", "fate"),
    [
        ([], Fate.ABORTED),
        ([end(True, OK)], Fate.COMMITTED),
        ([end(False, OK)], Fate.ABORTED),
        ([end(True, FAIL)], Fate.ABORTED),
        ([end(False, UNKNOWN)], Fate.ABORTED),
        ([end(True, UNKNOWN)], Fate.UNKNOWN),
        ([end(True, UNKNOWN), end(True, OK)], Fate.COMMITTED),
        ([end(True, UNKNOWN), end(False, OK)], Fate.ABORTED),
    ],
)
def test_a_transaction_ended_as_its_producer_was_told(ends: list[Ended], fate: Fate) -> None:
    assert History([PART, *ends]).fates == {"x": fate}


@pytest.mark.parametrize(("committed", "fate"), [(True, Fate.COMMITTED), (False, Fate.UNKNOWN)])
def test_an_unknown_end_counts_once_a_reader_of_committed_data_saw_it(
    committed: bool, fate: Fate
) -> None:
    seen = Poll("c", TP, 0, ((0, "v"),), committed=committed)
    assert History([PART, end(True, UNKNOWN), seen]).fates == {"x": fate}


def test_what_stands_alone_counts_by_itself() -> None:
    alone = Send("p", TP, "v", 1, 2, OK, 0)
    assert History([alone]).fate_of(alone) is Fate.COMMITTED


def test_the_last_readings_are_kept_apart_by_isolation() -> None:
    events: list[Event] = [
        PART,
        Poll(FINAL, TP, 0, ((0, "v"),)),
        Poll(FINAL, TP, 0, (), committed=True),
        Poll("c", TP, 0, ((7, "other"),)),
    ]
    history = History(events)
    assert history.final(TP) == {0: "v"}
    assert history.final(TP, committed=True) == {}
    assert history.held_back == {TP: {"v"}}
    assert History(events[:2]).held_back == {}
