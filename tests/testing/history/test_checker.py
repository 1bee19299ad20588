"""Histories of a log that keeps every promise, and the same ones with one thing changed.

The log here is a dictionary with transactions: what it shows is right by construction, whatever
the dice say, so that the checker must be silent; and one lie in it must not pass.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.testing.history import (
    FINAL,
    INVARIANTS,
    Commit,
    Ended,
    Event,
    OffsetRead,
    Outcome,
    Pipe,
    Poll,
    ProducerInit,
    Send,
    check,
)

OK, FAIL, UNKNOWN = Outcome.OK, Outcome.FAIL, Outcome.UNKNOWN
GROUP, SOURCE, SINK = "g", "in-0", "out-0"


@dataclass
class HonestLog:
    """Copies a source to a sink in transactions, some of which fail; one step at a time."""

    dice: Random
    events: list[Event] = field(default_factory=list)
    now_ns: int = 0
    logs: dict[str, list[tuple[int, str, str]]] = field(default_factory=lambda: defaultdict(list))
    ends: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    dropped: set[str] = field(default_factory=set)
    committed: int = 0
    lives: int = 0

    def tick(self) -> int:
        self.now_ns += 1
        return self.now_ns

    def append(self, partition: str, value: str, transaction: str, outcome: Outcome) -> None:
        """Written whatever its producer hears, unless that is a refusal."""
        at = self.ends[partition]
        self.ends[partition] += 1
        self.logs[partition].append((at, value, transaction))
        told = at if outcome is OK else -1
        process = f"p{self.lives}" if transaction else "source"
        begun, done = self.tick(), self.tick()
        self.events.append(
            Send(process, partition, value, begun, done, outcome, told, transaction=transaction)
        )

    def begin(self) -> None:
        self.lives += 1
        self.events.append(ProducerInit(f"p{self.lives}", "id", self.tick(), self.tick(), OK))

    def copy(self, name: str) -> None:
        """Some records of the source to the sink, and the offset after them, or nothing."""
        source = self.logs[SOURCE][self.committed : self.committed + self.dice.randint(1, 3)]
        if not source:
            return
        process, upto = f"p{self.lives}", self.committed + len(source)
        for _, value, _ in source:
            self.append(SINK, f"{value}@{name}", name, OK)
        commit = Commit(process, GROUP, SOURCE, upto, self.tick(), self.tick(), OK, name)
        self.events.append(commit)
        wanted = self.dice.random() < 0.7
        counts = wanted and self.dice.random() < 0.8
        known = self.dice.random() < 0.8
        told = (OK if counts == wanted else FAIL) if known else UNKNOWN
        self.events.append(Ended(process, name, wanted, self.tick(), self.tick(), told))
        self.ends[SINK] += 1  # the marker
        if counts:
            self.committed = upto
        else:
            self.dropped.add(name)
        if told is not OK:
            self.begin()

    def read(self, process: str, partition: str, *, committed: bool) -> None:
        records = tuple(
            (offset, value)
            for offset, value, transaction in self.logs[partition]
            if not committed or transaction not in self.dropped
        )
        end = self.ends[partition]
        self.events.append(
            Poll(process, partition, self.tick(), records, end, 0, committed, end, self.tick())
        )

    def look(self) -> None:
        begun, done = self.tick(), self.tick()
        self.events.append(OffsetRead("c", GROUP, SOURCE, self.committed, begun, done))


def honest(seed: int) -> HonestLog:
    log = HonestLog(Random(seed))
    log.begin()
    for number in range(12):
        log.append(SOURCE, f"v{number}", "", log.dice.choice([OK, OK, UNKNOWN]))
    for number in range(20):
        log.copy(f"tx{number}")
        if log.dice.random() < 0.5:
            committed = log.dice.random() < 0.5
            log.read(f"c{committed:d}", log.dice.choice([SOURCE, SINK]), committed=committed)
            log.look()
    while log.committed < len(log.logs[SOURCE]):
        log.copy(f"tx{log.tick()}")
    log.look()
    for partition in (SOURCE, SINK):
        for committed in (True, False):
            log.read(FINAL, partition, committed=committed)
    log.events.append(Pipe("in", "out"))
    return log


@given(st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_an_honest_log_breaks_no_promise(seed: int) -> None:
    assert check(honest(seed).events) == []


def last_poll(log: HonestLog, *, committed: bool) -> tuple[int, Poll]:
    """The final reading of the sink, and where it stands."""
    for at, event in enumerate(log.events):
        if isinstance(event, Poll) and (
            (event.process, event.partition, event.committed) == (FINAL, SINK, committed)
        ):
            return at, event
    raise AssertionError("there is one")


def changed(log: HonestLog, records: list[tuple[int, str]], *, committed: bool) -> list[Event]:
    at, poll = last_poll(log, committed=committed)
    return [*log.events[:at], replace(poll, records=tuple(records)), *log.events[at + 1 :]]


def loses_one(log: HonestLog) -> list[Event]:
    _, poll = last_poll(log, committed=True)
    left = list(poll.records)
    del left[log.dice.randrange(len(left))]
    return changed(log, left, committed=True)


def shows_what_was_aborted(log: HonestLog) -> list[Event]:
    _, every = last_poll(log, committed=False)
    _, poll = last_poll(log, committed=True)
    hidden = sorted({*every.records} - {*poll.records})
    records = sorted([*poll.records, log.dice.choice(hidden or [(999, "v0")])])
    return changed(log, records, committed=True)


def swaps_two(log: HonestLog) -> list[Event]:
    _, poll = last_poll(log, committed=True)
    left = list(poll.records)
    at = log.dice.randrange(len(left) - 1)
    (first, a), (second, b) = left[at : at + 2]
    left[at : at + 2] = [(first, b), (second, a)]
    return changed(log, left, committed=True)


def forgets_an_offset(log: HonestLog) -> list[Event]:
    fallen = OffsetRead("c", GROUP, SOURCE, log.committed - 1, log.tick(), log.tick())
    return [*log.events, fallen]


def lets_a_zombie_write(log: HonestLog) -> list[Event]:
    log.begin()
    return [*log.events, Ended("p1", "tx0", True, log.tick(), log.tick(), OK)]


LIES: list[Callable[[HonestLog], list[Event]]] = [
    loses_one,
    shows_what_was_aborted,
    swaps_two,
    forgets_an_offset,
    lets_a_zombie_write,
]


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_one_lie_is_enough(lie: Callable[[HonestLog], list[Event]], seed: int) -> None:
    assert check(lie(honest(seed))) != []


def test_every_invariant_has_a_name_of_its_own() -> None:
    assert len(set(INVARIANTS)) == len(INVARIANTS) == 21
