"""Moments at which a fault does most harm.

Owns who waits for which moment. The store reports what it has taken within the write itself
(`ObservedEnsemble`), brokers what they append to internal topics (`observer`). A waiter continues
in the same virtual instant, before anybody can learn of what has happened.
"""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import Final, NamedTuple

from ottla.model.ids import CONSUMER_OFFSETS, TRANSACTION_STATE, TopicPartition
from ottla.store import paths
from ottla.store.memory import Ensemble
from ottla.store.nodes import StateNode
from ottla.store.tree import Draft


class Moment(Enum):
    ANY = "at any time"
    ISR_GROWS = "the store has taken a larger in-sync set"
    LEADER_ELECTED = "the store has taken a new leader"
    CONTROLLER_ELECTED = "the store has taken a new controller"
    TOPIC_CHANGED = "the store has taken or lost a topic, or its replicas"
    TRANSACTION_WRITTEN = "a coordinator has appended to __transaction_state"
    OFFSETS_WRITTEN = "a coordinator has appended to __consumer_offsets"


WRITTEN: Final = {
    TRANSACTION_STATE: Moment.TRANSACTION_WRITTEN,
    CONSUMER_OFFSETS: Moment.OFFSETS_WRITTEN,
}


class Subject(NamedTuple):
    """What a moment is about."""

    partition: TopicPartition | None = None
    leader: int = -1
    joined: int = -1
    """The broker that is new in an in-sync set."""


class Moments:
    def __init__(self) -> None:
        self._waiting: dict[Moment, list[asyncio.Future[Subject]]] = {}

    async def wait(self, moment: Moment, limit_s: float) -> Subject | None:
        """What the next such moment is about; None if there is none in time."""
        if moment is Moment.ANY:
            return None
        future = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(moment, []).append(future)
        try:
            async with asyncio.timeout(limit_s):
                subject: Subject = await future
                return subject
        except TimeoutError:
            return None

    def report(self, moment: Moment, subject: Subject) -> None:
        for future in self._waiting.pop(moment, ()):
            if not future.done():
                future.set_result(subject)


class ObservedEnsemble(Ensemble):
    """Servers that report what they take."""

    def __init__(self, moments: Moments) -> None:
        super().__init__()
        self._moments = moments

    def _publish(self, draft: Draft) -> None:
        before = {path: self.tree.find(path) for path in draft.changed}
        super()._publish(draft)
        for path, entry in before.items():
            now = self.tree.find(path)
            if path == paths.CONTROLLER and now is not None:
                self._moments.report(Moment.CONTROLLER_ELECTED, Subject())
            elif paths.parent(path) == paths.TOPICS:
                self._moments.report(Moment.TOPIC_CHANGED, Subject())
            elif path.endswith("/state") and entry is not None and now is not None:
                states = StateNode.decode(entry.data), StateNode.decode(now.data)
                self._compare(_partition(path), *states)

    def _compare(self, tp: TopicPartition, before: StateNode, now: StateNode) -> None:
        joined = sorted(set(now.isr) - set(before.isr))
        subject = Subject(tp, now.leader, joined[0] if joined else -1)
        if before.leader != now.leader:
            self._moments.report(Moment.LEADER_ELECTED, subject)
        elif joined:
            self._moments.report(Moment.ISR_GROWS, subject)


def _partition(state_path: str) -> TopicPartition:
    topic, _, partition, _ = state_path.removeprefix(paths.TOPICS + "/").split("/")
    return TopicPartition(topic, int(partition))
