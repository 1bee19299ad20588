"""One immutable snapshot of the cluster metadata.

Owns: live brokers, topics, and the leader of each partition. `changed_by` returns the next image,
which shares everything that did not change, so an update of one topic among thousands costs one
shallow copy. Never sends or receives; a reader uses one image for a whole request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
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
"""The leader in updates that delete a partition."""

_NO_PARTITIONS: Final[Mapping[int, PartitionMetadata]] = MappingProxyType({})


class Endpoint(NamedTuple):
    """The address of one listener of a broker."""

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


def node_of(broker: BrokerMetadata, listener: str) -> Node | None:
    """The broker as clients of that listener see it, if it has that listener."""
    endpoint = broker.endpoints.get(listener)
    if endpoint is None:
        return None
    return Node(broker.id, endpoint.host, endpoint.port, broker.rack)


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
    """The content of one UpdateMetadata request."""

    controller_id: BrokerId
    controller_epoch: ControllerEpoch
    brokers: tuple[BrokerMetadata, ...]
    partitions: Sequence[tuple[TopicPartition, TopicId, PartitionMetadata]] = ()
    requests_left: int | None = None
    """In a full update, how many more requests belong to it; None for a change."""


class Image(NamedTuple):
    controller_id: BrokerId | None = None
    controller_epoch: ControllerEpoch = ControllerEpoch(0)
    brokers: Mapping[BrokerId, BrokerMetadata] = MappingProxyType({})
    topics: Mapping[str, TopicMetadata] = MappingProxyType({})
    names: Mapping[TopicId, str] = MappingProxyType({})
    is_whole: bool = False
    """Whether a full update of the controller with this epoch has been received."""

    def partition(self, tp: TopicPartition) -> PartitionMetadata | None:
        topic = self.topics.get(tp.topic)
        return topic.partitions.get(tp.partition) if topic else None

    def partitions(self) -> Iterator[TopicPartition]:
        for name, topic in self.topics.items():
            for index in topic.partitions:
                yield TopicPartition(name, index)

    def node(self, broker: BrokerId, listener: str) -> Node | None:
        """The broker, if it is alive and has that listener."""
        registered = self.brokers.get(broker)
        return None if registered is None else node_of(registered, listener)

    def nodes(self, listener: str) -> list[Node]:
        """Every live broker that has that listener."""
        nodes = (self.node(broker, listener) for broker in self.brokers)
        return [node for node in nodes if node is not None]

    def replica_nodes(self, tp: TopicPartition, listener: str) -> dict[BrokerId, Node]:
        """The nodes of the live replicas of a partition."""
        partition = self.partition(tp)
        replicas = partition.replicas if partition else ()
        nodes = ((broker, self.node(broker, listener)) for broker in replicas)
        return {broker: node for broker, node in nodes if node is not None}

    def is_elsewhere(self, broker: BrokerId, tp: TopicPartition, topic_id: TopicId | None) -> bool:
        """Whether other brokers have all replicas of a partition now.

        False for an unknown topic: the metadata store may have lost it. Without an id, the topic of
        that name is meant.
        """
        topic = self.topics.get(tp.topic)
        if topic is None or topic_id not in (None, NO_TOPIC_ID, topic.id):
            return False
        partition = topic.partitions.get(tp.partition)
        return partition is not None and broker not in partition.replicas

    def changed_by(self, update: Update) -> tuple[Image, list[TopicPartition]]:
        """The next image, and the partitions that the update deletes."""
        controller = update.controller_id if update.controller_id >= 0 else None
        image = self._replace(
            controller_id=controller,
            controller_epoch=update.controller_epoch,
            brokers={broker.id: broker for broker in update.brokers},
            is_whole=self.is_whole and update.controller_epoch == self.controller_epoch,
        )
        if not update.partitions:
            return image, []
        topics, deleted = _changed_topics(self.topics, update)
        return image._replace(topics=topics, names=self._names(topics, update)), deleted

    def without_topics(self, dropped: Set[str]) -> tuple[Image, list[TopicPartition]]:
        """The image without these topics, and their partitions."""
        if not dropped:
            return self, []
        gone = [
            TopicPartition(name, number)
            for name in sorted(dropped)
            for number in sorted(self.topics[name].partitions)
        ]
        topics = {name: topic for name, topic in self.topics.items() if name not in dropped}
        names = {id: name for id, name in self.names.items() if name not in dropped}
        return self._replace(topics=topics, names=names), gone

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


def _changed_topics(
    before: Mapping[str, TopicMetadata], update: Update
) -> tuple[dict[str, TopicMetadata], list[TopicPartition]]:
    topics = dict(before)
    fresh: dict[str, dict[int, PartitionMetadata]] = {}
    deleted: list[TopicPartition] = []
    for tp, topic_id, partition in update.partitions:
        if tp.topic not in fresh:
            topic = _topic_with_id(topics.get(tp.topic), topic_id)
            fresh[tp.topic] = dict(topic.partitions)
            topics[tp.topic] = TopicMetadata(topic.id, fresh[tp.topic])
        if partition.leader != DELETED:
            fresh[tp.topic][tp.partition] = partition
        elif fresh[tp.topic].pop(tp.partition, None) is not None:
            deleted.append(tp)
    for name, partitions in fresh.items():
        if not partitions:
            del topics[name]
    return topics, deleted


def _topic_with_id(topic: TopicMetadata | None, topic_id: TopicId) -> TopicMetadata:
    """The topic, or an empty one if the update is about a newer topic of the same name."""
    if topic is None or topic_id not in (NO_TOPIC_ID, topic.id):
        return TopicMetadata(topic_id, _NO_PARTITIONS)
    return topic


def _id(topics: Mapping[str, TopicMetadata], name: str) -> TopicId:
    return topics[name].id if name in topics else NO_TOPIC_ID
