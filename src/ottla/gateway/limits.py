"""How much a gateway holds and how long it waits.

Owns: the numbers, and the count of bytes of requests and replies that are in memory. Never: reads
an option; the command does.

Each connection, instance, record and byte that a client can make the gateway keep has a limit here;
beyond it the client gets a 4xx or 503 and the others notice nothing.
"""

from __future__ import annotations

from typing import Final, NamedTuple

MIB: Final = 1024 * 1024


class Limits(NamedTuple):
    """The limits of one gateway; the sum of all defaults is below 1 GB of memory."""

    max_header_bytes: int = 16 * 1024
    max_body_bytes: int = 8 * MIB
    max_pending_bytes: int = 64 * MIB
    """Of the bodies of all requests and replies that are in memory together."""
    max_records: int = 10_000
    """Of one request that produces, and of one reply to a consumer."""
    max_response_bytes: int = 8 * MIB
    """Of the keys and values in one reply to a consumer."""
    max_connections: int = 256
    max_consumers: int = 100
    instance_timeout_ms: int = 300_000
    """A consumer instance without a request for this long leaves its group."""
    request_timeout_ms: int = 30_000
    receive_timeout_ms: int = 60_000
    """For a whole request to arrive, and for the next one on an open connection."""
    send_timeout_ms: int = 30_000
    stop_timeout_ms: int = 10_000
    """For running requests, and then for consumers to leave their groups, when it stops."""


class PendingBytes:
    """The bytes of bodies in memory."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0

    @property
    def count(self) -> int:
        return self._bytes

    @property
    def is_full(self) -> bool:
        return self._bytes >= self._max_bytes

    def reserve(self, count: int) -> bool:
        """Count these bytes, unless they exceed the limit."""
        if self._bytes + count > self._max_bytes:
            return False
        self._bytes += count
        return True

    def add(self, count: int) -> None:
        """Count these bytes, which are in memory already; new requests are refused meanwhile."""
        self._bytes += count

    def release(self, count: int) -> None:
        self._bytes -= count
