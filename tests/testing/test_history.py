"""The checker must catch every kind of broken promise, and stay silent when none is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ottla.testing.history import (
    FINAL,
    Event,
    Fault,
    Kept,
    Outcome,
    Poll,
    Send,
    check,
    read,
    write,
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
    assert check([*swapped(events, 7, records=kept), Kept(TP, start=2)]) == []


def compacted(*final: tuple[int, str]) -> list[Event]:
    """Key a has two values, key b a tombstone behind one."""

    def one(key: str, value: str, offset: int, *, tombstone: bool = False) -> Send:
        return Send("p1", TP, value, offset, offset, Outcome.OK, offset, key, tombstone)

    sends = [one("a", "a1", 0), one("b", "b1", 1), one("a", "a2", 2)]
    return [
        *sends,
        one("b", "b2", 3, tombstone=True),
        Kept(TP, compacted=True),
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


def swapped(events: list[Event], index: int, **changes: object) -> list[Event]:
    return [
        replace(event, **changes) if at == index else event  # type: ignore[arg-type]
        for at, event in enumerate(events)
    ]


MUTATIONS: list[tuple[str, list[Event]]] = [
    ("inconsistent_offset", swapped(clean(), 5, records=((0, "a"), (1, "u")))),
    ("inconsistent_offset", swapped(clean(), 1, offset=0)),
    ("lost_write", [*clean(), sent("lost", 2, 70)]),
    ("unseen", swapped(clean(), 8, records=((0, "a"), (1, "b"), (2, "u")))),
    ("duplicate", swapped(clean(), 8, records=((0, "a"), (1, "b"), (2, "u"), (3, "c"), (4, "a")))),
    ("phantom", swapped(clean(), 8, records=((0, "a"), (1, "b"), (2, "u"), (3, "c"), (4, "?")))),
    ("phantom", swapped(clean(), 8, records=((0, "a"), (1, "b"), (2, "u"), (3, "c"), (4, "x")))),
    ("poll_order", swapped(clean(), 5, records=((1, "b"), (0, "a")))),
    ("poll_order", swapped(clean(), 7, records=((0, "a"), (3, "c")))),
    ("send_order", swapped(clean(), 0, invoked_ns=25)),
    ("unseen", [*swapped(clean(), 8, records=((2, "u"), (3, "c"))), Kept(TP, start=1)]),
    ("compaction", compacted((0, "a1"), (3, "b2"))),
    ("compaction", compacted((1, "b1"), (2, "a2"))),
    ("high_watermark", [*clean(), Poll("c1", TP, 1, (), high_watermark=3, leader_epoch=1)]),
]


@pytest.mark.parametrize(("invariant", "events"), MUTATIONS)
def test_a_broken_promise_is_named(invariant: str, events: list[Event]) -> None:
    assert invariant in {violation.invariant for violation in check(events)}


def test_a_history_survives_its_file_and_an_unfinished_last_line(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    write(path, [*clean(), Kept(TP, start=1)])
    with path.open("a") as file:
        file.write('{"kind": "send", "proc')
    assert read(path) == [*clean(), Kept(TP, start=1)]
