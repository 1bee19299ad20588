"""The controller's writes, as operations on the store.

Owns which nodes make up a topic, and the order in which they are created and deleted. Never writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.controller.state import Leadership, TopicAssignment
from ottla.model.ids import BrokerId, TopicPartition
from ottla.shared_state.change_notifications import config_change_notification
from ottla.store import paths
from ottla.store.nodes import ConfigNode, LogDirsNode, StateNode, TopicNode
from ottla.store.port import Create, Delete, Op, Set


def create_topic(name: str, topic: TopicAssignment, config: Mapping[str, str]) -> list[Op]:
    """With its settings, and a notification for brokers that have no replica of it."""
    ops: list[Op] = [
        Create(paths.topic_config(name), ConfigNode(config).encode()),
        Create(paths.topic(name), _node(topic).encode()),
        Create(paths.partitions(name)),
    ]
    if config:
        ops.append(config_change_notification(f"topics/{name}"))
    return ops


def create_partitions_node(name: str) -> Op:
    """The parent of the partition states: tools that write a topic may omit it."""
    return Create(paths.partitions(name))


def set_topic(name: str, topic: TopicAssignment, version: int) -> Op:
    return Set(paths.topic(name), _node(topic).encode(), version)


def delete_topic(name: str, topic: TopicAssignment) -> list[Op]:
    """Children before parents; the deletion request last, so that it can be resumed."""
    ops: list[Op] = []
    for number, partition in topic.partitions.items():
        tp = TopicPartition(name, number)
        if partition.leadership is not None:
            ops += [Delete(paths.partition_state(tp)), Delete(paths.partition(tp))]
    ops += [Delete(paths.partitions(name))]
    return [
        *ops,
        Delete(paths.topic(name)),
        Delete(paths.topic_config(name)),
        Delete(paths.delete_topic(name)),
    ]


def create_state(tp: TopicPartition, leadership: Leadership) -> list[Op]:
    return [
        Create(paths.partition(tp)),
        Create(paths.partition_state(tp), _state(leadership).encode()),
    ]


def set_state(tp: TopicPartition, leadership: Leadership, version: int) -> Op:
    return Set(paths.partition_state(tp), _state(leadership).encode(), version)


def set_log_dirs(broker: BrokerId, log_dirs: LogDirsNode) -> Op:
    return Set(paths.log_dirs(broker), log_dirs.encode())


def create_deletion(name: str) -> Op:
    return Create(paths.delete_topic(name))


def delete_deletion(name: str) -> Op:
    return Delete(paths.delete_topic(name))


def delete_preferred_election() -> Op:
    return Delete(paths.PREFERRED_ELECTION)


def delete_reassignment() -> Op:
    return Delete(paths.REASSIGN_PARTITIONS)


def delete_all(nodes: Iterable[str]) -> list[Op]:
    return [Delete(path) for path in nodes]


def _node(topic: TopicAssignment) -> TopicNode:
    moving = {n: p for n, p in topic.partitions.items() if p.is_moving}
    return TopicNode(
        topic.id,
        {number: partition.replicas for number, partition in topic.partitions.items()},
        {number: partition.adding for number, partition in moving.items() if partition.adding},
        {number: partition.removing for number, partition in moving.items() if partition.removing},
    )


def _state(leadership: Leadership) -> StateNode:
    return StateNode(
        leadership.leader, leadership.leader_epoch, leadership.isr, leadership.controller_epoch
    )
