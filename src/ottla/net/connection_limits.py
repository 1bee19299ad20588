"""How many connections there are, and whether one more may come in.

Owns: the counts per address, per listener and in all.
Never: closes a connection; it names the rule, and who might make room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Protocol, TypeVar

from ottla.net.limits import NetLimits


class ConnectionCounts:
    """Who is connected, in numbers."""

    def __init__(self) -> None:
        self._addresses: Counter[str] = Counter()
        self._listeners: Counter[str] = Counter()
        self.total = 0

    def refusal(self, limits: NetLimits, address: str) -> str | None:
        """Which limit of its own address one more connection would break."""
        most = limits.connections_from(address)
        if self._addresses[address] >= most:
            return f"too many connections from {address}: max.connections.per.ip ({most}) reached"
        return None

    def must_wait(self, limits: NetLimits, listener: str) -> str | None:
        """Why there is no place for one more on this listener; the broker's own has always one."""
        most = limits.connections_to(listener)
        if self._listeners[listener] >= most:
            return f"too many connections on listener {listener}: max.connections ({most}) reached"
        if self.full(limits) and listener != limits.protected_listener:
            return f"too many connections: max.connections ({limits.max_connections}) reached"
        return None

    def full(self, limits: NetLimits) -> bool:
        """The broker as a whole has no place for one more."""
        return self.total >= limits.max_connections

    def came(self, listener: str, address: str) -> None:
        self._addresses[address] += 1
        self._listeners[listener] += 1
        self.total += 1

    def left(self, listener: str, address: str) -> None:
        self._addresses[address] -= 1
        if not self._addresses[address]:
            del self._addresses[address]  # addresses are the peers' choice: keep no empty ones
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


def least_recently_used(connected: Iterable[Candidate], newcomer: str) -> Candidate | None:
    """Who makes room for a newcomer to listener `newcomer`: idle, on another, longest silent."""
    others = (one for one in connected if one.idle and one.listener_name != newcomer)
    return min(others, key=lambda one: one.active_ns, default=None)
