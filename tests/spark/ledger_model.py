"""A cluster's transactions and one ledger, as far as an exactly-once sink can tell.

Every question is a turn that the scheduler may give to somebody else, so that a test can interleave
runs, tasks and decisions in any order, and leave any of them asleep for good.
"""

from __future__ import annotations

import types
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Generator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from ottla.client.errors import Fenced
from ottla.client.producer.transactions.state import PreparedTransaction
from ottla.model.errors import ErrorCode
from ottla.spark.commit_decisions import Entry, Sink

Record = tuple[int, int]


@types.coroutine
def turn() -> Generator[None, None, None]:
    """Let others go first."""
    yield


@dataclass
class Written:
    """A transaction of the sink."""

    identity: PreparedTransaction
    records: tuple[Record, ...]
    state: str = "open"


@dataclass
class World:
    """Everything that outlives a driver."""

    sink: Sink = field(default_factory=lambda: Sink("query"))
    entry: Entry | None = None
    holder: int = 0
    transactions: dict[str, Written] = field(default_factory=dict)
    output: Counter[Record] = field(default_factory=Counter)
    _next_id: int = 0

    def prepare(self, id: str, records: Sequence[Record]) -> PreparedTransaction:
        self._next_id += 1
        identity = PreparedTransaction(id, self._next_id, 0)
        assert id not in self.transactions or self.transactions[id].state != "open"
        self.transactions[id] = Written(identity, tuple(records))
        return identity

    def is_open(self, id: str) -> bool:
        return id in self.transactions and self.transactions[id].state == "open"

    def commit(self, listed: PreparedTransaction) -> None:
        found = self.transactions[listed.transactional_id]
        if found.identity != listed:
            return  # ended before, and its name was used again
        assert found.state != "aborted", f"{listed} was decided and then aborted"
        if found.state == "open":
            found.state = "committed"
            self.output.update(found.records)

    def abort(self, id: str) -> None:
        if self.is_open(id):
            self.transactions[id].state = "aborted"


class FakeLedger:
    """The ledger as one process sees it."""

    def __init__(self, world: World) -> None:
        self._world = world

    @property
    def sink(self) -> Sink:
        return self._world.sink

    async def read(self) -> Entry | None:
        await turn()
        return self._world.entry

    @asynccontextmanager
    async def acquire(self, *, is_new: bool = False) -> AsyncIterator[FakeHeld]:
        await turn()
        self._world.holder += 1
        mine = self._world.holder
        await turn()
        yield FakeHeld(self._world, mine, self._world.entry)

    async def commit(self, listed: Sequence[PreparedTransaction]) -> None:
        for each in listed:
            await turn()
            self._world.commit(each)

    async def abort(self, ids: Sequence[str]) -> None:
        for id in ids:
            await turn()
            self._world.abort(id)

    async def open_transactions(self) -> list[str]:
        await turn()
        return [id for id in self._world.transactions if self._world.is_open(id)]


@dataclass
class FakeHeld:
    """A turn at writing, good until somebody else takes one."""

    world: World
    mine: int
    entry: Entry | None

    async def write(self, entry: Entry | None) -> None:
        await turn()
        self._check()
        self.world.entry = entry
        await turn()
        self._check()  # written, and yet the answer says it was not: it got lost on its way

    def _check(self) -> None:
        if self.world.holder != self.mine:
            raise Fenced(ErrorCode.producer_fenced)


class Scheduler:
    """Gives turns by dice, and to nobody who is asleep."""

    def __init__(self, dice: Random) -> None:
        self._dice = dice
        self._asleep: list[Coroutine[Any, Any, object]] = []
        self.alive: list[Coroutine[Any, Any, object]] = []

    def start(self, work: Coroutine[Any, Any, object]) -> None:
        self.alive.append(work)

    def run(self, turns: int) -> None:
        """So many turns, to whomever the dice choose."""
        while self.alive and turns > 0:
            self._step(self._dice.choice(self.alive))
            turns -= 1

    def finish(self, work: Coroutine[Any, Any, object]) -> None:
        """Everything of one, while all others sleep."""
        self.start(work)
        while work in self.alive:
            self._step(work)

    def kill(self) -> None:
        """One of them never gets another turn, and does not notice."""
        if self.alive:
            self._asleep.append(self.alive.pop(self._dice.randrange(len(self.alive))))

    def close(self) -> None:
        """A test is over: nobody is waited for any more."""
        for work in (*self.alive, *self._asleep):
            work.close()
        self.alive.clear()

    def _step(self, work: Coroutine[Any, Any, object]) -> None:
        try:
            work.send(None)
        except StopIteration:
            self.alive.remove(work)
