"""Connection counts, and whether one more connection is within the limits.

Owns: the counts per address, per listener and in total.
Never: closes a connection; it returns the limit that is exceeded, or the connection to close.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Protocol, TypeVar

from ottla.net.limits import NetLimits


class ConnectionCounts:
    """Open connections by address and listener."""

    def __init__(self) -> None:
        self._addresses: Counter[str] = Counter()
        self._listeners: Counter[str] = Counter()
        self.total = 0
        self.duplicates = 0
        """Descriptors of connections that have a second one, see `transports`."""

    def refusal(self, limits: NetLimits, address: str) -> str | None:
        """Why one more connection from this address must be refused, if it must."""
        most = limits.connections_from(address)
        if self._addresses[address] >= most:
            return f"too many connections from {address}: max.connections.per.ip ({most}) reached"
        return None

    def must_wait(self, limits: NetLimits, listener: str) -> str | None:
        """Why one more connection on this listener must wait, if it must."""
        most = limits.connections_to(listener)
        if self._listeners[listener] >= most:
            return f"too many connections on listener {listener}: max.connections ({most}) reached"
        of_brokers = listener == limits.protected_listener
        if self.total >= limits.max_connections and not of_brokers:
            return f"too many connections: max.connections ({limits.max_connections}) reached"
        more = limits.descriptors.brokers if of_brokers else 0
        if self.descriptors >= limits.descriptors.connections + more:
            return f"{self.total} connections are open: too few file descriptors, see ulimit -n"
        return None

    def full(self, limits: NetLimits) -> bool:
        """Whether max.connections is reached, or the descriptors for connections are taken."""
        return (
            self.total >= limits.max_connections
            or self.descriptors >= limits.descriptors.connections
        )

    @property
    def descriptors(self) -> int:
        """Taken by connections."""
        return self.total + self.duplicates

    def add(self, listener: str, address: str) -> None:
        self._addresses[address] += 1
        self._listeners[listener] += 1
        self.total += 1

    def remove(self, listener: str, address: str) -> None:
        self._addresses[address] -= 1
        if not self._addresses[address]:
            del self._addresses[address]  # clients choose addresses: keep no empty entries
        self._listeners[listener] -= 1
        self.total -= 1

    def of_listener(self, listener: str) -> int:
        return self._listeners[listener]

    def of_address(self, address: str) -> int:
        return self._addresses[address]


class Evictable(Protocol):
    @property
    def listener_name(self) -> str: ...

    @property
    def active_ns(self) -> int: ...

    @property
    def idle(self) -> bool: ...


Candidate = TypeVar("Candidate", bound=Evictable)


def least_recently_used(connected: Iterable[Candidate], listener: str) -> Candidate | None:
    """The connection to close for a new one on `listener`: idle, on another, longest silent."""
    others = (other for other in connected if other.idle and other.listener_name != listener)
    return min(others, key=lambda other: other.active_ns, default=None)
