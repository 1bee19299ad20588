"""The cluster metadata of a client.

Owns: nodes, topics, partitions and their leaders, all immutable; each response makes a new view.
Never sends a request.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_TOPIC_ID, TopicId, TopicPartition
from ottla.protocol.schema import KioMessage, KioStruct

NOBODY = -1


class Node(NamedTuple):
    """A broker and where it listens."""

    id: int
    host: str
    port: int
    rack: str | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port}" + (f" (broker {self.id})" if self.id >= 0 else "")


class PartitionView(NamedTuple):
    """One partition: its leader and its replicas."""

    index: int  # type: ignore[assignment]  # Kafka's word for it
    leader: int  # -1: none at present
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]
    error: ErrorCode = ErrorCode.none


class TopicView(NamedTuple):
    """One topic and all of its partitions, by index."""

    name: str
    id: TopicId
    internal: bool
    partitions: tuple[PartitionView, ...]
    operations: int = -(2**31)  # bits of authorized operations; this number: not requested

    @property
    def available(self) -> tuple[int, ...]:
        """The partitions that have a leader."""
        return tuple(partition.index for partition in self.partitions if partition.leader >= 0)


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Everything a client knows of a cluster."""

    cluster_id: str | None = None
    controller_id: int = NOBODY
    nodes: Mapping[int, Node] = field(default_factory=dict)
    topics: Mapping[str, TopicView] = field(default_factory=dict)
    errors: Mapping[str, ErrorCode] = field(default_factory=dict)
    """Errors of requested topics that are not among `topics`."""

    def partition(self, tp: TopicPartition) -> PartitionView | None:
        topic = self.topics.get(tp.topic)
        if topic is None or not 0 <= tp.partition < len(topic.partitions):
            return None
        return topic.partitions[tp.partition]

    def leader(self, tp: TopicPartition) -> int:
        """The leader of `tp`; -1 if it has none or is unknown."""
        partition = self.partition(tp)
        return NOBODY if partition is None else partition.leader

    def leader_epoch(self, tp: TopicPartition) -> int:
        """The epoch of the leader of `tp`; -1 if it is unknown."""
        partition = self.partition(tp)
        return -1 if partition is None else partition.leader_epoch

    def topics_led_by(self, node: int) -> set[str]:
        return {
            name
            for name, topic in self.topics.items()
            if any(partition.leader == node for partition in topic.partitions)
        }

    def with_node(self, node: Node) -> ClusterView:
        """The same view with a broker learned from another response."""
        if self.nodes.get(node.id, node)[:3] == node[:3] and node.id in self.nodes:
            return self
        return replace(self, nodes={**self.nodes, node.id: node})

    def with_leader(self, tp: TopicPartition, leader: int, epoch: int) -> ClusterView:
        """The same view with a leader named by a former leader; an older epoch is ignored."""
        partition = self.partition(tp)
        if partition is None or leader not in self.nodes or epoch <= partition.leader_epoch:
            return self
        topic = self.topics[tp.topic]
        partitions = list(topic.partitions)
        partitions[tp.partition] = partition._replace(leader=leader, leader_epoch=epoch)
        changed = topic._replace(partitions=tuple(partitions))
        return replace(self, topics={**self.topics, tp.topic: changed})

    def without(self, topics: Collection[str]) -> ClusterView:
        topics_left = {name: topic for name, topic in self.topics.items() if name not in topics}
        return replace(self, topics=topics_left)

    def with_metadata(self, reply: KioMessage, requested: Collection[str] | None) -> ClusterView:
        """The view after a Metadata response to a request for `requested` (None: for all)."""
        nodes = {
            broker.node_id: Node(broker.node_id, broker.host, broker.port, broker.rack)
            for broker in reply.brokers
        }
        topics = {} if requested is None else dict(self.topics)
        errors = {} if requested is None else dict(self.errors)
        for row in reply.topics:
            name = row.name
            if name is None:
                continue  # requested by an id that the broker does not know
            errors.pop(name, None)
            if row.error_code and not row.partitions:
                errors[name] = row.error_code
                topics.pop(name, None)
            else:
                topics[name] = _topic(row, self.topics.get(name))
        return ClusterView(reply.cluster_id, reply.controller_id, nodes, topics, errors)


def _topic(row: KioStruct, before: TopicView | None) -> TopicView:
    topic_id = row.topic_id or NO_TOPIC_ID
    partitions = sorted(map(_partition, row.partitions), key=lambda partition: partition.index)
    if before is not None and before.id == topic_id and topic_id != NO_TOPIC_ID:
        # Stale metadata of a lagging broker must not bring back a replaced leader.
        for index, (new, old) in enumerate(zip(partitions, before.partitions, strict=False)):
            if 0 <= new.leader_epoch < old.leader_epoch:
                partitions[index] = old
    return TopicView(
        row.name, topic_id, row.is_internal, tuple(partitions), row.topic_authorized_operations
    )


def _partition(row: KioStruct) -> PartitionView:
    return PartitionView(
        row.partition_index,
        row.leader_id,
        row.leader_epoch,
        tuple(row.replica_nodes),
        tuple(row.isr_nodes),
        tuple(row.offline_replicas),
        row.error_code,
    )
