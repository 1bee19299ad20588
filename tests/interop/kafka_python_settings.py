"""What consumers of kafka-python 3.0 need so that a busy machine does not stop them for minutes."""

from __future__ import annotations

from typing import Final

JOIN_POLL_MS: Final = 5_000
"""Longer than a rebalance takes: where a poll gives up while it joins, it may throw away the
assignment that comes afterwards, and be a member with nothing for ever after."""
METADATA_MAX_AGE_MS: Final = 1_000
"""A reply that was on its way when topics were subscribed to counts as the one that was asked for
then. The next one comes at this age, by default after five minutes."""
