"""Links between brokers without a network."""

from __future__ import annotations

from ottla.coordinator.request_queues import Link
from ottla.model.ids import BrokerId


class NoOtherBroker:
    """The links of a broker that is alone."""

    def to(self, broker: BrokerId, purpose: str) -> Link:
        raise ConnectionError(f"broker {broker} is not in the cluster metadata")
