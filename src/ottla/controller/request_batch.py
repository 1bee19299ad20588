"""The requests of one event, collected by broker until the event has been handled.

Owns which broker gets which partition. Never decides, never encodes. Requests are built from the
final state of the event, so a partition that changed twice is sent once, and a broker that left in
the same event gets nothing.
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
from ottla.model.ids import DELETED_EPOCH, NO_EPOCH, BrokerId, TopicPartition


class RequestBatch:
    def __init__(self) -> None:
        self._led: dict[BrokerId, dict[TopicPartition, bool]] = {}
        self._stopped: dict[BrokerId, dict[TopicPartition, bool]] = {}
        self._metadata_updates: dict[BrokerId, dict[TopicPartition, PublishedPartition | None]] = {}
        self._live_brokers_first: set[BrokerId] = set()
        self._full: set[BrokerId] = set()
        self._full_metadata: set[BrokerId] = set()

    def leader_and_isr(
        self, brokers: Iterable[BrokerId], tp: TopicPartition, *, is_new: bool = False
    ) -> None:
        """Send these brokers, which have a replica, the leadership of the partition."""
        for broker in brokers:
            led = self._led.setdefault(broker, {})
            led[tp] = led.get(tp, False) or is_new

    def stop(self, broker: BrokerId, tp: TopicPartition, *, delete: bool) -> None:
        stopped = self._stopped.setdefault(broker, {})
        stopped[tp] = stopped.get(tp, False) or delete

    def follow_instead(self, broker: BrokerId, tp: TopicPartition) -> None:
        """A replica that is not served there need not be stopped; it may follow again."""
        self._stopped.get(broker, {}).pop(tp, None)
        self.leader_and_isr((broker,), tp)

    def metadata(self, brokers: Iterable[BrokerId], tps: Iterable[TopicPartition]) -> None:
        partitions = tuple(tps)
        for broker in brokers:
            updates = self._metadata_updates.setdefault(broker, {})
            for tp in partitions:
                updates.setdefault(tp, None)  # an update marked as deleted stays so

    def full_metadata(self, brokers: Iterable[BrokerId], tps: Iterable[TopicPartition]) -> None:
        """Send these brokers all partitions there are."""
        receivers = tuple(brokers)
        self.metadata(receivers, tps)
        self._full_metadata.update(receivers)

    def deleted(
        self, brokers: Iterable[BrokerId], partitions: Iterable[PublishedPartition]
    ) -> None:
        """Tell brokers to drop the partitions; built now, because the topic leaves the state."""
        updates = {published.tp: published for published in partitions}
        for broker in brokers:
            self._metadata_updates.setdefault(broker, {}).update(updates)

    def send_live_brokers_first(self, brokers: Iterable[BrokerId]) -> None:
        """Send these the live brokers before anything else: LeaderAndIsr has only broker ids."""
        self._live_brokers_first.update(brokers)

    def mark_full(self, brokers: Iterable[BrokerId]) -> None:
        """The LeaderAndIsr for these brokers names all their replicas."""
        self._full.update(brokers)

    def sends(self, state: ControllerState) -> Iterator[Send]:
        """Live brokers, LeaderAndIsr, metadata, StopReplica: the order that brokers need."""
        live = state.brokers.keys()
        if brokers_first := sorted(self._live_brokers_first & live):
            yield UpdateMetadata(tuple(brokers_first), ())
        for broker in sorted(self._led.keys() & live):
            if led := tuple(_led_partitions(state, broker, self._led[broker])):
                yield LeaderAndIsr(broker, led, broker in self._full)
        yield from self._metadata(state)
        for broker in sorted(self._stopped.keys() & live):
            if replicas := tuple(_stopped_replicas(state, self._stopped[broker])):
                yield StopReplica(broker, replicas)

    def _metadata(self, state: ControllerState) -> Iterator[UpdateMetadata]:
        """Brokers with the same updates share one request."""
        groups: dict[tuple[frozenset[TopicPartition], bool], list[BrokerId]] = {}
        for broker in sorted(self._metadata_updates.keys() & state.brokers.keys()):
            updated = frozenset(self._metadata_updates[broker])
            groups.setdefault((updated, broker in self._full_metadata), []).append(broker)
        for (_, full), brokers in groups.items():
            updates = self._metadata_updates[brokers[0]]
            if updates or full or not self._live_brokers_first.issuperset(brokers):
                partitions = (item or published(state, tp) for tp, item in updates.items())
                yield UpdateMetadata(tuple(brokers), tuple(partitions), full)


def published(
    state: ControllerState, tp: TopicPartition, *, deleted: bool = False
) -> PublishedPartition:
    topic = state.topics[tp.topic]
    partition = topic.partitions[tp.partition]
    offline = tuple(broker for broker in partition.replicas if not state.is_online(broker, tp))
    return PublishedPartition(tp, topic.id, partition, offline, deleted)


def _led_partitions(
    state: ControllerState, broker: BrokerId, led: Mapping[TopicPartition, bool]
) -> Iterator[PartitionLeadership]:
    for tp, is_new in led.items():
        topic = state.topics[tp.topic]
        partition = topic.partitions[tp.partition]
        if broker in partition.replicas:  # otherwise it gets a StopReplica
            yield PartitionLeadership(tp, topic.id, partition, is_new)


def _stopped_replicas(
    state: ControllerState, stopped: Mapping[TopicPartition, bool]
) -> Iterator[StoppedReplica]:
    for tp, delete in stopped.items():
        if tp.topic in state.deletions:
            epoch = DELETED_EPOCH
        else:
            leadership = state.topics[tp.topic].partitions[tp.partition].leadership
            epoch = NO_EPOCH if leadership is None else leadership.leader_epoch
        yield StoppedReplica(tp, epoch, delete)
