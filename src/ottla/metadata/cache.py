"""Holds the newest image of the cluster; the one place where it is replaced.

Owns: which image is current, and the refusal of an old controller's word. Never asks anybody: it
lags behind the controller by whatever the network takes.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping
from typing import Any, Final

from ottla.metadata.image import BrokerMetadata, Image, TopicMetadata, Update
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import BrokerId, TopicPartition

KINDS: Final = 6
"""Of readers, such as a version and a listener; who has not asked for longest is dropped."""
SPARE: Final = 100
"""Topics that are gone, before they are looked for."""


class DerivedValues:
    def __init__(self) -> None:
        self._kinds: dict[Hashable, DerivedKind] = {}

    def kind(self, image: Image, name: Hashable) -> DerivedKind:
        """What there is for this kind of reader, while the same brokers are alive."""
        known = self._kinds.pop(name, None)
        if known is None or known.brokers != image.brokers:
            known = DerivedKind(image.brokers)
        self._kinds[name] = known
        if len(self._kinds) > KINDS:
            del self._kinds[next(iter(self._kinds))]
        known.forget_others(image)
        return known


class DerivedKind:
    """For one kind of reader."""

    def __init__(self, brokers: Mapping[BrokerId, BrokerMetadata]) -> None:
        self.brokers = brokers
        self._made: dict[str, tuple[TopicMetadata, Any]] = {}

    def find(self, name: str, topic: TopicMetadata) -> Any | None:
        """What was made of the topic before, if it is still the same."""
        made = self._made.get(name)
        return made[1] if made is not None and made[0] is topic else None

    def put(self, name: str, topic: TopicMetadata, made: object) -> None:
        """Keep what was made of the topic."""
        self._made[name] = topic, made

    def forget_others(self, image: Image) -> None:
        if len(self._made) > len(image.topics) + SPARE:
            self._made = {name: one for name, one in self._made.items() if name in image.topics}


log = logging.getLogger(__name__)


class MetadataCache:
    """Written by UpdateMetadata alone. A reader takes `image` once and works from it."""

    def __init__(self, broker_id: BrokerId) -> None:
        self.image = Image()
        self.derived = DerivedValues()
        self._broker_id = broker_id

    def apply(self, update: Update) -> list[TopicPartition]:
        """Install what the controller says; the partitions that are gone with it."""
        if update.controller_epoch < self.image.controller_epoch:
            raise KafkaError(
                ErrorCode.stale_controller_epoch,
                f"controller epoch {update.controller_epoch} is older than "
                f"{self.image.controller_epoch}",
            )
        self.image, deleted = self.image.changed_by(update)
        self._compare_listeners()
        return deleted

    def _compare_listeners(self) -> None:
        """Clients that found us through one listener could not reach a broker without it."""
        here = self.image.brokers.get(self._broker_id)
        if here is None:
            return
        for broker in self.image.brokers.values():
            if broker.endpoints.keys() != here.endpoints.keys():
                log.error(
                    "broker %d has the listeners %s, but this broker, %d, has %s",
                    broker.id,
                    ", ".join(sorted(broker.endpoints)),
                    self._broker_id,
                    ", ".join(sorted(here.endpoints)),
                )
