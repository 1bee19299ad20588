"""The share of the memory for each part that clients can make grow. Pure.

Owns: the shares. Each part is handed its limit in bytes and refuses what exceeds it. The rest is
for the broker itself, for copies in flight, and for the system's page cache.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.config.broker import BrokerConfig

MIB: Final = 1 << 20
REQUESTS_AT_ONCE: Final = 8
"""Requests of the largest size; more of them would only wait in memory."""
GIB: Final = 1 << 30


class MemoryShares(NamedTuple):
    """In bytes."""

    requests: int
    """Requests being received or handled: `queued.max.request.bytes`."""
    replies: int
    """Replies that clients have not read yet."""
    groups: int
    """Members of groups, with their metadata."""
    fetch_sessions: int
    transactional_ids: int


def memory_shares(config: BrokerConfig, machine_bytes: int) -> MemoryShares:
    """The share of requests always holds at least one of the largest allowed size."""
    total = config.memory_limit_bytes if config.memory_limit_bytes > 0 else machine_bytes
    requests = config.queued_max_request_bytes
    if requests < 0:
        largest = config.socket_request_max_bytes
        requests = max(min(total // 4, REQUESTS_AT_ONCE * largest), largest)
    return MemoryShares(
        requests=requests,
        replies=min(max(total // 8, 32 * MIB), GIB),
        groups=min(max(total // 8, 32 * MIB), GIB // 2),
        fetch_sessions=max(total // 16, 16 * MIB),
        transactional_ids=max(total // 16, 16 * MIB),
    )
