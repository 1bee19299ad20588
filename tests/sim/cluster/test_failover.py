"""How long our own producer waits when a leader dies or is stopped, on virtual time.

Only waits count here: back-offs, timeouts and the order in which brokers and clients learn of a new
leader. What computing adds is measured by `benchmarks/failover.py`, with the same settings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import cycle, pairwise
from typing import Final

import pytest

from ottla.client.producer.delivery import Delivery
from ottla.model.ids import TopicPartition
from tests.sim.cluster.stage import Stage, play
from tests.sim.ottla_client import SimProducer

REPLICATION: Final = {
    "flush.before.ack": "auto",
    "replica.fetch.wait.max.ms": "500",
    "replica.fetch.backoff.ms": "1000",
}
"""The defaults of brokers."""
CLIENT: Final = {
    "linger_ms": 1,
    "retry_backoff_ms": 100,
    "retry_backoff_max_ms": 200,
    "reconnect_backoff_ms": 50,
    "reconnect_backoff_max_ms": 1_000,
    "request_timeout_ms": 30_000,
}
"""The defaults of clients, but for `retry.backoff.max.ms`."""
ASSIGNMENTS: Final = ((1, 2, 3), (2, 3, 1), (3, 1, 2))
EVERY_S: Final = 0.004
Pause = Callable[[Stage, "Writer", TopicPartition], Awaitable[float]]


class Writer:
    """Writes to topics in turn all the time, and remembers when each record was acknowledged."""

    def __init__(self, stage: Stage, topics: list[TopicPartition]) -> None:
        self._stage = stage
        self._topics = topics
        self.acknowledged_s: dict[TopicPartition, list[float]] = {tp: [] for tp in topics}
        self.is_done = False

    async def run(self) -> None:
        cluster = self._stage.cluster
        bootstrap = cluster.admin.bootstrap
        producer = SimProducer(
            cluster.clock, cluster.admin.dice, bootstrap_servers=bootstrap, **CLIENT
        )
        async with producer, asyncio.TaskGroup() as tasks:
            for tp in cycle(self._topics):
                if self.is_done:
                    break
                delivery = await producer.send(tp.topic, b"v", partition=tp.partition)
                tasks.create_task(self._note(tp, delivery))
                await asyncio.sleep(EVERY_S)

    async def _note(self, tp: TopicPartition, delivery: Delivery) -> None:
        await delivery
        self.acknowledged_s[tp].append(self._stage.now_s)

    def since(self, tp: TopicPartition, when_s: float) -> list[float]:
        return [at_s for at_s in self.acknowledged_s[tp] if at_s > when_s]


async def pause_of_a_kill(stage: Stage, writer: Writer, tp: TopicPartition) -> float:
    """From the end of the leader's node to the next acknowledgement."""
    leader = stage.leader(tp)
    stage.node(leader).kill()
    await stage.until_gone(leader)
    gone_s = stage.now_s
    await stage.until(lambda: bool(writer.since(tp, gone_s)))
    await stage.start(leader)
    return writer.since(tp, gone_s)[0] - gone_s


async def pause_of_a_stop(stage: Stage, writer: Writer, tp: TopicPartition) -> float:
    """The longest time between two acknowledgements."""
    leader, began_s = stage.leader(tp), stage.now_s
    await stage.node(leader).stop()
    await asyncio.sleep(1.0)
    await stage.start(leader)
    acknowledged_s = writer.since(tp, began_s - 0.5)
    return max(later - earlier for earlier, later in pairwise(acknowledged_s))


@pytest.mark.spec("CTL-76")
@pytest.mark.parametrize(
    ("pause_of", "allowed_s"), [(pause_of_a_kill, 0.5), (pause_of_a_stop, 0.05)]
)
def test_writes_go_on_soon_after_a_leader_is_gone(pause_of: Pause, allowed_s: float) -> None:
    """Each broker in turn, so that the controller is among them."""

    async def scenario(stage: Stage) -> None:
        topics = [await stage.topic(replicas, f"t{replicas[0]}") for replicas in ASSIGNMENTS]
        for replicas in ASSIGNMENTS:  # whose followers' fetches wait
            await stage.topic(replicas, f"idle-{replicas[0]}")
        writer = Writer(stage, topics)
        writing = stage.cluster.loop.create_task(writer.run())
        await asyncio.sleep(1.0)
        pauses_s = []
        for tp in topics:
            pauses_s.append(await pause_of(stage, writer, tp))
            await stage.until(lambda: all(stage.isr(tp) == {1, 2, 3} for tp in stage.topics))
        writer.is_done = True
        await writing
        assert max(pauses_s) < allowed_s, pauses_s
        stage.topics.clear()  # these records are in no history

    play(scenario, REPLICATION)
