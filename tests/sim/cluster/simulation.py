"""Runs one plan: three brokers, their clients, the faults, and the checks at the end.

Owns the order of events. What is reported: every promise that the history shows to be broken,
replicas that differ, in-sync sets that do not become whole, transactions that do not end, and what
a broker must never do: a traceback, a task that outlives it, a start that fails.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.store.memory import Ensemble, StoreFaults
from ottla.testing.history import FINAL, Event, Retention, Violation, check
from ottla.testing.history.replicas import log_end
from tests.sim import admin
from tests.sim.admin import AT_REST, LIST_TRANSACTIONS, NewTopic
from tests.sim.book import Book
from tests.sim.client import METADATA
from tests.sim.cluster.faults import Faults
from tests.sim.cluster.node import SimNode
from tests.sim.cluster.observer import observed
from tests.sim.cluster.plan import ClusterPlan
from tests.sim.cluster.routing import (
    BROKERS,
    RoutedClient,
)
from tests.sim.cluster.verdict import StoreView, different_replicas, log_of
from tests.sim.consumer import Consumer, Tastes, read_everything
from tests.sim.loop import PROCESS, Process, SimClock, bury
from tests.sim.network import MemoryNetwork, NetLoop
from tests.sim.producer import Producer
from tests.sim.relay import Pipelines
from tests.sim.simulation import LogWatch
from tests.sim.trace import Trace
from tests.sim.transactor import Transactor

TRANSACTED: Final = NewTopic("transacted", 2, {"min.insync.replicas": "2"}, replicas=3)
LIMIT_S: Final = 240.0
"""Virtual seconds after which a simulation should have ended."""
EVERY_TOPIC: Final = {
    "topics": None,
    "allow_auto_topic_creation": False,
    "include_topic_authorized_operations": False,
}
UNFINISHED: Final = {"ended", "hangs for ever"}
"""Complaints after which there are no final reads, without which a history cannot be judged."""
WHOLE_LIMIT_S: Final = 60.0
"""After everything was repaired, for all replicas to be in sync."""
END_LIMIT_S: Final = 40.0
READ_LIMIT_S: Final = 30.0


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
    report = _run(plan, Trace(keep=keep_trace))
    bury()
    return report


def _run(plan: ClusterPlan, trace: Trace) -> ClusterReport:
    loop = NetLoop(Random(plan.seed + 1), trace)
    loop.network = MemoryNetwork(loop, Random(plan.seed + 2))
    run = Run(plan, loop)
    clients = Process("clients")
    with clients.running(), LogWatch(run.book, trace), observed(run.book):
        try:
            loop.run_until_complete(run.within(LIMIT_S))
        except Exception as error:
            run.book.complain("ended", "", "".join(traceback.format_exception(error)))
    violations = run.book.complaints
    if not any(complaint.invariant in UNFINISHED for complaint in violations):
        violations = [*violations, *check(run.book.events)]
    violations += [Violation("unhandled", "", text) for text in loop.unhandled]
    loop.let_go([*(life for node in run.nodes.values() for life in node.lives), clients])
    return ClusterReport(plan, violations, run.book.events, trace, loop.time())


class Run:
    def __init__(self, plan: ClusterPlan, loop: NetLoop) -> None:
        self.plan = plan
        self.book = Book(loop)
        self._loop = loop
        self._clock = SimClock(loop)
        self._dice = Random(plan.seed + 3)
        ensemble = Ensemble()
        self.nodes = {id: SimNode(loop, id, plan.settings, ensemble) for id in BROKERS}
        self._view = StoreView(ensemble)
        self._faults = Faults(self.nodes, loop, self._view, self.book, Random(plan.seed + 4))
        self._admin = self._client("admin")
        self._pipelines = None
        if plan.relaying is not None:
            self._pipelines = Pipelines(self._client("pipelines"), self.book, plan.relaying)

    def _client(self, name: str) -> RoutedClient:
        return RoutedClient(name, self._clock, Random(self._dice.random()))

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
        await asyncio.gather(*(node.begin() for node in self.nodes.values()))
        await self._until_whole()
        for topic in self._topics():
            await admin.create(self._admin, topic)
        self._set_store_faults()
        consumers = [self._loop.create_task(consumer.run()) for consumer in self._consumers()]
        async with asyncio.TaskGroup() as tasks:
            for work in self._work():
                tasks.create_task(work)
            tasks.create_task(self._inject())
        for consumer in consumers:
            consumer.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*consumers)
        await self._judge()
        await asyncio.gather(*(node.stop() for node in self.nodes.values()))

    def _set_store_faults(self) -> None:
        for node in self.nodes.values():
            faults = StoreFaults(Random(self._dice.random()), **self.plan.store_faults)
            node.faults = faults
            if node.store is not None:
                node.store._faults = faults

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
        return work if self._pipelines is None else [*work, self._pipelines.run()]

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

    async def _inject(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for planned in self.plan.faults:
                await asyncio.sleep(planned.after_s)
                tasks.create_task(self._faults.inject(planned))

    # The end

    async def _judge(self) -> None:
        self.book.fault("everything repaired")
        await self._faults.repair()
        await self._until_whole()
        await self._until_metadata_agrees()
        await self._until_nothing_is_open()
        ends = await self._read_for_the_last_time()
        self.book.complaints += different_replicas(self.nodes, self._view, ends)

    async def _until_whole(self) -> None:
        try:
            async with asyncio.timeout(WHOLE_LIMIT_S):
                while self._view.out_of_sync(len(self.nodes)):  # noqa: ASYNC110 - virtual time
                    await asyncio.sleep(0.1)
        except TimeoutError:
            left = self._view.out_of_sync(len(self.nodes))
            self.book.complain("in sync", "", f"after {WHOLE_LIMIT_S} s: {left[:5]}")

    async def _until_metadata_agrees(self) -> None:
        """Every broker names the leaders that the store names."""
        others: dict[str, str] = {}
        try:
            async with asyncio.timeout(END_LIMIT_S):
                while True:
                    others = await self._other_leaders()
                    if not others:
                        return
                    await self._admin.back_off()
        except TimeoutError:
            self.book.complain("metadata", "", f"after {END_LIMIT_S} s: {others}")

    async def _other_leaders(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for broker in self.nodes:
            try:
                reply = await self._admin.ask_broker(broker, METADATA, 12, EVERY_TOPIC)
            except OSError:
                found[f"broker {broker}"] = "no reply"
                continue
            named = {
                TopicPartition(topic.name, partition.partition_index): partition.leader_id
                for topic in reply.topics
                for partition in topic.partitions
            }
            for tp, state in self._view.states().items():
                if named.get(tp) != state.leader:
                    found[f"{tp} on broker {broker}"] = f"{named.get(tp)}, not {state.leader}"
        return found

    async def _until_nothing_is_open(self) -> None:
        """Every transaction was decided, or its producer replaced: it must end soon."""
        open_ones: dict[str, str] = {}
        try:
            async with asyncio.timeout(END_LIMIT_S):
                while True:
                    open_ones = await self._open_transactions()
                    if not open_ones:
                        return
                    await self._admin.back_off()
        except TimeoutError:
            self.book.complain("open", "", f"{open_ones} do not end within {END_LIMIT_S} s")

    async def _open_transactions(self) -> dict[str, str]:
        fields = {"state_filters": [], "producer_id_filters": [], "duration_filter": -1}
        found: dict[str, str] = {}
        for broker in self.nodes:
            try:
                reply = await self._admin.ask_broker(broker, LIST_TRANSACTIONS, 1, fields)
            except OSError:
                found[f"broker {broker}"] = "no reply"
                continue
            if reply.error_code != ErrorCode.none:
                found[f"broker {broker}"] = ErrorCode(reply.error_code).name
            for row in reply.transaction_states:
                if row.transaction_state not in AT_REST:
                    found[row.transactional_id] = row.transaction_state
        return found

    async def _read_for_the_last_time(self) -> dict[TopicPartition, int]:
        """The high watermarks of what is not compacted."""
        ends = {}
        async with asyncio.timeout(READ_LIMIT_S):
            if self._pipelines is not None:
                await self._pipelines.look_again()
            transacted = [tp for topic in self._transacted() for tp in topic.all()]
            for tp in [*self._partitions(), *transacted]:
                reader = Consumer(self._client(FINAL), [tp], self.book, Tastes())
                await self._read_to_log_end(reader, tp)
                ends[tp] = reader.positions[tp].high_watermark
                if tp in transacted:
                    tastes = Tastes(committed=True)
                    committed = Consumer(self._client(FINAL), [tp], self.book, tastes)
                    await read_everything(committed)
        for planned in self.plan.topics:
            for tp in planned.topic.all():
                self.book.write(Retention(str(tp), 0, planned.compacted))
                if planned.compacted:
                    del ends[tp]
        return ends

    async def _read_to_log_end(self, reader: Consumer, tp: TopicPartition) -> None:
        """With every replica in sync, all that the leader has is committed soon."""
        while True:
            await read_everything(reader)
            leader = self._view.states()[tp].leader
            if leader in self.nodes:
                end = log_end(log_of(self.nodes[leader], tp))
                if reader.positions[tp].high_watermark >= end:
                    return
            await asyncio.sleep(0.1)
            await reader.poll()  # the high watermark may have moved


def where_it_waits(task: asyncio.Task[Any]) -> str:
    """The functions a task is in, from the outermost to the one that waits."""
    names: list[str] = []
    work: Any = task.get_coro()
    while work is not None and hasattr(work, "cr_frame") and work.cr_frame is not None:
        names.append(f"{work.__qualname__}:{work.cr_frame.f_lineno}")
        work = work.cr_await
    return " > ".join(names)
