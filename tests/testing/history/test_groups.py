"""What groups must never show, and what they may."""

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
    Owns,
    Pipe,
    Poll,
    Reset,
    Send,
    check,
)

OK, UNKNOWN = Outcome.OK, Outcome.UNKNOWN
TP = "t-0"


def found(events: list[Event]) -> set[str]:
    return {violation.invariant for violation in check(events)}


def got(process: str, generation: int, *offsets: int, at: int = 0) -> Poll:
    records = tuple((offset, str(offset)) for offset in offsets)
    return Poll(process, TP, 0, records, group="g", generation=generation, at_ns=at)


def written(count: int) -> list[Event]:
    sends = [Send("p", TP, str(n), n, n, OK, n) for n in range(count)]
    return [*sends, Poll(FINAL, TP, 0, tuple((n, str(n)) for n in range(count)))]


def test_a_record_goes_to_one_member_in_a_generation() -> None:
    events = [*written(3), got("a", 1, 0, 1), got("b", 2, 1, 2)]
    assert check(events) == []
    assert found([*events, got("c", 1, 1)]) == {"one_reader"}


def test_a_partition_has_one_owner_at_a_time() -> None:
    def owns(process: str, at: int, gained: bool, partition: str = TP) -> Owns:
        return Owns(process, "g", partition, at, gained)

    given, gave = owns("a", 1, True), owns("a", 5, False)
    assert check([given, gave, owns("b", 5, True), owns("b", 7, False), owns("a", 8, True)]) == []
    assert check([given, given, owns("b", 3, True, "t-1")]) == []
    assert check([given, owns("b", 3, False)]) == []
    assert found([given, gave, owns("b", 3, True)]) == {"one_owner"}


def test_a_member_of_an_older_generation_cannot_commit() -> None:
    def commit(process: str, generation: int, when: int) -> Commit:
        return Commit(process, "g", TP, 1, when, when + 1, OK, generation=generation)

    events = [*written(3), got("a", 1, 0, 1), commit("a", 1, 1), got("b", 2, 1, 2, at=10)]
    assert check([*events, commit("b", 2, 20)]) == []
    assert check([*events, commit("a", 1, 5)]) == []
    assert found([*events, commit("a", 1, 11)]) == {"stale_commit"}
    assert check([*events, replace(commit("a", 1, 11), outcome=UNKNOWN)]) == []


def look(offset: int, when: int) -> OffsetRead:
    return OffsetRead("c", "g", TP, offset, when, when + 1)


def test_committed_offsets_only_rise() -> None:
    commit = Commit("a", "g", TP, 5, 10, 11, OK)
    assert check([look(-1, 1), look(-1, 2)]) == []
    assert check([look(-1, 1), commit, look(5, 20), look(7, 30)]) == []
    assert found([commit, look(4, 20)]) == {"offset_regression"}
    assert found([look(5, 20), look(4, 30)]) == {"offset_regression"}
    assert check([commit, look(4, 10)]) == []  # asked at the same time
    assert check([replace(commit, outcome=UNKNOWN), look(-1, 20)]) == []


def test_a_reset_lets_them_fall() -> None:
    assert check([look(5, 20), Reset("g", TP, 25), look(0, 30)]) == []
    assert found([look(5, 20), Reset("g", TP, 25), look(3, 30), look(0, 40)]) == {
        "offset_regression"
    }


@pytest.mark.parametrize(("commits", "broken"), [(True, True), (False, False)])
def test_offsets_of_a_transaction_count_with_it(commits: bool, broken: bool) -> None:
    events: list[Event] = [
        Commit("a", "g", TP, 5, 10, 11, OK, transaction="x"),
        Ended("a", "x", commits, 12, 13, OK),
        look(3, 20),
    ]
    assert ("offset_regression" in found(events)) is broken


def piped(*out: str) -> list[Event]:
    given = ["1", "2", "3"]
    sends = [Send("p", "in-0", value, at, at, OK, at) for at, value in enumerate(given)]
    taken = [Send("q", "out-0", value, at, at, UNKNOWN, at) for at, value in enumerate(out)]
    reads = [
        Poll(FINAL, topic, 0, tuple(enumerate(values)), committed=committed)
        for topic, values in (("in-0", given), ("out-0", out))
        for committed in (False, True)
    ]
    return [*sends, *taken, *reads, Pipe("in", "out")]


def test_what_goes_through_a_pipe_comes_out_once_and_in_order() -> None:
    assert check(piped("1", "2", "3")) == []
    assert "exactly_once" in found(piped("1", "3"))
    assert "exactly_once" in found(piped("1", "2", "3", "3"))
    assert "exactly_once" in found(piped("1", "3", "2"))
