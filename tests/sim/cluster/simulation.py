"""Runs one plan: three brokers, their clients, the faults, and the checks at the end.

Owns the order of events. What is reported: every promise that the history shows to be broken,
replicas that differ, in-sync sets that do not become whole, transactions that do not end, and what
a broker must never do: a traceback, a task that outlives it, a start that fails.
"""

from __future__ import annotations

import asyncio
import gc
import traceback
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

from ottla.model.ids import TopicPartition
from ottla.testing.history import FINAL, Event, Retention, Violation, check
from tests.sim import admin
from tests.sim.admin import NewTopic
from tests.sim.churn import Churn
from tests.sim.cluster.cluster import SimCluster
from tests.sim.cluster.committer import Committer
from tests.sim.cluster.final_checks import FinalChecks
from tests.sim.cluster.observer import observed
from tests.sim.cluster.operator import Operator
from tests.sim.cluster.plan import ClusterPlan
from tests.sim.cluster.verdict import different_replicas
from tests.sim.consumer import Consumer, Tastes
from tests.sim.loop import PROCESS, Process, bury
from tests.sim.network import MemoryNetwork, NetLoop
from tests.sim.producer import Producer
from tests.sim.relay import Pipelines
from tests.sim.simulation import SCRATCH, LogWatch
from tests.sim.trace import Trace
from tests.sim.transactor import Transactor

TRANSACTED: Final = NewTopic("transacted", 2, {"min.insync.replicas": "2"}, replicas=3)
LIMIT_S: Final = 600.0
"""Virtual seconds after which a simulation should have ended."""
UNFINISHED: Final = {"ended", "hangs for ever"}
"""Complaints after which there are no final reads, without which a history cannot be judged."""


@dataclass(frozen=True, slots=True)
class ClusterReport:
    plan: ClusterPlan
    violations: list[Violation]
    events: list[Event]
    trace: Trace
    virtual_s: float

    def __str__(self) -> str:
        faults = [getattr(event, "name", "") for event in self.events]
        shown = "\n".join(map(str, self.violations[:20]))
        return f"seed {self.plan.seed}: {[name for name in faults if name]}\n{self.plan}\n{shown}"


def simulate(plan: ClusterPlan, *, keep_trace: bool = False) -> ClusterReport:
    """Run the plan from beginning to end."""
    gc.disable()  # the garbage of a run is collected once, at its end
    try:
        report = _run(plan, Trace(keep=keep_trace, hashed=False))
        bury()
    finally:
        gc.enable()
    return report


def _run(plan: ClusterPlan, trace: Trace) -> ClusterReport:
    loop = NetLoop(Random(plan.seed + 1), trace)
    loop.network = MemoryNetwork(loop, Random(plan.seed + 2))
    run = Run(plan, loop)
    clients = Process("clients")
    with clients.running(), LogWatch(run.book, trace), observed(run.book, run.cluster.moments):
        try:
            loop.run_until_complete(run.within(LIMIT_S))
        except Exception as error:
            run.book.complain("ended", "", "".join(traceback.format_exception(error)))
    violations = run.book.complaints
    if not any(complaint.invariant in UNFINISHED for complaint in violations):
        violations = [*violations, *check(run.book.events)]
    violations += [Violation("unhandled", "", text) for text in loop.unhandled]
    loop.let_go([*(life for node in run.cluster.nodes.values() for life in node.lives), clients])
    return ClusterReport(plan, violations, run.book.events, trace, loop.time())


class Run:
    def __init__(self, plan: ClusterPlan, loop: NetLoop) -> None:
        self.plan = plan
        self.cluster = SimCluster(plan.settings, loop, plan.seed, plan.logins)
        self.book = self.cluster.book
        self._client = self.cluster.client
        self._loop = loop
        self._pipelines = None
        if plan.relaying is not None:
            self._pipelines = Pipelines(self._client("pipelines"), self.book, plan.relaying)
        self._committer = None
        if plan.commits:
            client, tp = self._client("committer"), self._partitions()[0]
            self._committer = Committer(client, self.book, tp, plan.commits)

    async def within(self, limit_s: float) -> None:
        """Run; who has not finished within the limit is reported."""
        task = self._loop.create_task(self.run())
        await asyncio.wait([task], timeout=limit_s)
        if task.done():
            task.result()
            return
        waiting = [where_it_waits(each) for each in PROCESS.get().pending() if each is not task]
        self.book.complain("hangs for ever", "", "; ".join(waiting))

    async def run(self) -> None:
        await self.cluster.start()
        for topic in self._topics():
            await admin.create(self.cluster.admin, topic)
        self.cluster.set_store_faults(self.plan.store_faults)
        consumers = [self._loop.create_task(consumer.run()) for consumer in self._consumers()]
        async with asyncio.TaskGroup() as tasks:
            for work in self._work():
                tasks.create_task(work)
            tasks.create_task(self.cluster.faults.inject_all(self.plan.faults))
        for consumer in consumers:
            consumer.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*consumers)
        await self._judge()
        await self.cluster.stop()

    # Clients

    def _topics(self) -> list[NewTopic]:
        return [*(planned.topic for planned in self.plan.topics), *self._transacted()]

    def _transacted(self) -> list[NewTopic]:
        """The topics that transactions write to, and what they read."""
        topics = [TRANSACTED] if self.plan.dealings else []
        if self.plan.relaying is not None:
            configs = {"min.insync.replicas": "2"}
            relayed = self.plan.relaying.topics
            topics += [replace(topic, configs=configs, replicas=3) for topic in relayed]
        return topics

    def _partitions(self) -> list[TopicPartition]:
        return [tp for planned in self.plan.topics for tp in planned.topic.all()]

    def _work(self) -> list[Coroutine[Any, Any, None]]:
        habits = self.plan.habits
        work = [
            Producer(self._client(f"p{at}"), tp, self.book, habits[at % len(habits)]).run()
            for at, tp in enumerate(self._partitions())
        ]
        work += [
            Transactor(self._client(f"x{at}"), TRANSACTED.all(), self.book, dealings).run()
            for at, dealings in enumerate(self.plan.dealings)
        ]
        if self._pipelines is not None:
            work.append(self._pipelines.run())
        if self._committer is not None:
            work.append(self._committer.run())
        work.append(self._operator().run())
        client, rounds = self._client("churn"), self.plan.churn
        churn = Churn(client, self.book, SCRATCH, rounds, replicas=len(self.cluster.nodes))
        return [*work, churn.run()]

    def _operator(self) -> Operator:
        partitions = {
            tp: planned.loses_old for planned in self.plan.topics for tp in planned.topic.all()
        }
        log_dirs = self.plan.settings["log.dirs"].split(",")
        duties = self.plan.duties
        return Operator(self._client("operator"), self.book, duties, partitions, log_dirs)

    def _consumers(self) -> list[Consumer]:
        """One for each partition: a fetch goes to one leader."""
        consumers = [
            Consumer(self._client(f"c-{tp}"), [tp], self.book, Tastes(max_wait_ms=300))
            for tp in self._partitions()
        ]
        if self.plan.dealings:
            tastes = Tastes(max_wait_ms=300, committed=True)
            consumers += [
                Consumer(self._client(f"t-{tp}"), [tp], self.book, tastes)
                for tp in TRANSACTED.all()
            ]
        return consumers

    # The end

    async def _judge(self) -> None:
        self.book.fault("everything repaired")
        await self.cluster.faults.repair()
        checks = FinalChecks(self.cluster)
        await checks.run()
        served = await self._read_for_the_last_time(checks)
        self.book.complaints += different_replicas(self.cluster.nodes, self.cluster.view, served)

    async def _read_for_the_last_time(self, checks: FinalChecks) -> dict[TopicPartition, range]:
        """The offsets that are served of what is not compacted."""
        served = {}
        if self._pipelines is not None:
            await self._pipelines.look_again()
        if self._committer is not None:
            await self._committer.read_for_the_last_time()
        transacted = [tp for topic in self._transacted() for tp in topic.all()]
        for tp in [*self._partitions(), *transacted]:
            reader = Consumer(self._client(FINAL), [tp], self.book, Tastes())
            await checks.read(reader, tp)
            start = await checks.start(reader, tp)
            served[tp] = range(start, reader.positions[tp].high_watermark)
            if tp in transacted:
                tastes = Tastes(committed=True)
                await checks.read(Consumer(self._client(FINAL), [tp], self.book, tastes), tp)
        for planned in self.plan.topics:
            for tp in planned.topic.all():
                start = served[tp].start
                if start and not planned.loses_old:
                    self.book.complain("bounds", str(tp), f"begins at {start} for no reason")
                self.book.write(Retention(str(tp), start, planned.compacted))
                if planned.compacted:
                    del served[tp]
        return served


def where_it_waits(task: asyncio.Task[Any]) -> str:
    """The functions a task is in, from the outermost to the one that waits."""
    names: list[str] = []
    work: Any = task.get_coro()
    while work is not None and hasattr(work, "cr_frame") and work.cr_frame is not None:
        names.append(f"{work.__qualname__}:{work.cr_frame.f_lineno}")
        work = work.cr_await
    return " > ".join(names)
