"""What consumers of kafka-python 3.0 need so that a busy machine does not stop them for minutes.

A leader that learns of its topic's partitions only after it has dealt them out joins once more. If
a poll gives up within that second join, no later one takes the assignment that comes of it: what
counts is whether the partitions have changed since the last deal, and they have not. The consumer
is then a member with nothing for ever.
"""

from __future__ import annotations

from typing import Any, Final

JOIN_POLL_MS: Final = 5_000
"""Longer than a rebalance takes."""
METADATA_MAX_AGE_MS: Final = 1_000
"""A reply that was on its way when topics were subscribed to counts as the one that was asked for
then. The next one comes at this age, by default after five minutes."""


def subscribe(consumer: Any, topic: str, listener: Any = None) -> None:
    """Subscribe, and know the partitions before the first join: there is no reason for a second."""
    consumer.subscribe([topic], listener=listener)
    consumer.topics()  # it waits for a reply to a question that is asked from now on
