"""One event in the making: a state that can be changed, and what the changes ask for.

Owns the working copy. Never decides anything. Reads see what the event has changed so far;
`step()` ends it. Topics are copied only when touched, because there may be thousands of them and
an event usually concerns one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ottla.controller import store_operations
from ottla.controller.effects import Reply, Step
from ottla.controller.request_batch import RequestBatch
from ottla.controller.state import ControllerState, Leadership, PartitionAssignment, TopicAssignment
from ottla.model.ids import BrokerId, TopicPartition
from ottla.store.port import Op


class Draft:
    def __init__(self, state: ControllerState) -> None:
        self.state = state  # everything but the topics is changed by replacing it here
        self.tell = RequestBatch()
        self.writes: list[Op] = []
        self._replies: list[Reply] = []
        self._notes: list[str] = []
        self._topics: dict[str, TopicAssignment] | None = None
        self._fresh: dict[
            str, dict[int, PartitionAssignment]
        ] = {}  # partition maps that are ours to change

    @property
    def topics(self) -> Mapping[str, TopicAssignment]:
        return self.state.topics if self._topics is None else self._topics

    def partition(self, tp: TopicPartition) -> PartitionAssignment:
        return self.topics[tp.topic].partitions[tp.partition]

    def put_topic(self, name: str, topic: TopicAssignment) -> None:
        fresh = dict(topic.partitions)
        self._own()[name] = replace(topic, partitions=fresh)
        self._fresh[name] = fresh

    def drop_topic(self, name: str) -> None:
        del self._own()[name]
        self._fresh.pop(name, None)

    def put(self, tp: TopicPartition, partition: PartitionAssignment) -> None:
        if tp.topic not in self._fresh:
            self.put_topic(tp.topic, self.topics[tp.topic])
        self._fresh[tp.topic][tp.partition] = partition

    def lead(self, tp: TopicPartition, leadership: Leadership) -> None:
        """Write who leads. The version is the one the write will give, or the step will fail."""
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

    def reply(self, ask: int, answer: object) -> None:
        self._replies.append(Reply(ask, answer))

    def note(self, text: str) -> None:
        """Something an operator should find in the log."""
        self._notes.append(text)

    def live_replicas(self, tp: TopicPartition) -> frozenset[BrokerId]:
        """Those that could lead: online, and not on a broker that is shutting down."""
        return frozenset(
            broker
            for broker in self.partition(tp).replicas
            if broker not in self.state.shutting_down and self.state.is_online(broker, tp)
        )

    def step(self) -> Step:
        if self._topics is not None:
            self.state = replace(self.state, topics=self._topics)
        sends = tuple(self.tell.sends(self.state))
        return Step(self.state, tuple(self.writes), sends, tuple(self._replies), tuple(self._notes))

    def _own(self) -> dict[str, TopicAssignment]:
        if self._topics is None:
            self._topics = dict(self.state.topics)
        return self._topics
