"""Shared by the clients: metadata, routing, one request to one broker.

Owns: the metadata, the connections and the coordinators of one client. Never retries a request
(`retry.retrying` does), except look-ups of metadata and coordinators.

    async with Cluster(config, clock, dice) as cluster:
        topic = await cluster.topic("orders", timeout_ms=5_000)
        reply = await cluster.ask(Target.ANY, 18, {...})
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from random import Random
from types import TracebackType
from typing import Final, Self, TypeAlias

from ottla.client.broker_connection import BrokerConnection, Versions
from ottla.client.cluster_view import ClusterView, TopicView
from ottla.client.connections import ConnectionLane, Connections
from ottla.client.coordinators import CoordinatorKind, Coordinators
from ottla.client.errors import refusal
from ottla.client.metadata import Metadata
from ottla.client.retry import Backoff, Deadline, retrying
from ottla.config.client import ClientConfig
from ottla.model.clock import Clock
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol.records.compression import Bytes
from ottla.protocol.schema import KioMessage
from ottla.protocol.wire import Fields

__all__ = ["Cluster", "ConnectionLane", "CoordinatorKind", "Target"]

LOOKUP_TIMEOUT_MS: Final = 60_000


class Target(Enum):
    """Brokers named by their role."""

    ANY = "any"  # the least loaded one
    CONTROLLER = "controller"


To: TypeAlias = int | Target


class Cluster:
    """One client's access to a cluster. For one event loop; not to be shared between threads."""

    def __init__(
        self, config: ClientConfig, clock: Clock, dice: Random, *, auto_create: bool = False
    ) -> None:
        self.config = config
        self.clock = clock
        self.backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms, dice)
        self._links = Connections(config, clock, dice)
        self._metadata = Metadata(config, clock, self._links, auto_create=auto_create)
        self._coordinators = Coordinators(self._ask_any_broker)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._links.close()

    @property
    def metadata(self) -> ClusterView:
        """The latest metadata, immutable: read it once and work from that."""
        return self._metadata.view

    @metadata.setter
    def metadata(self, view: ClusterView) -> None:
        self._metadata.view = view

    @property
    def is_due(self) -> bool:
        """The metadata is older than `metadata.max.age.ms`."""
        return self._metadata.is_due

    async def refresh(self, topics: Iterable[str] | None = None) -> ClusterView:
        """Request the metadata of these topics, or of all; ConnectionError if no broker answers.

        At most every `retry.backoff.ms`; concurrent callers share one request.
        """
        return await self._metadata.refresh(topics)

    async def topic(self, name: str, *, timeout_ms: int) -> TopicView:
        """A topic with all partitions, as soon as it is known.

        Raises TimeoutError if it does not appear in time, KafkaError if it cannot be read.
        """

        # Error codes here are the topic's in the metadata: unknown, or without a leader yet.
        async def look() -> TopicView:
            topic = self.metadata.topics.get(name)
            if topic is None:
                view = await self.refresh([name])
                topic = view.topics.get(name)
                if topic is None:
                    code = view.errors.get(name, ErrorCode.unknown_topic_or_partition)
                    raise refusal(code, f"topic {name}: {code.name}")
            return topic

        return await retrying(self, look, Deadline(self.clock, timeout_ms), [name])

    async def leader(self, tp: TopicPartition) -> int:
        """The leader of `tp`, refreshing the metadata if it is unknown; -1: there is none."""
        leader = self.metadata.leader(tp)
        return leader if leader >= 0 else (await self.refresh([tp.topic])).leader(tp)

    async def versions(self, node: To, lane: ConnectionLane = ConnectionLane.DATA) -> Versions:
        """The API versions of a broker; connects if there is no connection."""
        return await (await self._link(node, lane)).ready()

    async def version(
        self,
        node: To,
        key: int,
        *,
        at_most: int | None = None,
        lane: ConnectionLane = ConnectionLane.DATA,
    ) -> int:
        """The newest version of an API that both sides support, or UnsupportedVersion."""
        return (await self.versions(node, lane)).pick(key, at_most)

    async def features(self, node: To = Target.ANY) -> Mapping[str, int]:
        """The finalized level of each feature."""
        return (await self.versions(node)).finalized

    async def ask(
        self,
        node: To,
        key: int,
        fields: Fields,
        *,
        timeout_ms: int | None = None,
        at_most: int | None = None,
        lane: ConnectionLane = ConnectionLane.DATA,
    ) -> KioMessage:
        """Send one request, once; the response as kio's class, errors included."""
        link = await self._link(node, lane)
        version = (await link.ready()).pick(key, at_most)
        return await link.ask(key, version, fields, self._timeout_ms(timeout_ms))

    async def ask_bytes(
        self,
        node: int,
        key: int,
        version: int,
        body: Sequence[Bytes],
        *,
        timeout_ms: int | None = None,
        lane: ConnectionLane = ConnectionLane.DATA,
    ) -> memoryview:
        """Send an encoded request; the frame of its response, correlation id first."""
        link = await self._link(node, lane)
        return await link.ask_bytes(key, version, body, self._timeout_ms(timeout_ms))

    def link(
        self, node: int, lane: ConnectionLane = ConnectionLane.DATA
    ) -> BrokerConnection | None:
        """The connection object of a broker, open or not; None if the metadata lacks the broker."""
        address = self.metadata.nodes.get(node)
        return None if address is None else self._links.to(address, lane)

    async def coordinator(
        self, kind: CoordinatorKind, key: str, *, timeout_ms: int = LOOKUP_TIMEOUT_MS
    ) -> int:
        """The broker that coordinates this group or transactional id."""
        coordinator = self._coordinators.cached_node(kind, key)
        if coordinator is None:
            # Error codes here are of the broker that was asked: the internal topic is being
            # created, or its partition has no leader. They are not the coordinator's.
            coordinator = await retrying(
                self,
                lambda: self._coordinators.find(kind, key),
                Deadline(self.clock, timeout_ms),
            )
        self.metadata = self.metadata.with_node(coordinator)
        return coordinator.id

    def forget_coordinator(self, kind: CoordinatorKind, key: str) -> None:
        """It is not the coordinator, or did not answer: look it up again next time."""
        self._coordinators.forget(kind, key)

    async def _ask_any_broker(self, key: int, fields: dict[str, object]) -> KioMessage:
        return await self.ask(Target.ANY, key, fields)

    async def _link(self, node: To, lane: ConnectionLane) -> BrokerConnection:
        if node is Target.ANY:
            return next(self._links.any(self.metadata.nodes))
        if node is Target.CONTROLLER:
            if self.metadata.controller_id not in self.metadata.nodes:
                await self.refresh(())
            node = self.metadata.controller_id
        assert not isinstance(node, Target)
        address = self.metadata.nodes.get(node)
        if address is None:
            raise ConnectionError(f"broker {node} is not in the cluster metadata")
        return self._links.to(address, lane)

    def _timeout_ms(self, timeout_ms: int | None) -> int:
        return self.config.request_timeout_ms if timeout_ms is None else timeout_ms
