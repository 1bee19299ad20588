"""Holds the newest image of the cluster; the one place where it is replaced.

Owns: which image is current, and the refusal of an old controller's word. Never asks anybody: it
lags behind the controller by whatever the network takes.
"""

from __future__ import annotations

import logging

from ottla.metadata.derived_values import DerivedValues
from ottla.metadata.image import Image, Update
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import BrokerId, TopicPartition

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
