"""The cluster as a client last heard of it.

Owns: nodes, topics, partitions and their leaders, all frozen; a reply makes another view. Never
asks anybody.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_TOPIC_ID, TopicId, TopicPartition

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
    """One partition: who leads it and who holds copies."""

    index: int  # type: ignore[assignment]  # Kafka's word for it
    leader: int  # -1: nobody at present
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]
    error: ErrorCode = ErrorCode.none


class TopicView(NamedTuple):
    """One topic and all of its partitions, by number."""

    name: str
    id: TopicId
    internal: bool
    partitions: tuple[PartitionView, ...]
    operations: int = -(2**31)  # bits of what we may do; this number: not asked

    @property
    def available(self) -> tuple[int, ...]:
        """The partitions that have a leader."""
        return tuple(each.index for each in self.partitions if each.leader >= 0)


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Everything a client knows of a cluster."""

    cluster_id: str | None = None
    controller_id: int = NOBODY
    nodes: Mapping[int, Node] = field(default_factory=dict)
    topics: Mapping[str, TopicView] = field(default_factory=dict)
    errors: Mapping[str, ErrorCode] = field(default_factory=dict)
    """Why topics that were asked for are not among `topics`."""

    def partition(self, tp: TopicPartition) -> PartitionView | None:
        topic = self.topics.get(tp.topic)
        if topic is None or not 0 <= tp.partition < len(topic.partitions):
            return None
        return topic.partitions[tp.partition]

    def leader(self, tp: TopicPartition) -> int:
        """The broker that leads `tp`; -1 when nobody does, or nobody said."""
        partition = self.partition(tp)
        return NOBODY if partition is None else partition.leader

    def with_node(self, node: Node) -> ClusterView:
        """The same with a broker we heard of elsewhere."""
        if self.nodes.get(node.id, node)[:3] == node[:3] and node.id in self.nodes:
            return self
        return replace(self, nodes={**self.nodes, node.id: node})

    def with_leader(self, tp: TopicPartition, leader: int, epoch: int) -> ClusterView:
        """The same with a leader told by a broker that is it no more; older news is no news."""
        known = self.partition(tp)
        if known is None or leader not in self.nodes or epoch <= known.leader_epoch:
            return self
        topic = self.topics[tp.topic]
        partitions = list(topic.partitions)
        partitions[tp.partition] = known._replace(leader=leader, leader_epoch=epoch)
        changed = topic._replace(partitions=tuple(partitions))
        return replace(self, topics={**self.topics, tp.topic: changed})

    def without(self, topics: Collection[str]) -> ClusterView:
        kept = {name: topic for name, topic in self.topics.items() if name not in topics}
        return replace(self, topics=kept)

    def learned(self, reply: Any, asked: Collection[str] | None) -> ClusterView:
        """The view after a Metadata reply to a question about `asked` (None: about all)."""
        nodes = {
            each.node_id: Node(each.node_id, each.host, each.port, each.rack)
            for each in reply.brokers
        }
        topics = {} if asked is None else dict(self.topics)
        errors = {} if asked is None else dict(self.errors)
        for told in reply.topics:
            name = told.name
            if name is None:
                continue  # asked by an id that the broker does not know
            errors.pop(name, None)
            if told.error_code and not told.partitions:
                errors[name] = told.error_code
                topics.pop(name, None)
            else:
                topics[name] = _topic(told, self.topics.get(name))
        return ClusterView(reply.cluster_id, reply.controller_id, nodes, topics, errors)


def _topic(told: Any, known: TopicView | None) -> TopicView:
    topic_id = told.topic_id or NO_TOPIC_ID
    partitions = sorted((_partition(each) for each in told.partitions), key=lambda each: each.index)
    if known is not None and known.id == topic_id and topic_id != NO_TOPIC_ID:
        # A broker that lags behind must not lead us back to a leader that has been replaced.
        for at, (new, old) in enumerate(zip(partitions, known.partitions, strict=False)):
            if 0 <= new.leader_epoch < old.leader_epoch:
                partitions[at] = old
    return TopicView(
        told.name, topic_id, told.is_internal, tuple(partitions), told.topic_authorized_operations
    )


def _partition(told: Any) -> PartitionView:
    return PartitionView(
        told.partition_index,
        told.leader_id,
        told.leader_epoch,
        tuple(told.replica_nodes),
        tuple(told.isr_nodes),
        tuple(told.offline_replicas),
        told.error_code,
    )
