"""The working copy of the state while one event is handled, and the effects collected so far.

Owns the working copy. Never decides anything. Reads see the changes made so far; `step()` returns
the outcome. Topics are copied only when changed, because there may be thousands and an event
usually concerns one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ottla.controller import store_operations
from ottla.controller.effects import Reply, Step
from ottla.controller.request_batch import RequestBatch
from ottla.controller.state import (
    ControllerState,
    Deletion,
    Leadership,
    PartitionAssignment,
    TopicAssignment,
)
from ottla.model.ids import BrokerId, TopicPartition
from ottla.store.port import Op


class Draft:
    def __init__(self, state: ControllerState) -> None:
        self.state = state  # everything but the topics is changed by replacing it here
        self.requests = RequestBatch()
        self.writes: list[Op] = []
        self._replies: list[Reply] = []
        self._warnings: list[str] = []
        self._topics: dict[str, TopicAssignment] | None = None
        self._deletions: dict[str, Deletion] | None = None
        self._fresh: dict[str, dict[int, PartitionAssignment]] = {}  # copies that may be changed

    @property
    def topics(self) -> Mapping[str, TopicAssignment]:
        return self.state.topics if self._topics is None else self._topics

    def partition(self, tp: TopicPartition) -> PartitionAssignment:
        return self.topics[tp.topic].partitions[tp.partition]

    def put_topic(self, name: str, topic: TopicAssignment) -> None:
        fresh = dict(topic.partitions)
        self._own_topics()[name] = replace(topic, partitions=fresh)
        self._fresh[name] = fresh

    def drop_topic(self, name: str) -> None:
        del self._own_topics()[name]
        self._fresh.pop(name, None)

    def put(self, tp: TopicPartition, partition: PartitionAssignment) -> None:
        if tp.topic not in self._fresh:
            self.put_topic(tp.topic, self.topics[tp.topic])
        self._fresh[tp.topic][tp.partition] = partition

    def put_deletion(self, name: str, ongoing: Deletion) -> None:
        """Copied once for a step: there may be thousands, and an event may concern many."""
        if self._deletions is None or self.state.deletions is not self._deletions:
            self._deletions = dict(self.state.deletions)
            self.state = replace(self.state, deletions=self._deletions)
        self._deletions[name] = ongoing

    def lead(self, tp: TopicPartition, leadership: Leadership) -> None:
        """Write the leadership. Its version is the one that the write will produce."""
        partition = self.partition(tp)
        if partition.leadership is None:
            self.writes += store_operations.create_state(tp, leadership)
            version = 0
        else:
            self.writes.append(
                store_operations.set_state(tp, leadership, partition.leadership.version)
            )
            version = partition.leadership.version + 1
        self.put(tp, replace(partition, leadership=replace(leadership, version=version)))

    def reply(self, request_id: int, answer: object, *, at_once: bool = False) -> None:
        self._replies.append(Reply(request_id, answer, at_once))

    def warn(self, text: str) -> None:
        """Log this as a warning once the step is committed."""
        self._warnings.append(text)

    def live_replicas(self, tp: TopicPartition) -> frozenset[BrokerId]:
        """Replicas that may lead: online, and not on a broker that is shutting down."""
        return frozenset(
            broker
            for broker in self.partition(tp).replicas
            if broker not in self.state.shutting_down and self.state.is_online(broker, tp)
        )

    def step(self) -> Step:
        if self._topics is not None:
            self.state = replace(self.state, topics=self._topics)
        sends = tuple(self.requests.sends(self.state))
        return Step(
            self.state, tuple(self.writes), sends, tuple(self._replies), tuple(self._warnings)
        )

    def _own_topics(self) -> dict[str, TopicAssignment]:
        if self._topics is None:
            self._topics = dict(self.state.topics)
        return self._topics
