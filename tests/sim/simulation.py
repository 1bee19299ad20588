"""Telling one seed's story: a broker, its clients, what befalls them, and what became of it all.

Owns the order of events. The verdict is the history's, plus what needs no history: a broker that
does not start again, a traceback in its log, a task that outlived it, a request never answered.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from ottla.model.ids import CONSUMER_OFFSETS, TRANSACTION_STATE, TopicPartition
from ottla.testing.history import FINAL, Event, Retention, Violation, check
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.sim import admin
from tests.sim.admin import NewTopic
from tests.sim.book import Book
from tests.sim.broker import SimBroker
from tests.sim.churn import Churn
from tests.sim.client import Client
from tests.sim.consumer import EARLIEST, LATEST, Consumer, Tastes, read_everything
from tests.sim.fate import Fate
from tests.sim.loop import Process, SimClock, bury
from tests.sim.network import MemoryNetwork, NetLoop
from tests.sim.plan import Plan, PlannedTopic
from tests.sim.producer import Producer
from tests.sim.relay import Pipelines
from tests.sim.trace import Trace
from tests.sim.transactor import Transactor

SCRATCH: Final = "scratch"
"""The topic that comes and goes."""
TRANSACTED: Final = NewTopic("transacted", 2, {"internal.segment.bytes": "2000"})
"""The topic of the transactional producers."""
INTERNAL: Final = {CONSUMER_OFFSETS, TRANSACTION_STATE}
LIMIT_S: Final = 300.0
"""Virtual seconds after which a story should have ended."""
READ_LIMIT_S: Final = 30.0
END_LIMIT_S: Final = 15.0
"""After the last restart, for every transaction to end."""
ALWAYS: Final = frozenset({"phantom", "torn", "bounds"})
"""What holds even where nothing is promised to last."""


@dataclass(frozen=True, slots=True)
class Report:
    """What one simulation showed."""

    plan: Plan
    violations: list[Violation]
    events: list[Event]
    trace: Trace
    virtual_s: float

    def __str__(self) -> str:
        faults = [getattr(event, "name", "") for event in self.events]
        told = "\n".join(map(str, self.violations[:20]))
        return f"seed {self.plan.seed}: {[f for f in faults if f]}\n{self.plan}\n{told}"


def simulate(
    plan: Plan,
    *,
    make_disk: Callable[[Callable[[], int]], ForgettingDisk] = ForgettingDisk,
    keep_trace: bool = False,
) -> Report:
    """Run the plan from beginning to end."""
    gc.disable()  # the garbage of a run is collected once, at its end
    try:
        report = _tell(plan, make_disk, Trace(keep=keep_trace, hashed=keep_trace))
        bury()
    finally:
        gc.enable()
    return report


def _tell(
    plan: Plan, make_disk: Callable[[Callable[[], int]], ForgettingDisk], trace: Trace
) -> Report:
    loop = NetLoop(Random(plan.seed + 1), trace)
    loop.network = MemoryNetwork(loop, Random(plan.seed + 2))
    clock = SimClock(loop)
    story = Story(plan, loop, clock, make_disk(clock.wall_ms))
    clients = Process("clients")
    with clients.running(), LogWatch(story.book, trace):
        try:
            loop.run_until_complete(asyncio.wait_for(story.tell(), LIMIT_S))
        except Exception as error:
            story.book.complain("ended", "", "".join(traceback.format_exception(error)))
    violations = _broken_promises(plan, story.book)
    violations += [Violation("unhandled", "", what) for what in loop.unhandled]
    loop.let_go([*story.broker.lives, clients])
    return Report(plan, violations, story.book.events, trace, loop.time())


def _broken_promises(plan: Plan, book: Book) -> list[Violation]:
    """What was found, without what nobody had promised."""
    loose = _names(one for one in plan.topics if not one.promised)
    aging = _names(one for one in plan.topics if one.loses_old)

    def counts(found: Violation) -> bool:
        if found.invariant == "refusal" and found.partition in aging:
            return False  # a batch that retention took before its repeat came cannot be known again
        return found.partition not in loose or found.invariant in ALWAYS

    return [found for found in (*book.complaints, *check(book.events)) if counts(found)]


def _names(topics: Iterable[PlannedTopic]) -> set[str]:
    return {str(tp) for one in topics for tp in one.topic.all()}


class Story:
    def __init__(self, plan: Plan, loop: NetLoop, clock: SimClock, disk: ForgettingDisk) -> None:
        self.plan = plan
        self.book = Book(loop)
        self.broker = SimBroker(loop, clock, disk, plan.settings)
        self._clock = clock
        self._dice = Random(plan.seed + 3)
        self._admin = self._client("admin")
        self._pipelines = None
        if plan.relaying is not None:
            client = Client("pipelines", clock, Random(plan.seed + 7))
            self._pipelines = Pipelines(client, self.book, plan.relaying)
        fates = Random(plan.seed + 4)
        self._fate = Fate(self.broker, loop, clock, self.book, fates, power=plan.power)

    def _client(self, name: str) -> Client:
        return Client(name, self._clock, Random(self._dice.random()))

    async def tell(self) -> None:
        await self._fate.start()
        for topic in self._topics():
            await admin.create(self._admin, topic)
        consumers = [asyncio.get_running_loop().create_task(one.run()) for one in self._consumers()]
        async with asyncio.TaskGroup() as tasks:
            for producer in self._producers():
                tasks.create_task(producer.run())
            for transactor in self._transactors():
                tasks.create_task(transactor.run())
            if self._pipelines is not None:
                tasks.create_task(self._pipelines.run())
            churn = Churn(self._client("churn"), self.book, SCRATCH, self.plan.churn)
            tasks.create_task(churn.run())
            await self._misfortunes()
        for consumer in consumers:
            consumer.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*consumers)
        await self._fate.end(self.plan.last)
        await self._until_nothing_is_open()
        await self._read_for_the_last_time()
        await self._fate.finish()

    async def _misfortunes(self) -> None:
        for quiet_s, misfortune in self.plan.misfortunes:
            await asyncio.sleep(quiet_s)
            await self._fate.meet(misfortune, self._admin, self._deletable())

    def _producers(self) -> list[Producer]:
        habits = self.plan.habits
        partitions = self._partitions()
        shared = self._dice.sample(partitions, self._dice.randrange(len(partitions) + 1))
        return [
            Producer(self._client(f"p{at}"), tp, self.book, habits[at % len(habits)])
            for at, tp in enumerate([*partitions, *shared])
        ]

    def _consumers(self) -> list[Consumer]:
        consumers = [
            Consumer(self._client(f"c{at}"), self._partitions(), self.book, tastes)
            for at, tastes in enumerate(self.plan.tastes)
        ]
        if self.plan.dealings:
            consumers += [
                Consumer(self._client(f"t{at}"), TRANSACTED.all(), self.book, tastes)
                for at, tastes in enumerate(_side_by_side(self.plan.tastes[0]))
            ]
        return consumers

    def _transactors(self) -> list[Transactor]:
        return [
            Transactor(self._client(f"x{at}"), TRANSACTED.all(), self.book, dealings)
            for at, dealings in enumerate(self.plan.dealings)
        ]

    def _topics(self) -> list[NewTopic]:
        topics = [planned.topic for planned in self.plan.topics]
        return topics + self._transacted()

    def _transacted(self) -> list[NewTopic]:
        """The topics that transactions write to, and what they are made of."""
        relayed = self.plan.relaying.topics if self.plan.relaying is not None else []
        return [TRANSACTED, *relayed] if self.plan.dealings else relayed

    def _partitions(self) -> list[TopicPartition]:
        return [tp for planned in self.plan.topics for tp in planned.topic.all()]

    def _deletable(self) -> list[TopicPartition]:
        return [tp for one in self.plan.topics if one.loses_old for tp in one.topic.all()]

    async def _until_nothing_is_open(self) -> None:
        """Every transaction was decided before the last restart: it must end soon after it."""
        still = await admin.open_transactions(self._admin)
        try:
            async with asyncio.timeout(END_LIMIT_S):
                while still:
                    await self._admin.back_off()
                    still = await admin.open_transactions(self._admin)
        except TimeoutError:
            self.book.complain("open", "", f"{still} do not end within {END_LIMIT_S} s")

    async def _read_for_the_last_time(self) -> None:
        there = await admin.topics(self._admin)
        if there - INTERNAL != {topic.name for topic in self._topics()}:
            self.book.complain("topics", "", f"there are {sorted(there)}")
        reader = Consumer(self._client(FINAL), self._partitions(), self.book, Tastes())
        async with asyncio.timeout(READ_LIMIT_S):
            await read_everything(reader)
            if self._pipelines is not None:
                await self._pipelines.look_again()
            parts = [tp for topic in self._transacted() for tp in topic.all()]
            for tastes in _side_by_side(Tastes()) if parts else ():
                transacted = Consumer(self._client(FINAL), parts, self.book, tastes)
                await read_everything(transacted)
        for planned in self.plan.topics:
            for tp in planned.topic.all():
                start, end = await reader.bound(tp, EARLIEST), await reader.bound(tp, LATEST)
                watermark = reader.positions[tp].high_watermark
                if not start <= watermark <= end:
                    self.book.complain("bounds", str(tp), f"{start} <= {watermark} <= {end}")
                if start and not planned.loses_old:
                    self.book.complain("bounds", str(tp), f"begins at {start} for no reason")
                self.book.write(Retention(str(tp), start, planned.compacted))


def _side_by_side(tastes: Tastes) -> list[Tastes]:
    """A reader of everything, and one of what is committed."""
    return [replace(tastes, committed=committed) for committed in (False, True)]


class LogWatch(logging.Handler):
    """The broker's log belongs to the trace, and must never show a traceback."""

    def __init__(self, book: Book, trace: Trace) -> None:
        super().__init__()
        self._book = book
        self._trace = trace
        self._logger = logging.getLogger("ottla")

    def emit(self, record: logging.LogRecord) -> None:
        self._trace.note(record.levelname, record.getMessage())
        if record.exc_info:
            error = record.exc_info[1]
            self._book.complain("traceback", "", f"{record.getMessage()}: {error!r}")

    def __enter__(self) -> None:
        self._level, self._propagate = self._logger.level, self._logger.propagate
        self._logger.setLevel(logging.INFO)
        self._logger.propagate = False
        self._logger.addHandler(self)

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self)
        self._logger.propagate = self._propagate
        self._logger.setLevel(self._level)
