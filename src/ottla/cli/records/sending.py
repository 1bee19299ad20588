"""Drafts to a producer, as fast as it takes them; failures counted, the first one kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from ottla.cli.records.drafts import Draft
from ottla.client.producer.delivery import Delivery
from ottla.client.producer.sync import Producer

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
    drafts: Iterable[Draft],
    *,
    partition: int | None = None,
    tell: Callable[[int], None] = lambda done: None,
) -> Sent:
    """Send every draft and wait for its outcome."""
    sent = Sent()
    for draft in drafts:
        delivery = producer.send(
            topic,
            draft.value,
            draft.key,
            draft.headers or None,
            partition if draft.partition is None else draft.partition,
            draft.timestamp_ms,
        )
        delivery.add_done_callback(sent.done)
        sent.count += 1
        if sent.count % TELL_EVERY == 0:
            tell(sent.count)
    producer.flush()
    return sent
