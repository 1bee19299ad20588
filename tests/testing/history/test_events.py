"""A history outlives the process that wrote it."""

from __future__ import annotations

from pathlib import Path

from ottla.testing.history import (
    Commit,
    Ended,
    Event,
    Fault,
    Leads,
    OffsetRead,
    Outcome,
    Owns,
    Pipe,
    Poll,
    ProducerInit,
    Reset,
    Retention,
    Send,
    read,
    write,
)
from ottla.testing.history.events import KINDS

ONE_OF_EACH: list[Event] = [
    Send("p", "t-0", "v", 1, 2, Outcome.UNKNOWN, key="k", tombstone=True, transaction="x"),
    Poll("c", "t-0", 3, ((4, "a"), (5, "b")), 6, 0, committed=True, last_stable=5, at_ns=9),
    Owns("c", "g", "t-0", 8, True),
    ProducerInit("p", "id", 1, 2, Outcome.OK, 1_000),
    Ended("p", "x", True, 1, 2, Outcome.FAIL),
    Commit("c", "g", "t-0", 7, 1, 2, Outcome.OK, "x", 3),
    OffsetRead("c", "g", "t-0", 7, 1, 2),
    Reset("g", "t-0", 5),
    Pipe("t", "u"),
    Retention("t-0", start=1),
    Leads(1, "t-0", 5, 100, 61),
    Fault("kill -9", 60),
]


def test_events_survive_their_file_and_an_unfinished_last_line(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    write(path, ONE_OF_EACH[:5])
    write(path, ONE_OF_EACH[5:])
    with path.open("a") as file:
        file.write('{"kind": "send", "proc')
    assert read(path) == ONE_OF_EACH


def test_there_is_one_of_each_above() -> None:
    assert {type(event) for event in ONE_OF_EACH} == set(KINDS.values())
