"""One immutable picture of the cluster.

Owns: who is alive, which topics exist, who leads each partition. `changed_by` makes the next
picture and shares with it whatever did not change, so that one topic among thousands costs one
shallow copy. Never talks to anybody; a reader keeps one image for a whole request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from ottla.model.ids import (
    NO_TOPIC_ID,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    TopicId,
    TopicPartition,
)

DELETED: Final = BrokerId(-2)
"""Leader of a partition that is being deleted."""

_NOTHING: Final[Mapping[int, PartitionMetadata]] = MappingProxyType({})


class Endpoint(NamedTuple):
    """Where a broker can be reached through one listener."""

    host: str
    port: int
    protocol: str = "PLAINTEXT"


class BrokerMetadata(NamedTuple):
    id: BrokerId
    endpoints: Mapping[str, Endpoint]
    """By listener name."""
    rack: str | None = None


class Node(NamedTuple):
    """A broker as the clients of one listener see it."""

    id: BrokerId
    host: str
    port: int
    rack: str | None


class PartitionMetadata(NamedTuple):
    leader: BrokerId
    leader_epoch: LeaderEpoch
    isr: tuple[BrokerId, ...]
    replicas: tuple[BrokerId, ...]
    offline: tuple[BrokerId, ...] = ()
    version: int = 0
    controller_epoch: ControllerEpoch = ControllerEpoch(0)


class TopicMetadata(NamedTuple):
    id: TopicId
    partitions: Mapping[int, PartitionMetadata]


class Update(NamedTuple):
    """What one UpdateMetadata says."""

    controller_id: BrokerId
    controller_epoch: ControllerEpoch
    brokers: tuple[BrokerMetadata, ...]
    partitions: Sequence[tuple[TopicPartition, TopicId, PartitionMetadata]] = ()


class Image(NamedTuple):
    controller_id: BrokerId | None = None
    controller_epoch: ControllerEpoch = ControllerEpoch(0)
    brokers: Mapping[BrokerId, BrokerMetadata] = MappingProxyType({})
    topics: Mapping[str, TopicMetadata] = MappingProxyType({})
    names: Mapping[TopicId, str] = MappingProxyType({})

    def partition(self, tp: TopicPartition) -> PartitionMetadata | None:
        topic = self.topics.get(tp.topic)
        return topic.partitions.get(tp.partition) if topic else None

    def partitions(self) -> Iterator[TopicPartition]:
        for name, topic in self.topics.items():
            for index in topic.partitions:
                yield TopicPartition(name, index)

    def node(self, broker: BrokerId, listener: str) -> Node | None:
        """The broker, if it is alive and has that listener."""
        known = self.brokers.get(broker)
        endpoint = known.endpoints.get(listener) if known else None
        if known is None or endpoint is None:
            return None
        return Node(broker, endpoint.host, endpoint.port, known.rack)

    def nodes(self, listener: str) -> list[Node]:
        """Every live broker that has that listener."""
        found = (self.node(broker, listener) for broker in self.brokers)
        return [node for node in found if node is not None]

    def replica_nodes(self, tp: TopicPartition, listener: str) -> dict[BrokerId, Node]:
        """Where the live replicas of a partition can be reached."""
        partition = self.partition(tp)
        replicas = partition.replicas if partition else ()
        found = ((broker, self.node(broker, listener)) for broker in replicas)
        return {broker: node for broker, node in found if node is not None}

    def changed_by(self, update: Update) -> tuple[Image, list[TopicPartition]]:
        """The next image, and the partitions that are gone from it."""
        controller = update.controller_id if update.controller_id >= 0 else None
        image = self._replace(
            controller_id=controller,
            controller_epoch=update.controller_epoch,
            brokers={broker.id: broker for broker in update.brokers},
        )
        if not update.partitions:
            return image, []
        topics, deleted = _changed(self.topics, update)
        return image._replace(topics=topics, names=self._names(topics, update)), deleted

    def _names(self, topics: Mapping[str, TopicMetadata], update: Update) -> Mapping[TopicId, str]:
        touched = {tp.topic for tp, _, _ in update.partitions}
        if all(_id(self.topics, name) == _id(topics, name) for name in touched):
            return self.names
        names = dict(self.names)
        for name in sorted(touched):
            names.pop(_id(self.topics, name), None)
            if name in topics and topics[name].id != NO_TOPIC_ID:
                names[topics[name].id] = name
        return names


def _changed(
    before: Mapping[str, TopicMetadata], update: Update
) -> tuple[dict[str, TopicMetadata], list[TopicPartition]]:
    topics = dict(before)
    fresh: dict[str, dict[int, PartitionMetadata]] = {}
    deleted: list[TopicPartition] = []
    for tp, topic_id, partition in update.partitions:
        if tp.topic not in fresh:
            known = _same(topics.get(tp.topic), topic_id)
            fresh[tp.topic] = dict(known.partitions)
            topics[tp.topic] = TopicMetadata(known.id, fresh[tp.topic])
        if partition.leader != DELETED:
            fresh[tp.topic][tp.partition] = partition
        elif fresh[tp.topic].pop(tp.partition, None) is not None:
            deleted.append(tp)
    for name, partitions in fresh.items():
        if not partitions:
            del topics[name]
    return topics, deleted


def _same(known: TopicMetadata | None, topic_id: TopicId) -> TopicMetadata:
    """The topic as known, unless the update speaks of a later one of the same name."""
    if known is None or topic_id not in (NO_TOPIC_ID, known.id):
        return TopicMetadata(topic_id, _NOTHING)
    return known


def _id(topics: Mapping[str, TopicMetadata], name: str) -> TopicId:
    return topics[name].id if name in topics else NO_TOPIC_ID
