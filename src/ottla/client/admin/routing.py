"""Which broker answers for an item: the controller, a leader, a coordinator, a named one, any.

Owns: the question, one small class for each answer, and what to do when the answer was wrong.
Never: asks for the item itself.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from ottla.client.cluster import Cluster, CoordinatorKind, Target, To
from ottla.client.errors import ErrorCode, refusal
from ottla.model.ids import TopicPartition

Item = TypeVar("Item", contravariant=True)


class Route(Protocol[Item]):
    """Where an item is asked for."""

    async def of(self, item: Item) -> To: ...

    async def mistaken(self, item: Item) -> None:
        """It was not there after all: look again before the next try."""


class ToTarget:
    """Everything at one: the controller, or any broker."""

    def __init__(self, cluster: Cluster, target: Target) -> None:
        self._cluster = cluster
        self._target = target

    async def of(self, item: object) -> To:
        return self._target

    async def mistaken(self, item: object) -> None:
        await self._cluster.refresh(())


class ToLeader:
    """A partition at its leader."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def of(self, item: TopicPartition) -> To:
        leader = await self._cluster.leader(item)
        if leader >= 0:
            return leader
        view = self._cluster.metadata
        if view.partition(item) is not None:
            raise refusal(ErrorCode.leader_not_available, f"{item} has no leader")
        code = view.errors.get(item.topic, ErrorCode.unknown_topic_or_partition)
        raise refusal(code, f"there is no partition {item.partition} of a topic {item.topic}")

    async def mistaken(self, item: TopicPartition) -> None:
        await self._cluster.refresh((item.topic,))


class ToCoordinator:
    """A group or a transactional id at its coordinator."""

    def __init__(self, cluster: Cluster, kind: CoordinatorKind) -> None:
        self._cluster = cluster
        self._kind = kind

    async def of(self, item: str) -> To:
        return await self._cluster.coordinator(self._kind, item)

    async def mistaken(self, item: str) -> None:
        self._cluster.forget_coordinator(self._kind, item)


class ToBroker:
    """A broker's own affairs at that broker."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def of(self, item: int) -> To:
        if item not in self._cluster.metadata.nodes:
            await self._cluster.refresh(())
        if item not in self._cluster.metadata.nodes:
            raise refusal(ErrorCode.broker_id_not_registered, f"there is no broker {item}")
        return item

    async def mistaken(self, item: int) -> None:
        await self._cluster.refresh(())
