"""Drafts to a producer, as fast as it takes them; failures counted, the first one kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from ottla.cli.records.parsing import ParsedRecord
from ottla.client.producer.delivery import Delivery
from ottla.client.producer.sync import Producer
from ottla.model.errors import UserError

TELL_EVERY: Final = 10_000


class Sent:
    """How many records there were, and what became of those that failed."""

    def __init__(self) -> None:
        self.count = 0
        self.failed = 0
        self.first: BaseException | None = None

    def done(self, delivery: Delivery) -> None:
        error = delivery.exception()
        if error is not None:
            self.failed += 1
            self.first = self.first or error


def send_all(
    producer: Producer,
    topic: str,
    drafts: Iterable[ParsedRecord],
    *,
    partition: int | None = None,
    tell: Callable[[int], None] = lambda done: None,
) -> Sent:
    """Send every draft and wait for its outcome.

    A partition that the topic does not have is refused at once: a producer would wait for it.
    """
    deliveries = Sent()
    partitions: int | None = None
    for draft in drafts:
        target = partition if draft.partition is None else draft.partition
        if target is not None and (partitions is None or target >= partitions):
            partitions = len(producer.partitions_for(topic))
            if target >= partitions:
                raise UserError(
                    f"partition {target}: topic {topic} has {partitions} partitions, "
                    f"0 to {partitions - 1}"
                )
        delivery = producer.send(
            topic, draft.value, draft.key, draft.headers or None, target, draft.timestamp_ms
        )
        delivery.add_done_callback(deliveries.done)
        deliveries.count += 1
        if deliveries.count % TELL_EVERY == 0:
            tell(deliveries.count)
    producer.flush()
    return deliveries
