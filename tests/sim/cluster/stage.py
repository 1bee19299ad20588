"""A stage for single scenarios: three brokers, clients, and faults by hand.

Owns the run of one scenario: the brokers start, the scenario is played, everything is repaired, and
what holds after a seeded run must hold here as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from random import Random
from typing import Final

from ottla.model.ids import TopicPartition
from ottla.model.metrics import Counter, Histogram, Tally
from ottla.testing.history import FINAL, Outcome, Retention, Send, Violation, check
from tests.sim import admin
from tests.sim.cluster.cluster import SimCluster
from tests.sim.cluster.final_checks import FinalChecks
from tests.sim.cluster.logins import Logins
from tests.sim.cluster.node import SimNode
from tests.sim.cluster.observer import observed
from tests.sim.cluster.plan import SETTINGS
from tests.sim.cluster.verdict import different_replicas
from tests.sim.consumer import Consumer, Tastes
from tests.sim.loop import Process, bury
from tests.sim.network import MemoryNetwork, NetLoop
from tests.sim.producer import Habits, Producer
from tests.sim.relay import Pipelines, Relaying
from tests.sim.simulation import LogWatch
from tests.sim.trace import Trace
from tests.sim.transactor import Dealings, Transactor

T0: Final = TopicPartition("t", 0)
LIMIT_S: Final = 400.0
LOAD: Final = Habits(
    batches=100_000, records_max=2, value_max_bytes=50, pause_s=0.1, request_timeout_ms=1_000
)
"""A producer that writes all the time."""


class Stage:
    def __init__(self, cluster: SimCluster, trace: Trace) -> None:
        self.cluster = cluster
        self.book = cluster.book
        self.topics: list[TopicPartition] = []
        """Read and compared at the end."""
        self.transacted: list[TopicPartition] = []
        """Those of them that are read as committed data, too."""
        self.transactor_version = 2
        """Of transactions."""
        self._trace = trace
        self._count = 0

    # What there is

    def node(self, broker: int) -> SimNode:
        return self.cluster.nodes[broker]

    def leader(self, tp: TopicPartition = T0) -> int:
        return int(self.cluster.view.states()[tp].leader)

    def epoch(self, tp: TopicPartition = T0) -> int:
        return int(self.cluster.view.states()[tp].leader_epoch)

    def isr(self, tp: TopicPartition = T0) -> set[int]:
        return {int(broker) for broker in self.cluster.view.states()[tp].isr}

    def logged(self, text: str) -> list[str]:
        """The lines that brokers logged so far and that contain this."""
        return [line for line in self._trace.lines or () if text in line]

    def metric(self, broker: int, name: str) -> float:
        """A metric without labels of a running broker."""
        app = self.node(broker).app
        assert app is not None
        [metric] = [f.metrics[()] for f in app.registry.families() if f.name == name]
        assert not isinstance(metric, Histogram)
        return metric.value if isinstance(metric, Counter | Tally) else metric()

    @property
    def now_s(self) -> float:
        return self.cluster.loop.time()

    async def until(self, holds: Callable[[], bool], within_s: float = 20.0) -> float:
        """Wait for a condition; how long it took."""
        began_s = self.now_s
        async with asyncio.timeout(within_s):
            while not holds():  # noqa: ASYNC110 - virtual time
                await asyncio.sleep(0.005)
        return self.now_s - began_s

    # Clients

    async def topic(
        self, replicas: Sequence[int] = (1, 2, 3), name: str = "t", **configs: str
    ) -> TopicPartition:
        """A topic with one partition; the first of the replicas leads."""
        named = {key.replace("_", "."): value for key, value in configs.items()}
        topic = admin.NewTopic(name, 1, named, assignment=tuple(replicas))
        await admin.create(self.cluster.admin, topic)
        tp = TopicPartition(name, 0)
        self.topics.append(tp)
        await self.until(lambda: self.isr(tp) == set(replicas))
        return tp

    async def transacted_topic(self, replicas: Sequence[int] = (1, 2, 3)) -> TopicPartition:
        """A topic that transactions write to."""
        tp = await self.topic(replicas)
        self.transacted.append(tp)
        return tp

    def transactor(self, version: int) -> Transactor:
        """A producer of transactions in T0, for single steps."""
        self.transactor_version = version
        dealings = Dealings(version=version)
        return Transactor(self.cluster.client("x"), [T0], self.book, dealings)

    async def pipelines(self, relaying: Relaying) -> Pipelines:
        """Exactly-once workers, with their topics."""
        for topic in relaying.topics:
            configs = {"min.insync.replicas": "2"}
            await admin.create(self.cluster.admin, replace(topic, configs=configs, replicas=3))
            self.topics += topic.all()
            self.transacted += topic.all()
        return Pipelines(self.cluster.client("pipelines"), self.book, relaying)

    async def write(
        self, batches: int = 5, tp: TopicPartition = T0, **habits: object
    ) -> list[Send]:
        """Write that many batches; what became of their records."""
        before = len(self.book.events)
        wanted = Habits(**{"batches": batches, "records_max": 2, "pause_s": 0.01, **habits})  # type: ignore[arg-type]
        await self._producer(tp, wanted).run()
        return [event for event in self.book.events[before:] if isinstance(event, Send)]

    @asynccontextmanager
    async def load(self, tp: TopicPartition = T0, habits: Habits = LOAD) -> AsyncIterator[None]:
        """Meanwhile records are written; at the end all of them are acknowledged."""
        producer = self._producer(tp, habits)
        task = self.cluster.loop.create_task(producer.run())
        yield
        producer.finish = True
        await task

    def _producer(self, tp: TopicPartition, habits: Habits) -> Producer:
        self._count += 1
        return Producer(self.cluster.client(f"p{self._count}"), tp, self.book, habits)

    def acknowledged(self) -> int:
        """Records acknowledged so far."""
        return sum(
            isinstance(event, Send) and event.outcome is Outcome.OK for event in self.book.events
        )

    async def until_acknowledged(self, count: int) -> float:
        """Until so many more records are acknowledged; how long it took."""
        wanted = self.acknowledged() + count
        return await self.until(lambda: self.acknowledged() >= wanted)

    # Faults

    def cut(self, *pairs: tuple[int, int], one_way: bool = False) -> None:
        """Hold back what brokers send each other."""
        for one, other in pairs:
            here, there = self.node(one).host, self.node(other).host
            self.cluster.loop.network.cut((here, there))
            if not one_way:
                self.cluster.loop.network.cut((there, here))

    def heal(self) -> None:
        self.cluster.loop.network.heal()

    async def start(self, broker: int) -> None:
        await self.cluster.faults.start(self.node(broker))

    async def until_gone(self, broker: int) -> None:
        """Until the store misses this broker."""
        await self.until(lambda: broker not in self.cluster.view.registered())


Scenario = Callable[[Stage], Awaitable[None]]


def play(
    scenario: Scenario,
    settings: Mapping[str, str] | None = None,
    seed: int = 1,
    promises: Callable[[Violation], bool] = lambda _: True,
    logins: Logins | None = None,
) -> Stage:
    """Play a scenario, repair everything, and judge it as a seeded run is judged.

    `promises` says which violations count.
    """
    trace = Trace(keep=True)
    loop = NetLoop(Random(seed), trace)
    loop.network = MemoryNetwork(loop, Random(seed + 1))
    cluster = SimCluster({**SETTINGS, **(settings or {})}, loop, seed, logins)
    stage = Stage(cluster, trace)
    clients = Process("clients")
    with clients.running(), LogWatch(stage.book, trace), observed(stage.book, cluster.moments):
        try:
            loop.run_until_complete(asyncio.wait_for(_play(stage, scenario), LIMIT_S))
        finally:
            unhandled = list(loop.unhandled)  # not of the dead, whose work ends in `bury`
            lives = [life for node in cluster.nodes.values() for life in node.lives]
            loop.let_go([*lives, clients])
            bury()
    violations = [*filter(promises, (*stage.book.complaints, *check(stage.book.events)))]
    assert not violations, violations[:5]
    assert not unhandled, unhandled
    return stage


async def _play(stage: Stage, scenario: Scenario) -> None:
    cluster = stage.cluster
    await cluster.start()
    await scenario(stage)
    await cluster.faults.repair()
    checks = FinalChecks(cluster)
    await checks.run()
    served = {}
    for tp in stage.topics:
        reader = Consumer(cluster.client(FINAL), [tp], stage.book, Tastes())
        await checks.read(reader, tp)
        served[tp] = range(reader.positions[tp].high_watermark)
        stage.book.write(Retention(str(tp)))
        if tp in stage.transacted:
            tastes = Tastes(committed=True)
            await checks.read(Consumer(cluster.client(FINAL), [tp], stage.book, tastes), tp)
    stage.book.complaints += different_replicas(cluster.nodes, cluster.view, served)
    await cluster.stop()
