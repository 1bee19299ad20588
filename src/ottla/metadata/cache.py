"""Holds the newest image of the cluster; the only place where it is replaced.

Owns: which image is current, the refusal of updates from a stale controller, and which brokers left
a moment ago. Never requests metadata: it lags behind the controller by the network's delay.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping
from typing import Final

from ottla.metadata.image import BrokerMetadata, Image, Node, TopicMetadata, Update, node_of
from ottla.model.clock import Clock, MonoMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import BrokerId, TopicPartition
from ottla.protocol.encode import Encoded

KINDS: Final = 6
"""Kinds of readers (such as API version and listener); the least recently used is dropped."""
SPARE: Final = 100
"""Deleted topics that may stay cached before they are removed."""
DEPARTED_MS: Final = 5_000
"""How long a broker that left is remembered: clients ask for new leaders once a second."""


class DerivedValues:
    """Values computed from topics, such as encoded replies, cached until the topic changes."""

    def __init__(self) -> None:
        self._kinds: dict[Hashable, DerivedKind] = {}

    def kind(self, image: Image, name: Hashable) -> DerivedKind:
        """The cache for this kind of reader; emptied when the live brokers change."""
        cached = self._kinds.pop(name, None)
        if cached is None or cached.brokers != image.brokers:
            cached = DerivedKind(image.brokers)
        self._kinds[name] = cached
        if len(self._kinds) > KINDS:
            del self._kinds[next(iter(self._kinds))]
        cached.drop_deleted(image)
        return cached


class DerivedKind:
    """For one kind of reader."""

    def __init__(self, brokers: Mapping[BrokerId, BrokerMetadata]) -> None:
        self.brokers = brokers
        self._values: dict[str, tuple[TopicMetadata, Encoded]] = {}

    def find(self, name: str, topic: TopicMetadata) -> Encoded | None:
        """The cached value, if the topic has not changed since."""
        entry = self._values.get(name)
        return entry[1] if entry is not None and entry[0] is topic else None

    def put(self, name: str, topic: TopicMetadata, value: Encoded) -> None:
        self._values[name] = topic, value

    def drop_deleted(self, image: Image) -> None:
        if len(self._values) > len(image.topics) + SPARE:
            self._values = {
                name: entry for name, entry in self._values.items() if name in image.topics
            }


log = logging.getLogger(__name__)


class MetadataCache:
    """Written by UpdateMetadata alone. A reader takes `image` once and works from it."""

    def __init__(self, broker_id: BrokerId, clock: Clock) -> None:
        self.image = Image()
        self.derived = DerivedValues()
        self._broker_id = broker_id
        self._clock = clock
        self._departed: dict[BrokerId, tuple[BrokerMetadata, MonoMs]] = {}
        """By id, the last broker that left, and when that was received: at most one for each id."""
        self._topics_received: set[str] = set()
        """Topics named so far by the requests of a full update."""
        self._requests_left = 0
        """How many of its requests are still to come."""

    @property
    def is_whole(self) -> bool:
        """Whether the controller has sent everything, not only changes."""
        return self.image.is_whole

    def apply(self, update: Update) -> list[TopicPartition]:
        """Install an update from the controller; returns the partitions it deletes."""
        if update.controller_epoch < self.image.controller_epoch:
            raise KafkaError(
                ErrorCode.stale_controller_epoch,
                f"controller epoch {update.controller_epoch} is older than "
                f"{self.image.controller_epoch}",
            )
        newer = update.controller_epoch > self.image.controller_epoch
        before = self.image.brokers
        self.image, deleted = self.image.changed_by(update)
        self._note_departed(before)
        if update.requests_left is not None:
            deleted += self._full_update(update, update.requests_left, newer=newer)
        self._compare_listeners()
        return deleted

    def departed_nodes(self, listener: str) -> list[Node]:
        """Brokers that left within `DEPARTED_MS`, unless a live one has their id or address."""
        since_ms, image = self._clock.mono_ms() - DEPARTED_MS, self.image
        taken = {(node.host, node.port) for node in image.nodes(listener)}
        nodes = [
            node_of(broker, listener)
            for id, (broker, left_ms) in self._departed.items()
            if left_ms > since_ms and id not in image.brokers
        ]
        return [node for node in nodes if node is not None and (node.host, node.port) not in taken]

    def _note_departed(self, before: Mapping[BrokerId, BrokerMetadata]) -> None:
        now_ms = self._clock.mono_ms()
        for id in before.keys() - self.image.brokers.keys():
            self._departed[id] = before[id], now_ms

    def _full_update(
        self, update: Update, requests_left: int, *, newer: bool
    ) -> list[TopicPartition]:
        """After the last request of a full update, drop the topics that none of them named.

        A request may come twice; a full update that was cut short is followed by a new one.
        """
        if newer or requests_left > self._requests_left:
            self._topics_received.clear()
        self._requests_left = requests_left
        self._topics_received.update(tp.topic for tp, _, _ in update.partitions)
        if requests_left:
            return []
        image, dropped = self.image.without_topics(self.image.topics.keys() - self._topics_received)
        self.image = image._replace(is_whole=True)
        self._topics_received.clear()
        return dropped

    def _compare_listeners(self) -> None:
        """A client connected through one listener cannot reach a broker that lacks it."""
        own = self.image.brokers.get(self._broker_id)
        if own is None:
            return
        for broker in self.image.brokers.values():
            if broker.endpoints.keys() != own.endpoints.keys():
                log.error(
                    "listeners differ across brokers: broker %d has %s, broker %d has %s",
                    broker.id,
                    ", ".join(sorted(broker.endpoints)),
                    self._broker_id,
                    ", ".join(sorted(own.endpoints)),
                )
