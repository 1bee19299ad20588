"""Every batch once, however runs, attempts and deaths interleave."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

import pytest

from ottla.client.producer.transactions.state import PreparedTransaction
from ottla.spark import exactly_once
from ottla.spark.commit_decisions import AlreadyPast, Entry, JobEnded, Sink, Superseded, check_turn
from ottla.spark.exactly_once import (
    NoStepListener,
    Step,
    begin,
    decide,
    decide_job,
    end,
    give_up,
    join,
    stay,
    take_over,
)
from tests.spark.ledger_model import FakeLedger, Record, Scheduler, World, turn

T = TypeVar("T")
BATCHES = 3
RECORDS = 4


@dataclass
class Checkpoint:
    """What Spark remembers of a query: batches that are done. It guards against nobody."""

    done: set[int] = field(default_factory=set)

    @property
    def next(self) -> int:
        return max(self.done, default=-1) + 1


class Driver:
    """One run of a query, as Spark would drive it."""

    def __init__(
        self, run: str, world: World, checkpoint: Checkpoint, scheduler: Scheduler, dice: Random
    ) -> None:
        self.run = run
        self._world = world
        self._ledger = FakeLedger(world)
        self._checkpoint = checkpoint
        self._scheduler = scheduler
        self._dice = dice
        self._known: Entry | None = None
        self.failure: Exception | None = None

    async def go(self) -> None:
        batch = self._checkpoint.next
        while batch < BATCHES:
            await turn()
            prepared: list[PreparedTransaction] = []
            try:
                for task in range(tasks := self._dice.randint(1, 3)):
                    if self._dice.random() < 0.3:  # a late attempt that nobody waits for
                        self._scheduler.start(self._attempt(batch, task, tasks, "0.1"))
                    made = await self._attempt(batch, task, tasks, "0.0")
                    prepared += [made] if made is not None else []
                await decide(self._ledger, self.run, batch, prepared, NoStepListener())
            except (Superseded, AlreadyPast) as failure:
                self.failure = failure
                await give_up(self._ledger, self.run, batch, prepared)
                return
            if self._dice.random() < 0.1:  # what follows a decision may fail as well
                await give_up(self._ledger, self.run, batch, prepared)
                return
            await turn()
            self._checkpoint.done.add(batch)
            batch += 1

    async def _attempt(
        self, batch: int, task: int, tasks: int, attempt: str
    ) -> PreparedTransaction | None:
        try:
            entry = self._known
            if entry is None or self._dice.random() < 0.5:  # a process may remember, or be new
                entry = self._known = await take_over(self._ledger, self.run)
        except Superseded:
            if attempt == "0.0":
                raise
            return None
        if entry.is_decided(batch):
            return None
        if attempt == "0.0":
            check_turn(self._world.sink, entry, self.run, batch)
        await turn()
        records: list[Record] = [(batch, at) for at in range(task, RECORDS, tasks)]
        again = 0
        name = self._world.sink.transactional_id
        while self._world.is_open(name(entry.run_epoch, task, attempt, again)):
            again += 1
        made = self._world.prepare(name(entry.run_epoch, task, attempt, again), records)
        await turn()
        return made


def everything_once(seed: int) -> None:
    dice, world, checkpoint = Random(seed), World(), Checkpoint()
    scheduler = Scheduler(dice)
    for life in range(dice.randint(1, 4)):
        scheduler.start(Driver(f"run {life}", world, checkpoint, scheduler, dice).go())
        scheduler.run(dice.randint(0, 120))
        if dice.random() < 0.5:
            scheduler.kill()
    for life in range(50):
        last = Driver(f"last run {life}", world, checkpoint, scheduler, dice)
        scheduler.finish(last.go())
        if last.failure is None and checkpoint.next == BATCHES:
            break
    scheduler.run(10_000)  # the others wake up, and must find that it is over
    expected = {(batch, at): 1 for batch in range(BATCHES) for at in range(RECORDS)}
    assert world.output == expected, seed
    scheduler.finish(end(FakeLedger(world)))
    assert not [id for id in world.transactions if world.is_open(id)], seed
    assert world.output == expected, seed
    scheduler.close()


@pytest.mark.parametrize("block", range(10))
def test_every_record_is_written_once_however_runs_and_deaths_interleave(block: int) -> None:
    for seed in range(block * 200, block * 200 + 200):
        everything_once(seed)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(100))
def test_every_record_is_written_once_over_two_hundred_thousand_stories(block: int) -> None:
    for seed in range(10_000 + block * 2_000, 10_000 + block * 2_000 + 2_000):
        everything_once(seed)


# each race by itself


def alone(work: Coroutine[Any, Any, T]) -> T:
    """Run with every turn given at once."""
    while True:
        try:
            work.send(None)
        except StopIteration as done:
            value: T = done.value
            return value


def prepared(
    world: World, entry: Entry, batch: int, *, attempt: str = "0.0"
) -> PreparedTransaction:
    id = world.sink.transactional_id(entry.run_epoch, 0, attempt)
    return world.prepare(id, [(batch, 0)])


def test_a_late_attempt_neither_appears_nor_disturbs_the_authorised_one() -> None:
    world = World()
    entry = alone(take_over(FakeLedger(world), "a"))
    first = prepared(world, entry, 0)
    prepared(world, entry, 0, attempt="0.1")
    alone(decide(FakeLedger(world), "a", 0, [first], NoStepListener()))
    assert world.output == {(0, 0): 1}
    later = prepared(world, entry, 0, attempt="0.2")  # after the decision, even
    second = prepared(world, entry, 1)
    alone(decide(FakeLedger(world), "a", 1, [second], NoStepListener()))
    assert world.output == {(0, 0): 1, (1, 0): 1}
    assert not world.is_open(later.transactional_id)


def test_a_zombie_driver_cannot_decide_once_its_successor_has_started() -> None:
    world = World()
    old = prepared(world, alone(take_over(FakeLedger(world), "old")), 0)
    alone(take_over(FakeLedger(world), "new"))
    with pytest.raises(Superseded, match="another run of this query is active"):
        alone(decide(FakeLedger(world), "old", 0, [old], NoStepListener()))
    alone(give_up(FakeLedger(world), "old", 0, [old]))
    assert world.output == {}
    assert world.entry is not None
    assert world.entry.run == "new"


def test_a_zombie_leaves_nothing_open_that_its_successor_did_not_see() -> None:
    world = World()
    entry = alone(take_over(FakeLedger(world), "old"))
    alone(take_over(FakeLedger(world), "new"))
    late = prepared(world, entry, 0)
    with pytest.raises(Superseded):
        alone(decide(FakeLedger(world), "old", 0, [late], NoStepListener()))
    assert world.is_open(late.transactional_id)
    alone(give_up(FakeLedger(world), "old", 0, [late]))
    assert not world.is_open(late.transactional_id)
    assert world.output == {}


def test_a_zombie_cannot_take_over_again() -> None:
    world = World()
    alone(take_over(FakeLedger(world), "old"))
    alone(take_over(FakeLedger(world), "new"))
    with pytest.raises(Superseded):
        alone(take_over(FakeLedger(world), "old"))


def test_a_decided_batch_is_carried_through_by_the_next_run_which_writes_nothing() -> None:
    world = World()

    class Dies:
        def reached(self, step: Step) -> None:
            if step is Step.DECIDED:
                raise KeyboardInterrupt

    first = [prepared(world, alone(take_over(FakeLedger(world), "a")), 0)]
    with pytest.raises(KeyboardInterrupt):
        alone(decide(FakeLedger(world), "a", 0, first, Dies()))
    assert world.output == {}
    entry = alone(take_over(FakeLedger(world), "b"))
    assert entry.is_decided(0)
    assert world.output == {(0, 0): 1}
    alone(decide(FakeLedger(world), "b", 0, [], NoStepListener()))
    assert world.output == {(0, 0): 1}


def test_a_failure_after_the_decision_does_not_undo_it() -> None:
    world = World()

    class Fails:
        def reached(self, step: Step) -> None:
            if step is Step.DECIDED:
                raise OSError("no coordinator")

    first = [prepared(world, alone(take_over(FakeLedger(world), "a")), 0)]
    with pytest.raises(OSError, match="no coordinator"):
        alone(decide(FakeLedger(world), "a", 0, first, Fails()))
    alone(give_up(FakeLedger(world), "a", 0, first))  # as Spark does
    assert world.output == {(0, 0): 1}


def test_what_was_given_up_is_aborted_and_can_no_longer_be_decided() -> None:
    world = World()
    first = [prepared(world, alone(take_over(FakeLedger(world), "a")), 0)]
    alone(give_up(FakeLedger(world), "a", 0, first))
    assert not world.is_open(first[0].transactional_id)
    with pytest.raises(Superseded):
        alone(decide(FakeLedger(world), "a", 0, first, NoStepListener()))


def test_an_older_batch_than_the_last_decided_is_refused_not_repeated() -> None:
    world = World()
    entry = alone(take_over(FakeLedger(world), "a"))
    for batch in (0, 1):
        alone(
            decide(FakeLedger(world), "a", batch, [prepared(world, entry, batch)], NoStepListener())
        )
    alone(take_over(FakeLedger(world), "b"))
    with pytest.raises(AlreadyPast, match="runs batch 0, and its sink has decided batch 1"):
        alone(decide(FakeLedger(world), "b", 0, [], NoStepListener()))


def test_a_predecessors_decision_is_carried_through_before_it_is_written_over() -> None:
    world = World()
    entry = alone(take_over(FakeLedger(world), "a"))
    first = prepared(world, entry, 0)
    world.entry = Entry("b", 2, 0, (first,), ("a",))  # taken over by a task that died at once
    second = world.prepare(world.sink.transactional_id(2, 0, "0"), [(1, 0)])
    alone(decide(FakeLedger(world), "b", 1, [second], NoStepListener()))
    assert world.output == {(0, 0): 1, (1, 0): 1}


def test_an_abandoned_query_is_ended_by_command_and_its_live_run_with_it() -> None:
    world = World()
    entry = alone(take_over(FakeLedger(world), "a"))
    alone(decide(FakeLedger(world), "a", 0, [prepared(world, entry, 0)], NoStepListener()))
    left = prepared(world, entry, 1)
    ended = alone(end(FakeLedger(world)))
    assert ended is not None
    assert not world.is_open(left.transactional_id)
    assert world.output == {(0, 0): 1}
    with pytest.raises(Superseded):
        alone(decide(FakeLedger(world), "a", 1, [left], NoStepListener()))
    assert alone(end(FakeLedger(world))) == ended  # again changes nothing


class Job:
    """A batch write: its driver waits for no attempt that it does not need."""

    def __init__(self, dice: Random) -> None:
        self.world = World(Sink("job"))
        self._ledger = FakeLedger(self.world)
        self._dice = dice
        self._known = alone(take_over(self._ledger, "job"))
        self._reported: dict[int, PreparedTransaction] = {}
        self.has_decided = False

    async def attempt(self, partition: int, attempt: str) -> None:
        with suppress(JobEnded):
            remembers = (
                self._dice.random() < 0.5
            )  # a process may have done a task of the job before
            entry = self._known if remembers else await join(self._ledger, "job")
            await turn()
            id = self.world.sink.transactional_id(entry.run_epoch, partition, attempt)
            made = self.world.prepare(id, [(0, partition)])
            await turn()
            await stay(self._ledger, "job", 0, made)
            self._reported.setdefault(partition, made)

    async def drive(self) -> None:
        for _ in range(self._dice.randint(0, 20)):
            await turn()
        if len(self._reported) < 2:
            await end(self._ledger)
            return
        await decide(self._ledger, "job", 0, [*self._reported.values()], NoStepListener())
        self.has_decided = True
        await turn()
        self.world.entry = None  # a job that is done is forgotten


@pytest.mark.parametrize("block", range(5))
def test_no_attempt_of_a_batch_job_leaves_anything_open_however_late_it_is(block: int) -> None:
    decisions = Counter[bool]()
    for seed in range(block * 200, block * 200 + 200):
        dice = Random(seed)
        scheduler, job = Scheduler(dice), Job(dice)
        for partition in (0, 1):
            for attempt in ("0", "1"):
                scheduler.start(job.attempt(partition, attempt))
        scheduler.start(job.drive())
        scheduler.run(10_000)
        assert not [id for id in job.world.transactions if job.world.is_open(id)], seed
        assert job.world.output == ({(0, 0): 1, (0, 1): 1} if job.has_decided else {}), seed
        decisions[job.has_decided] += 1
    assert min(decisions[True], decisions[False]) > 10


def test_a_query_that_never_wrote_has_nothing_to_end() -> None:
    assert alone(end(FakeLedger(World()))) is None


def test_a_ledger_that_others_hold_all_the_time_is_given_up_in_the_end() -> None:
    class Busy(FakeLedger):
        async def read(self) -> Entry | None:
            return None

    world = World()
    ledger = Busy(world)
    work = take_over(ledger, "a")
    with pytest.raises(TimeoutError, match="attempts were fenced"):
        for _ in range(10 * exactly_once.MAX_ROUNDS):
            world.holder += 1
            work.send(None)


def test_the_steps_are_asyncios_too() -> None:
    async def go() -> Entry:
        return await take_over(FakeLedger(World()), "a")

    assert asyncio.run(go()) == Entry("a", 1)


def test_a_batch_job_that_is_committed_is_forgotten() -> None:
    world = World()
    alone(begin(FakeLedger(world), "job"))
    assert world.entry == Entry("job", 1)
    done = prepared(world, world.entry, 0)
    late = prepared(world, world.entry, 0, attempt="0.1")
    alone(decide_job(FakeLedger(world), "job", 0, [done]))
    assert world.output == {(0, 0): 1}
    assert not world.is_open(late.transactional_id)
    assert world.entry is None


def test_a_command_that_ends_a_job_at_any_moment_of_its_commit_leaves_all_or_nothing() -> None:
    for turns in range(30):
        world = World()
        alone(begin(FakeLedger(world), "job"))
        assert world.entry is not None
        done = prepared(world, world.entry, 0)
        committing = decide_job(FakeLedger(world), "job", 0, [done])
        has_failed = False
        try:
            for _ in range(turns):
                committing.send(None)
            alone(end(FakeLedger(world)))
            alone(committing)
        except StopIteration:
            pass
        except Superseded:
            has_failed = True
        assert not world.is_open(done.transactional_id)
        assert has_failed or world.output == {(0, 0): 1}, f"after {turns} turns"
