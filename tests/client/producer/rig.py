"""What the tests of the producer's parts are made of."""

from __future__ import annotations

import threading
from random import Random
from typing import Any
from uuid import UUID

from ottla.client.cluster_view import ClusterView, Node, PartitionView, TopicView
from ottla.client.interceptors import ProducerRecord
from ottla.client.producer.buffer.accumulator import Accumulator
from ottla.client.producer.buffer.batch import Batch, PreparedRecord
from ottla.client.producer.buffer.queues import Queues
from ottla.client.producer.buffer.record_intake import Hooks, IntakeContext, RecordIntake
from ottla.client.producer.transactions.state import Transaction
from ottla.config.client import ProducerConfig
from ottla.model.clock import MonoMs
from ottla.model.ids import TopicPartition
from tests.fakes.manual_time import ManualClock

TP = TopicPartition("t", 0)
STAMP_NS = 1_700_000_000_000_000_000


def config(**options: Any) -> ProducerConfig:
    return ProducerConfig.from_options(options)


def topic(partitions: int = 3, leaders: dict[int, int] | None = None, name: str = "t") -> TopicView:
    return TopicView(
        name,
        UUID(bytes=name.encode().ljust(16)),
        False,
        tuple(
            PartitionView(index, (leaders or {}).get(index, 1), 0, (1,), (1,), ())
            for index in range(partitions)
        ),
    )


def cluster(*topics: TopicView) -> ClusterView:
    nodes = {id: Node(id, "h", id) for id in (1, 2)}
    return ClusterView("c", 1, nodes, {each.name: each for each in topics})


def record(
    value: bytes | None = b"v", tp: TopicPartition = TP, *, sticky: bool = False
) -> PreparedRecord:
    return PreparedRecord(tp, None, value, (), STAMP_NS, sticky)


def batch(*values: bytes, tp: TopicPartition = TP, created_ms: int = 0) -> Batch:
    """A closed batch with these values."""
    made = Batch(tp, 1_000_000, 1_000, MonoMs(created_ms), threading.Lock())
    for value in values or (b"v",):
        made.append(None, value, (), STAMP_NS)
    made.close()
    return made


class Rig:
    """Both sides of the queues, on time that a test moves."""

    def __init__(self, hooks: Hooks | None = None, name: str | None = None, **options: Any) -> None:
        self.config = config(**options)
        self.clock = ManualClock(1_000)
        self.woken = 0
        self.queues = Queues(self.config.buffer_memory)
        self.transaction = None if name is None else Transaction(name)
        context = IntakeContext(self.clock, Random(1), lambda: STAMP_NS, self._wake)
        self.intake = RecordIntake(
            self.config, hooks or Hooks(), context, self.queues, self.transaction
        )
        self.accumulator = Accumulator(self.config, self.queues)

    def _wake(self) -> None:
        self.woken += 1

    @property
    def now_ms(self) -> int:
        return self.clock.mono_ms()

    def pass_ms(self, ms: int) -> None:
        self.clock.ns += ms * 1_000_000

    def prepare(
        self, view: TopicView, value: Any = b"v", key: Any = None, **more: Any
    ) -> PreparedRecord:
        return self.intake.prepare(view, ProducerRecord(view.name, value, key, **more))

    def drained(self, view: ClusterView, node: int = 1) -> list[Batch]:
        ready = self.accumulator.ready(view, MonoMs(self.now_ms))
        queues = ready.nodes.get(node)
        return [] if queues is None else self.accumulator.drain(node, queues, lambda tp, head: True)
