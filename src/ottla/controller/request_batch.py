"""What one event has to say, collected by broker until the event is over.

Owns who hears about which partition. Never decides, never encodes. Requests are rendered from the
state the event ended in, so a partition that moved twice is told once, as it ended, and a broker
that left in the same event is told nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ottla.controller.effects import (
    LeaderAndIsr,
    PartitionLeadership,
    PublishedPartition,
    Send,
    StoppedReplica,
    StopReplica,
    UpdateMetadata,
)
from ottla.controller.state import ControllerState
from ottla.model.ids import NO_EPOCH, BrokerId, LeaderEpoch, TopicPartition

DELETED_EPOCH = LeaderEpoch(-2)
"""In a StopReplica: whatever epoch the replica has, its topic is going."""


class RequestBatch:
    def __init__(self) -> None:
        self._led: dict[BrokerId, dict[TopicPartition, bool]] = {}
        self._stopped: dict[BrokerId, dict[TopicPartition, bool]] = {}
        self._told: dict[BrokerId, dict[TopicPartition, PublishedPartition | None]] = {}
        self._introduced: set[BrokerId] = set()
        self._full: set[BrokerId] = set()

    def leader_and_isr(
        self, brokers: Iterable[BrokerId], tp: TopicPartition, *, is_new: bool = False
    ) -> None:
        """These brokers hold a replica of it and must know who leads."""
        for broker in brokers:
            led = self._led.setdefault(broker, {})
            led[tp] = led.get(tp, False) or is_new

    def stop(self, broker: BrokerId, tp: TopicPartition, *, delete: bool) -> None:
        stopped = self._stopped.setdefault(broker, {})
        stopped[tp] = stopped.get(tp, False) or delete

    def metadata(self, brokers: Iterable[BrokerId], tps: Iterable[TopicPartition]) -> None:
        news = tuple(tps)
        for broker in brokers:
            told = self._told.setdefault(broker, {})
            for tp in news:
                told.setdefault(tp, None)  # what was fixed as deleted stays so

    def deleted(self, brokers: Iterable[BrokerId], gone: Iterable[PublishedPartition]) -> None:
        """These forget the partitions. What they hear is fixed now: the topic will be gone."""
        farewell = {published.tp: published for published in gone}
        for broker in brokers:
            self._told.setdefault(broker, {}).update(farewell)

    def introduce(self, brokers: Iterable[BrokerId]) -> None:
        """These hear who is alive before anything else: LeaderAndIsr names brokers by id."""
        self._introduced.update(brokers)

    def in_full(self, brokers: Iterable[BrokerId]) -> None:
        """What these hear of their replicas in this event is all there is."""
        self._full.update(brokers)

    def sends(self, state: ControllerState) -> Iterator[Send]:
        """Who lives, then who leads, then metadata, then stops: the order brokers need."""
        there = state.brokers.keys()
        if introduced := sorted(self._introduced & there):
            yield UpdateMetadata(tuple(introduced), ())
        for broker in sorted(self._led.keys() & there):
            if led := tuple(_led(state, broker, self._led[broker])):
                yield LeaderAndIsr(broker, led, broker in self._full)
        yield from self._metadata(state)
        for broker in sorted(self._stopped.keys() & there):
            replicas = tuple(_stopped(state, self._stopped[broker]))
            yield StopReplica(broker, replicas)

    def _metadata(self, state: ControllerState) -> Iterator[UpdateMetadata]:
        """Brokers that hear the same share one rendering."""
        groups: dict[frozenset[TopicPartition], list[BrokerId]] = {}
        for broker in sorted(self._told.keys() & state.brokers.keys()):
            groups.setdefault(frozenset(self._told[broker]), []).append(broker)
        for brokers in groups.values():
            told = self._told[brokers[0]]
            if told or not self._introduced.issuperset(brokers):
                partitions = (item or published(state, tp) for tp, item in told.items())
                yield UpdateMetadata(tuple(brokers), tuple(partitions))


def published(
    state: ControllerState, tp: TopicPartition, *, deleted: bool = False
) -> PublishedPartition:
    topic = state.topics[tp.topic]
    partition = topic.partitions[tp.partition]
    offline = tuple(broker for broker in partition.replicas if not state.is_online(broker, tp))
    return PublishedPartition(tp, topic.id, partition, offline, deleted)


def _led(
    state: ControllerState, broker: BrokerId, led: Mapping[TopicPartition, bool]
) -> Iterator[PartitionLeadership]:
    for tp, is_new in led.items():
        topic = state.topics[tp.topic]
        partition = topic.partitions[tp.partition]
        if broker in partition.replicas:  # one that just lost its replica hears a StopReplica
            yield PartitionLeadership(tp, topic.id, partition, is_new)


def _stopped(
    state: ControllerState, stopped: Mapping[TopicPartition, bool]
) -> Iterator[StoppedReplica]:
    for tp, delete in stopped.items():
        if tp.topic in state.deletions:
            epoch = DELETED_EPOCH
        else:
            leadership = state.topics[tp.topic].partitions[tp.partition].leadership
            epoch = NO_EPOCH if leadership is None else leadership.leader_epoch
        yield StoppedReplica(tp, epoch, delete)
