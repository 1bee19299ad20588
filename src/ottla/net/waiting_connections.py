"""New connections: admitted now, admitted later, or refused.

Owns: the connections that wait, in order, a bounded number for each listener.
Never: knows a socket; a connection that is admitted later is called back.

A connection from an address over its limit is refused. If a listener or the broker is full, or the
creation rate is exceeded, new connections wait: they are connected but not read from, as Kafka
leaves them unaccepted. If an address exceeds its own creation rate (a quota), its connections wait
without holding up others. Connections of other brokers do not wait for clients: the least recently
used client connection is closed instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
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
ADDRESSES_MAX: Final = 1_000
"""Rates of addresses that are kept; of more, those without a recent connection are dropped."""


class WaitingConnections:
    """One for all listeners."""

    def __init__(self, counts: ConnectionCounts) -> None:
        self._counts = counts
        self._waiting: dict[NewConnection, None] = {}
        self._of_listener: Counter[str] = Counter()
        self._rates: dict[str, CreationRate] = {}
        self.rate_of_address: Callable[[str], float | None] = _no_rate
        """The quota of an address: connections a second."""
        self._throttled: dict[NewConnection, None] = {}  # each waits for its address
        self._of_address: Counter[str] = Counter()
        self._address_rates: dict[str, CreationRate] = {}

    def __len__(self) -> int:
        return len(self._waiting) + len(self._throttled)

    def admit(
        self, connection: NewConnection, limits: NetLimits, now_ms: int
    ) -> tuple[AdmissionDecision, str]:
        """Whether the connection is admitted, and if not, why."""
        peer = connection.peer
        refusal = self._counts.refusal(limits, peer.address)
        if refusal is not None:
            return AdmissionDecision.NEVER, refusal
        if self._of_address[peer.address] or self._address_ms(peer.address, now_ms):
            return self._throttle(connection, limits)
        # Connections of one listener are admitted in order.
        waits = self._of_listener[peer.listener] > 0
        reason = self._counts.must_wait(limits, peer.listener)
        if not waits and reason is None and not self._rate_ms(limits, peer.listener, now_ms):
            self._count_of_address(peer.address)
            self._enter(limits, peer)
            return AdmissionDecision.NOW, ""
        if self._of_listener[peer.listener] >= limits.socket_listen_backlog_size:
            reason = reason or f"max.connection.creation.rate of listener {peer.listener} exceeded"
            return (
                AdmissionDecision.NEVER,
                f"{reason}; socket.listen.backlog.size others already wait",
            )
        self._count_of_address(peer.address)
        self._waiting[connection] = None
        self._of_listener[peer.listener] += 1
        return AdmissionDecision.LATER, ""

    def close_waiting(self, listener: str, reason: str) -> None:
        """Close the connections that wait for this listener."""
        for connection in [
            waiting
            for waiting in (*self._waiting, *self._throttled)
            if waiting.peer.listener == listener
        ]:
            self.remove(connection)
            connection.evict(reason)

    def remove(self, connection: NewConnection) -> bool:
        """The connection is closed; True if it was still waiting."""
        if connection in self._throttled:
            del self._throttled[connection]
            self._forget_one(connection.peer.address)
            return True
        if connection not in self._waiting:
            return False
        del self._waiting[connection]
        self._of_listener[connection.peer.listener] -= 1
        return True

    def next(self, limits: NetLimits, now_ms: int) -> tuple[NewConnection | None, int]:
        """The connection to admit now, counted already; else how long to wait (0: unknown)."""
        soonest_ms, checked = self._release_throttled(now_ms), set[str]()
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

    def _throttle(
        self, connection: NewConnection, limits: NetLimits
    ) -> tuple[AdmissionDecision, str]:
        """Let it wait until its address may have another connection."""
        address = connection.peer.address
        if self._of_address[address] >= limits.socket_listen_backlog_size:
            return (
                AdmissionDecision.NEVER,
                f"connection_creation_rate of {address} exceeded; "
                "socket.listen.backlog.size others already wait",
            )
        self._throttled[connection] = None
        self._of_address[address] += 1
        return AdmissionDecision.LATER, ""

    def _release_throttled(self, now_ms: int) -> int:
        """Those whose address may have another one wait for their listener only; else how long."""
        soonest_ms, checked = 0, set[str]()
        for connection in list(self._throttled):
            address = connection.peer.address
            if address in checked:
                continue
            wait_ms = self._address_ms(address, now_ms)
            if wait_ms:
                checked.add(address)
                soonest_ms = min(soonest_ms or wait_ms, wait_ms)
                continue
            self.remove(connection)
            self._count_of_address(address)
            self._waiting[connection] = None
            self._of_listener[connection.peer.listener] += 1
        return soonest_ms

    def _address_ms(self, address: str, now_ms: int) -> int:
        """How long the next connection of an address has to wait for its rate."""
        rate = self.rate_of_address(address)
        if rate is None:
            self._address_rates.pop(address, None)
            return 0
        if len(self._address_rates) > ADDRESSES_MAX:
            self._address_rates = {
                known: used
                for known, used in self._address_rates.items()
                if self._of_address[known]
            }
        return self._address_rates.setdefault(address, CreationRate()).wait_ms(int(rate), now_ms)

    def _count_of_address(self, address: str) -> None:
        if address in self._address_rates:
            self._address_rates[address].count_one()

    def _forget_one(self, address: str) -> None:
        self._of_address[address] -= 1
        if not self._of_address[address]:
            del self._of_address[address]

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


def _no_rate(_: str) -> float | None:
    """Until quotas are known."""
    return None


def _rated(limits: NetLimits, listener: str) -> list[tuple[str, int]]:
    """The rate limits of a listener; the inter-broker listener has none but its own."""
    rates = [(listener, limits.creation_rate_of(listener))]
    if listener != limits.protected_listener:
        rates.append((ALL_LISTENERS, limits.max_connection_creation_rate))
    return [(name, rate) for name, rate in rates if rate < UNLIMITED]
