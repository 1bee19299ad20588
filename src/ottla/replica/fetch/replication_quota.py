"""How fast replicas may be copied: Kafka's replication throttles.

Owns the usage that is measured for one quota. Pure: usage and time are arguments.

Which replicas are throttled is said by their topics (`leader.replication.throttled.replicas`,
`follower.replication.throttled.replicas`), how fast by the broker. A replica that is in sync is
never held back, but its bytes count.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from ottla.delay.rates import SimpleRate, Windows
from ottla.model.clock import MonoMs
from ottla.model.ids import BrokerId, TopicPartition

LONGEST_DELAY_MS: Final = 1_000
"""A throttled replica looks again after this: the quota may have changed."""
ALL_REPLICAS: Final = "*"


class ReplicationQuota:
    """Bytes per second, for what a broker sends, fetches or moves."""

    def __init__(self, windows: Windows, bytes_per_second: Callable[[], float]) -> None:
        self._windows = windows
        self._bytes_per_second = bytes_per_second
        self._used = SimpleRate(windows)

    def record(self, size: int, now_ms: MonoMs) -> None:
        self._used.record(size, now_ms)

    def is_exceeded(self, now_ms: MonoMs) -> bool:
        return self._used.rate(now_ms) > self._bytes_per_second()

    def delay_ms(self, now_ms: MonoMs) -> int:
        """How long to wait before the next bytes; 0 if the quota is not exceeded."""
        quota = self._bytes_per_second()
        if self._used.rate(now_ms) <= quota:
            return 0
        delay_ms = self._used.delay_ms(quota, now_ms) if quota > 0 else LONGEST_DELAY_MS
        return max(1, min(delay_ms, LONGEST_DELAY_MS))


def is_throttled(replicas: Collection[str], key: TopicPartition, broker: BrokerId) -> bool:
    """Whether a topic's list of throttled replicas names this one."""
    if not replicas:
        return False
    return ALL_REPLICAS in replicas or f"{key.partition}:{broker}" in replicas
