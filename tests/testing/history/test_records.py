"""What one partition shows must be caught when it breaks a promise, and only then."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ottla.testing.history import (
    FINAL,
    Ended,
    Event,
    Fault,
    Leads,
    Outcome,
    Poll,
    Retention,
    Send,
    check,
)

TP = "t-0"


def sent(value: str, offset: int, at: int, outcome: Outcome = Outcome.OK) -> Send:
    return Send("p1", TP, value, at, at + 1, outcome, offset)


def clean() -> list[Event]:
    """Three acknowledged records, one unknown that was written, one that failed."""
    records = ((0, "a"), (1, "b"), (2, "u"), (3, "c"))
    return [
        sent("a", 0, 10),
        sent("b", 1, 20),
        sent("u", -1, 30, Outcome.UNKNOWN),
        sent("c", 3, 40),
        sent("x", -1, 50, Outcome.FAIL),
        Poll("c1", TP, 0, records[:2], high_watermark=2, leader_epoch=0),
        Fault("kill -9", 60),
        Poll("c1", TP, 1, records, high_watermark=4, leader_epoch=1),
        Poll(FINAL, TP, 0, records, high_watermark=4, leader_epoch=1),
    ]


def test_a_clean_history_has_no_violations() -> None:
    assert check(clean()) == []


def test_an_unknown_send_that_was_never_written_is_no_violation() -> None:
    assert check([*clean(), sent("gone", -1, 70, Outcome.UNKNOWN)]) == []


def test_what_retention_took_is_not_missed() -> None:
    kept = ((2, "u"), (3, "c"))
    events = swapped(clean(), 8, records=kept)
    assert check([*swapped(events, 7, records=kept), Retention(TP, start=2)]) == []


def compacted(*final: tuple[int, str]) -> list[Event]:
    """Key a has two values, key b a tombstone behind one."""

    def one(key: str, value: str, offset: int, *, tombstone: bool = False) -> Send:
        return Send("p1", TP, value, offset, offset, Outcome.OK, offset, key, tombstone)

    sends = [one("a", "a1", 0), one("b", "b1", 1), one("a", "a2", 2)]
    return [
        *sends,
        one("b", "b2", 3, tombstone=True),
        Retention(TP, compacted=True),
        Poll(FINAL, TP, 0, final),
    ]


@pytest.mark.parametrize(
    "final",
    [
        ((0, "a1"), (1, "b1"), (2, "a2"), (3, "b2")),
        ((1, "b1"), (2, "a2"), (3, "b2")),
        ((2, "a2"), (3, "b2")),
        ((2, "a2"),),
    ],
)
def test_a_compacted_partition_may_keep_any_more_than_the_last_values(
    final: tuple[tuple[int, str], ...],
) -> None:
    assert check(compacted(*final)) == []


def test_a_reader_may_pass_over_what_its_replica_had_compacted_and_nothing_else() -> None:
    final = ((0, "a1"), (1, "b1"), (2, "a2"), (3, "b2"))

    def found(*offsets: int) -> set[str]:
        reader = Poll("c1", TP, 0, tuple(final[offset] for offset in offsets))
        return {violation.invariant for violation in check([*compacted(*final), reader])}

    assert found(0, 2, 3) == set(), "a tombstone replaces b1"
    assert found(0, 2) == found(0, 1, 2) == set()
    assert found(0, 3) == {"poll_order"}, "a2 is the last of its key"


def swapped(events: list[Event], index: int, **changes: object) -> list[Event]:
    return [
        replace(event, **changes) if at == index else event  # type: ignore[arg-type]
        for at, event in enumerate(events)
    ]


def test_a_repeat_is_taken_once_more_where_the_first_was_deleted_before_the_leader_began() -> None:
    repeated = ((1, "b"), (2, "u"), (3, "c"), (4, "a"))
    events = [*swapped(clean(), 8, records=repeated), Retention(TP, start=1)]

    def found(log_start: int) -> set[str]:
        leads = Leads(2, TP, 1, 4, 55, log_end=4, log_start=log_start)
        return {violation.invariant for violation in check([*events, leads])}

    assert "duplicate" in found(0)
    assert "duplicate" not in found(1)


MUTATIONS: list[tuple[str, list[Event]]] = [
    ("inconsistent_offset", swapped(clean(), 5, records=((0, "a"), (1, "u")))),
    ("inconsistent_offset", swapped(clean(), 1, offset=0)),
    ("lost_write", [*clean(), sent("lost", 2, 70)]),
    ("unseen_values", swapped(clean(), 8, records=((0, "a"), (1, "b"), (2, "u")))),
    ("duplicate", swapped(clean(), 8, records=((0, "a"), (1, "b"), (2, "u"), (3, "c"), (4, "a")))),
    ("phantom", swapped(clean(), 8, records=((0, "a"), (1, "b"), (2, "u"), (3, "c"), (4, "?")))),
    ("phantom", swapped(clean(), 8, records=((0, "a"), (1, "b"), (2, "u"), (3, "c"), (4, "x")))),
    ("poll_order", swapped(clean(), 5, records=((1, "b"), (0, "a")))),
    ("poll_order", swapped(clean(), 7, records=((0, "a"), (3, "c")))),
    ("send_order", swapped(clean(), 0, invoked_ns=25)),
    ("unseen_values", [*swapped(clean(), 8, records=((2, "u"), (3, "c"))), Retention(TP, start=1)]),
    ("compaction", compacted((0, "a1"), (3, "b2"))),
    ("compaction", compacted((1, "b1"), (2, "a2"))),
    ("high_watermark", [*clean(), Poll("c1", TP, 1, (), high_watermark=3, leader_epoch=1)]),
]


def in_transactions(*final: tuple[int, str]) -> list[Event]:
    """Key a got a value that counts, and then one that was aborted; b one nobody knows of."""

    def one(key: str, value: str, offset: int, transaction: str) -> Send:
        ok = Outcome.OK
        return Send("p1", TP, value, offset, offset, ok, offset, key, transaction=transaction)

    return [
        one("a", "a1", 0, "kept"),
        Ended("p1", "kept", True, 1, 1, Outcome.OK),
        one("a", "a2", 2, "dropped"),
        Ended("p1", "dropped", False, 3, 3, Outcome.OK),
        one("b", "b1", 4, "who knows"),
        Ended("p1", "who knows", True, 5, 5, Outcome.UNKNOWN),
        Retention(TP, compacted=True),
        Poll(FINAL, TP, 0, final, committed=True),
        Poll(FINAL, TP, 0, final),
    ]


@pytest.mark.parametrize("final", [((0, "a1"),), ((0, "a1"), (4, "b1"))])
def test_what_was_aborted_is_nobodys_last_value(final: tuple[tuple[int, str], ...]) -> None:
    assert check(in_transactions(*final)) == []


def test_an_aborted_value_does_not_replace_the_one_that_counts() -> None:
    assert {found.invariant for found in check(in_transactions((4, "b1")))} == {"compaction"}


def test_a_reader_of_committed_data_may_pass_over_what_was_aborted_and_nothing_else() -> None:
    offsets = ((0, "a"), (1, "b"), (2, "c"))
    sends = [replace(sent(value, at, at), transaction=value) for at, value in offsets]
    ends = [Ended("p1", value, value != "b", 9, 9, Outcome.OK) for _, value in offsets]
    finals = [Poll(FINAL, TP, 0, offsets), Poll(FINAL, TP, 0, offsets[::2], committed=True)]
    reader = Poll("c1", TP, 0, offsets[::2], committed=True)
    assert check([*sends, *ends, *finals, reader]) == []
    plain = replace(reader, committed=False)
    assert {one.invariant for one in check([*sends, *ends, *finals, plain])} == {"poll_order"}


@pytest.mark.parametrize(("invariant", "events"), MUTATIONS)
def test_a_broken_promise_is_named(invariant: str, events: list[Event]) -> None:
    assert invariant in {violation.invariant for violation in check(events)}
