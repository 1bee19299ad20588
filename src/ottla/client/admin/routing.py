"""Which broker is responsible for an item: controller, leader, coordinator, a given one, or any.

Owns: one small class for each kind of route, and what to refresh when a route was wrong.
Never: sends the request for the item itself.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from ottla.client.cluster import Cluster, CoordinatorKind, Target, To
from ottla.client.errors import ErrorCode, KafkaError, refusal
from ottla.model.ids import TopicPartition

Item = TypeVar("Item", contravariant=True)


class Route(Protocol[Item]):
    """The broker to send an item to."""

    async def of(self, item: Item) -> To: ...

    async def on_wrong_broker(self, item: Item) -> None:
        """The broker was not responsible: refresh before the next attempt."""

    def is_behind(self, item: Item, failure: KafkaError) -> bool:
        """Whether the broker will be responsible soon, as it knows less than the metadata."""


class AlwaysInformed:
    """A route whose brokers are not behind what the client knows."""

    def is_behind(self, item: object, failure: KafkaError) -> bool:
        return False


class ToTarget(AlwaysInformed):
    """Every item to the same target: the controller, or any broker."""

    def __init__(self, cluster: Cluster, target: Target) -> None:
        self._cluster = cluster
        self._target = target

    async def of(self, item: object) -> To:
        return self._target

    async def on_wrong_broker(self, item: object) -> None:
        await self._cluster.refresh(())


class ToLeader:
    """A partition to its leader; with `exists`, brokers that do not know it are behind."""

    def __init__(self, cluster: Cluster, *, exists: bool = False) -> None:
        self._cluster = cluster
        self._exists = exists

    async def of(self, item: TopicPartition) -> To:
        leader = await self._cluster.leader(item)
        if leader >= 0:
            return leader
        view = self._cluster.metadata
        if view.partition(item) is not None:
            raise refusal(ErrorCode.leader_not_available, f"{item} has no leader")
        code = view.errors.get(item.topic, ErrorCode.unknown_topic_or_partition)
        raise refusal(code, f"unknown topic-partition {item}")

    async def on_wrong_broker(self, item: TopicPartition) -> None:
        await self._cluster.refresh((item.topic,))

    def is_behind(self, item: TopicPartition, failure: KafkaError) -> bool:
        """Of a new topic the leader may hear last."""
        if failure.code is not ErrorCode.unknown_topic_or_partition:
            return False
        return self._exists or self._cluster.metadata.partition(item) is not None


class ToCoordinator(AlwaysInformed):
    """A group or a transactional id to its coordinator."""

    def __init__(self, cluster: Cluster, kind: CoordinatorKind) -> None:
        self._cluster = cluster
        self._kind = kind

    async def of(self, item: str) -> To:
        return await self._cluster.coordinator(self._kind, item)

    async def on_wrong_broker(self, item: str) -> None:
        self._cluster.forget_coordinator(self._kind, item)


class ToBroker(AlwaysInformed):
    """A broker's own settings and directories to that broker."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def of(self, item: int) -> To:
        if item not in self._cluster.metadata.nodes:
            await self._cluster.refresh(())
        if item not in self._cluster.metadata.nodes:
            raise refusal(ErrorCode.broker_id_not_registered, f"no broker {item} in the cluster")
        return item

    async def on_wrong_broker(self, item: int) -> None:
        await self._cluster.refresh(())
