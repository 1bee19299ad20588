"""The current leaders of partitions that this broker does not lead, in its replies (KIP-951).

Owns the choice between what the replica here and what the metadata say. A client that gets the new
leader with the error needs no metadata request before it retries.
"""

from __future__ import annotations

from uuid import UUID

from ottla.api.services import Services
from ottla.model.ids import BrokerId, TopicPartition
from ottla.protocol.hot.parts import Endpoint


class CurrentLeaders:
    """The leaders named in one reply, and their endpoints on the client's listener."""

    def __init__(self, services: Services, listener: str) -> None:
        self._image = services.metadata.image
        self._hosted = services.replicas.hosted
        self._listener = listener
        self._endpoints: dict[BrokerId, Endpoint] = {}

    @property
    def endpoints(self) -> list[Endpoint]:
        return list(self._endpoints.values())

    def find(self, topic: str | UUID, index: int) -> tuple[int, int] | None:
        """The leader and its epoch, by the newer of both sources; None if there is no leader."""
        name = topic if isinstance(topic, str) else self._image.names.get(topic, "")
        key = TopicPartition(name, index)
        replica, metadata = self._hosted.find(key), self._image.partition(key)
        known = [(replica.leader_epoch, replica.leader_id)] if replica is not None else []
        if metadata is not None:
            known.append((metadata.leader_epoch, metadata.leader))
        epoch, leader = max(known, default=(-1, BrokerId(-1)))
        if leader < 0:
            return None
        node = self._image.node(leader, self._listener)
        if node is not None:
            self._endpoints[leader] = Endpoint(leader, node.host, node.port, node.rack)
        return leader, epoch
