"""New connections: admitted now, admitted later, or refused.

Owns: the connections that wait, in order, a bounded number for each listener.
Never: knows a socket; a connection that is admitted later is called back.

A connection from an address over its limit is refused. If a listener or the broker is full, or the
creation rate is exceeded, new connections wait: they are connected but not read from, as Kafka
leaves them unaccepted. Connections of other brokers do not wait for clients: the least recently
used client connection is closed instead.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import Final, Protocol

from ottla.net.connection_limits import ConnectionCounts
from ottla.net.creation_rate import CreationRate
from ottla.net.limits import UNLIMITED, NetLimits
from ottla.net.request_slot import Peer


class AdmissionDecision(Enum):
    NOW = "now"
    LATER = "later"
    NEVER = "never"


class NewConnection(Protocol):
    @property
    def peer(self) -> Peer: ...

    def on_admitted(self) -> None: ...

    def evict(self, reason: str) -> None: ...


ALL_LISTENERS: Final = ""


class WaitingConnections:
    """One for all listeners."""

    def __init__(self, counts: ConnectionCounts) -> None:
        self._counts = counts
        self._waiting: dict[NewConnection, None] = {}
        self._of_listener: Counter[str] = Counter()
        self._rates: dict[str, CreationRate] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def admit(
        self, connection: NewConnection, limits: NetLimits, now_ms: int
    ) -> tuple[AdmissionDecision, str]:
        """Whether the connection is admitted, and if not, why."""
        peer = connection.peer
        refusal = self._counts.refusal(limits, peer.address)
        if refusal is not None:
            return AdmissionDecision.NEVER, refusal
        # Connections of one listener are admitted in order.
        waits = self._of_listener[peer.listener] > 0
        reason = self._counts.must_wait(limits, peer.listener)
        if not waits and reason is None and not self._rate_ms(limits, peer.listener, now_ms):
            self._enter(limits, peer)
            return AdmissionDecision.NOW, ""
        if self._of_listener[peer.listener] >= limits.socket_listen_backlog_size:
            reason = reason or f"max.connection.creation.rate of listener {peer.listener} exceeded"
            return (
                AdmissionDecision.NEVER,
                f"{reason}; socket.listen.backlog.size others already wait",
            )
        self._waiting[connection] = None
        self._of_listener[peer.listener] += 1
        return AdmissionDecision.LATER, ""

    def close_waiting(self, listener: str, reason: str) -> None:
        """Close the connections that wait for this listener."""
        for connection in [
            waiting for waiting in self._waiting if waiting.peer.listener == listener
        ]:
            self.remove(connection)
            connection.evict(reason)

    def remove(self, connection: NewConnection) -> bool:
        """The connection is closed; True if it was still waiting."""
        if connection not in self._waiting:
            return False
        del self._waiting[connection]
        self._of_listener[connection.peer.listener] -= 1
        return True

    def next(self, limits: NetLimits, now_ms: int) -> tuple[NewConnection | None, int]:
        """The connection to admit now, counted already; else how long to wait (0: unknown)."""
        soonest_ms, checked = 0, set[str]()
        for connection in self._waiting:
            listener = connection.peer.listener
            if listener in checked:
                continue
            checked.add(listener)
            if self._counts.must_wait(limits, listener) is not None:
                continue
            wait_ms = self._rate_ms(limits, listener, now_ms)
            if not wait_ms:
                self.remove(connection)
                self._enter(limits, connection.peer)
                return connection, 0
            soonest_ms = min(soonest_ms or wait_ms, wait_ms)
        return None, soonest_ms

    def _enter(self, limits: NetLimits, peer: Peer) -> None:
        self._counts.add(peer.listener, peer.address)
        for name, _ in _rated(limits, peer.listener):
            self._rates[name].count_one()

    def _rate_ms(self, limits: NetLimits, listener: str, now_ms: int) -> int:
        return max(
            (
                self._rates.setdefault(name, CreationRate()).wait_ms(rate, now_ms)
                for name, rate in _rated(limits, listener)
            ),
            default=0,
        )


def _rated(limits: NetLimits, listener: str) -> list[tuple[str, int]]:
    """The rate limits of a listener; the inter-broker listener has none but its own."""
    rates = [(listener, limits.creation_rate_of(listener))]
    if listener != limits.protected_listener:
        rates.append((ALL_LISTENERS, limits.max_connection_creation_rate))
    return [(name, rate) for name, rate in rates if rate < UNLIMITED]
