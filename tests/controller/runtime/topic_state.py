"""Topics of a control plane in a test: creating them, their leaders, their nodes."""

from __future__ import annotations

from ottla.controller.events import NewTopic
from ottla.controller.topics import Created
from ottla.model.ids import BrokerId, TopicPartition
from ottla.store.port import Node as Stored
from tests.fakes.control_plane import Node

T0 = TopicPartition("t", 0)


async def create(node: Node, name: str, *replicas: int, partitions: int = 1) -> Created:
    chosen = {number: tuple(map(BrokerId, replicas)) for number in range(partitions)}
    created = await node.controller.create_topics([NewTopic(name, assignment=chosen)], 5_000)
    outcome = created[name]
    assert isinstance(outcome, Created), outcome
    return outcome


def leader(node: Node, tp: TopicPartition = T0) -> int | None:
    partition = node.metadata.image.partition(tp)
    return None if partition is None else partition.leader


async def stored(node: Node, path: str) -> Stored:
    stored_node = await node.store.get(path)
    assert stored_node is not None, path
    return stored_node
