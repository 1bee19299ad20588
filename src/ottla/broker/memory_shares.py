"""What part of the memory each thing that clients can make grow may take. Pure.

Owns: the parts. Whoever keeps such a thing is handed its number of bytes, and refuses what is more.
The rest is for what a broker needs of itself, for what is copied on its way, and for the system's
page cache.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.config.broker import BrokerConfig

MIB: Final = 1 << 20
REQUESTS_AT_ONCE: Final = 8
"""Of the largest size. However much memory there is, more of them would only wait in it."""
GIB: Final = 1 << 30


class MemoryShares(NamedTuple):
    """In bytes."""

    requests: int
    """Requests that arrive or are handled: `queued.max.request.bytes`."""
    replies: int
    """Replies that peers have not taken."""
    groups: int
    """Members of groups, with what they say of themselves."""
    fetch_sessions: int
    transactional_ids: int


def memory_shares(config: BrokerConfig, machine_bytes: int) -> MemoryShares:
    """The largest request that is allowed fits, however little memory there is."""
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
