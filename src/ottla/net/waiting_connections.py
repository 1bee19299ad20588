"""New connections: admitted now, admitted later, or refused.

Owns: the connections that wait, in order, a bounded number for each listener.
Never: knows a socket; a connection that is admitted later is called back.

The order of the checks is that of Kafka's acceptors. If a listener or the broker is full, or more
connections come than `max.connection.creation.rate` allows, new ones wait: they are connected but
not read from, as Kafka leaves them unaccepted. A connection from an address that exceeds its own
creation rate (a quota) is never read from and closed a little later, so that it holds up no other
and its client does not come back at once. One from an address with too many connections is closed.
Connections of other brokers do not wait for clients: the least recently used client connection is
closed instead.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple, Protocol

from ottla.delay.rates import SampledRate, Windows
from ottla.model.clock import MonoMs
from ottla.net.connection_limits import ConnectionCounts
from ottla.net.limits import UNLIMITED, NetLimits
from ottla.net.request_slot import Peer


class CreationRate:
    """A limit on new connections a second, measured as Kafka measures its quotas. Pure.

    A rate is measured over `quota.window.num` windows, so that connections that did not come in the
    last ten seconds may come at once.
    """

    __slots__ = ("_longest_ms", "_used")

    def __init__(self, windows: Windows) -> None:
        self._used = SampledRate(windows)
        self._longest_ms = windows.size_ms

    def count_one(self, rate: float, now_ms: MonoMs) -> int:
        """Count a new connection. How long it is too early, at most one window; 0: it is not."""
        self._used.record(1, now_ms)
        if rate <= 0:
            return self._longest_ms
        return min(self._used.delay_ms(rate, now_ms), self._longest_ms)

    def take_back(self, now_ms: MonoMs) -> None:
        """One that was counted is not accepted after all."""
        self._used.record(-1, now_ms)


class AdmissionDecision(Enum):
    NOW = "now"
    LATER = "later"
    NEVER = "never"
    THROTTLED = "throttled"


class Admission(NamedTuple):
    """What becomes of a new connection."""

    decision: AdmissionDecision
    reason: str = ""
    delay_ms: int = 0
    """After which a throttled connection is closed."""


class NewConnection(Protocol):
    @property
    def peer(self) -> Peer: ...

    def on_admitted(self) -> None: ...

    def evict(self, reason: str) -> None: ...


ALL_LISTENERS: Final = ""
ADDRESSES_MAX: Final = 10_000
"""Rates of addresses that are kept; of more, that of the longest silent address is dropped."""
NOW: Final = Admission(AdmissionDecision.NOW)
LATER: Final = Admission(AdmissionDecision.LATER)


class WaitingConnections:
    """One for all listeners."""

    def __init__(self, counts: ConnectionCounts) -> None:
        self._counts = counts
        self._lines: dict[str, dict[NewConnection, None]] = {}  # of listeners, in order
        self._ready_ms: dict[str, MonoMs] = {}  # when the first of a line is not too early
        self._rates: dict[str, CreationRate] = {}
        self.rate_of_address: Callable[[str], float | None] = _no_rate
        """The quota of an address: connections a second."""
        self._address_rates: dict[str, CreationRate] = {}

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))

    def admit(self, connection: NewConnection, limits: NetLimits, now_ms: MonoMs) -> Admission:
        """Whether the connection is admitted, and if not, why."""
        listener = connection.peer.listener
        line = self._lines.setdefault(listener, {})
        if not line:  # nobody waits before it
            admission = self._try(connection, limits, now_ms)
            if admission is not LATER:
                return admission
        if (
            len(line) >= limits.socket_listen_backlog_size
            or len(self) >= limits.descriptors.waiting
        ):
            reason = self._counts.must_wait(limits, listener)
            reason = reason or f"max.connection.creation.rate of listener {listener} exceeded"
            return Admission(
                AdmissionDecision.NEVER,
                f"{reason}; {len(line)} others already wait for it",
            )
        line[connection] = None
        return LATER

    def close_waiting(self, listener: str, reason: str) -> None:
        """Close the connections that wait for this listener."""
        for connection in list(self._lines.get(listener, ())):
            self.remove(connection)
            connection.evict(reason)

    def remove(self, connection: NewConnection) -> bool:
        """The connection is closed; True if it was still waiting."""
        listener = connection.peer.listener
        line = self._lines.get(listener, {})
        if connection not in line:
            return False
        if next(iter(line)) is connection:
            self._ready_ms.pop(listener, None)  # the next one is counted for itself
        del line[connection]
        return True

    def next(
        self, limits: NetLimits, now_ms: MonoMs
    ) -> tuple[tuple[NewConnection, Admission] | None, int]:
        """A connection that waits no longer; else how long until there may be one (0: unknown)."""
        soonest_ms = 0
        for listener, line in self._lines.items():
            if not line:
                continue
            first = next(iter(line))
            admission = self._try(first, limits, now_ms)
            if admission is not LATER:
                del line[first]
                return (first, admission), 0
            wait_ms = self._ready_ms[listener] - now_ms
            if wait_ms > 0:
                soonest_ms = min(soonest_ms or wait_ms, wait_ms)
        return None, soonest_ms

    def _try(self, connection: NewConnection, limits: NetLimits, now_ms: MonoMs) -> Admission:
        """Admit the first of a line if it is within all limits; `LATER` if it has to wait."""
        listener = connection.peer.listener
        if listener not in self._ready_ms:
            delay_ms = self._count(limits, listener, now_ms)
            self._ready_ms[listener] = MonoMs(now_ms + delay_ms)
        if self._ready_ms[listener] > now_ms or self._counts.must_wait(limits, listener):
            return LATER
        del self._ready_ms[listener]
        return self._enter(connection, limits, now_ms)

    def _enter(self, connection: NewConnection, limits: NetLimits, now_ms: MonoMs) -> Admission:
        """Admit a connection for which there is room, unless its address has too many."""
        address, listener = connection.peer.address, connection.peer.listener
        delay_ms = self._count_of_address(address, limits, now_ms)
        if delay_ms:
            for name, _ in _rated(limits, listener):
                if name in self._rates:
                    self._rates[name].take_back(now_ms)
            reason = f"connection_creation_rate of {address} exceeded"
            return Admission(AdmissionDecision.THROTTLED, reason, delay_ms)
        refusal = self._counts.refusal(limits, address)
        if refusal is not None:
            return Admission(AdmissionDecision.NEVER, refusal)
        self._counts.add(listener, address)
        return NOW

    def _count(self, limits: NetLimits, listener: str, now_ms: MonoMs) -> int:
        """Count a connection for the rates of listener and broker; how long it is too early."""
        return max(
            (
                self._rates.setdefault(name, CreationRate(limits.quota_windows)).count_one(
                    rate, now_ms
                )
                for name, rate in _rated(limits, listener)
            ),
            default=0,
        )

    def _count_of_address(self, address: str, limits: NetLimits, now_ms: MonoMs) -> int:
        """Count a connection for the rate of its address, if it is not too early."""
        quota = self.rate_of_address(address)
        if quota is None:
            self._address_rates.pop(address, None)
            return 0
        rates = self._address_rates
        rate = rates.pop(address, None) or CreationRate(limits.quota_windows)
        rates[address] = rate  # the last one used is the last
        if len(rates) > ADDRESSES_MAX:
            del rates[next(iter(rates))]
        delay_ms = rate.count_one(int(quota), now_ms)
        if delay_ms:
            rate.take_back(now_ms)
        return delay_ms


def _no_rate(_: str) -> float | None:
    """Until quotas are known."""
    return None


def _rated(limits: NetLimits, listener: str) -> list[tuple[str, int]]:
    """The rate limits of a listener; the inter-broker listener has none but its own."""
    rates = [(listener, limits.creation_rate_of(listener))]
    if listener != limits.protected_listener:
        rates.append((ALL_LISTENERS, limits.max_connection_creation_rate))
    return [(name, rate) for name, rate in rates if rate < UNLIMITED]
