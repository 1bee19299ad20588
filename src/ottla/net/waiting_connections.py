"""Connections that have just come: let in, told to wait, or refused.

Owns: who waits for a place or for its turn, in order, a bounded number for each listener.
Never: closes a connection or knows a socket; whoever is let in later is told so.

An address over its limit is refused. A listener or a broker that is full, or a rate that is used
up, makes newcomers wait: they are connected and not read from, as Kafka leaves them unaccepted. The
listener of brokers is not held up by connections to others: the least recently used one of these
makes room.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import Final, Protocol

from ottla.net.connection_limits import ConnectionCounts
from ottla.net.creation_rate import CreationRate
from ottla.net.limits import UNLIMITED, NetLimits
from ottla.net.request_slot import Peer


class Entry(Enum):
    IN = "in"
    WAITS = "waits"
    REFUSED = "refused"


class Newcomer(Protocol):
    @property
    def peer(self) -> Peer: ...

    def let_in(self) -> None: ...

    def evict(self, reason: str) -> None: ...


EVERYBODY: Final = ""


class Newcomers:
    """One for all listeners."""

    def __init__(self, census: ConnectionCounts) -> None:
        self._census = census
        self._waiting: dict[Newcomer, None] = {}
        self._of_listener: Counter[str] = Counter()
        self._rates: dict[str, CreationRate] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def came(self, newcomer: Newcomer, limits: NetLimits, now_ms: int) -> tuple[Entry, str]:
        """What becomes of it, and why."""
        peer = newcomer.peer
        refusal = self._census.refusal(limits, peer.address)
        if refusal is not None:
            return Entry.REFUSED, refusal
        # Nobody overtakes those of the same listener.
        waits = self._of_listener[peer.listener] > 0
        reason = self._census.must_wait(limits, peer.listener)
        if not waits and reason is None and not self._rate_ms(limits, peer.listener, now_ms):
            self._enter(limits, peer)
            return Entry.IN, ""
        if self._of_listener[peer.listener] >= limits.socket_listen_backlog_size:
            reason = reason or f"max.connection.creation.rate of listener {peer.listener} exceeded"
            return Entry.REFUSED, f"{reason}; socket.listen.backlog.size others already wait"
        self._waiting[newcomer] = None
        self._of_listener[peer.listener] += 1
        return Entry.WAITS, ""

    def turn_away(self, listener: str, reason: str) -> None:
        """Nobody who waits for this listener will be let in."""
        for newcomer in [one for one in self._waiting if one.peer.listener == listener]:
            self.left(newcomer)
            newcomer.evict(reason)

    def left(self, newcomer: Newcomer) -> bool:
        """One is gone; True if it was still waiting."""
        if newcomer not in self._waiting:
            return False
        del self._waiting[newcomer]
        self._of_listener[newcomer.peer.listener] -= 1
        return True

    def next(self, limits: NetLimits, now_ms: int) -> tuple[Newcomer | None, int]:
        """Who may come in now, counted already; else how long until somebody may (0: unknown)."""
        soonest_ms, held = 0, set[str]()
        for newcomer in self._waiting:
            listener = newcomer.peer.listener
            if listener in held:
                continue
            held.add(listener)
            if self._census.must_wait(limits, listener) is not None:
                continue
            wait_ms = self._rate_ms(limits, listener, now_ms)
            if not wait_ms:
                self.left(newcomer)
                self._enter(limits, newcomer.peer)
                return newcomer, 0
            soonest_ms = min(soonest_ms or wait_ms, wait_ms)
        return None, soonest_ms

    def _enter(self, limits: NetLimits, peer: Peer) -> None:
        self._census.came(peer.listener, peer.address)
        for name, _ in _rated(limits, peer.listener):
            self._rates[name].came()

    def _rate_ms(self, limits: NetLimits, listener: str, now_ms: int) -> int:
        return max(
            (
                self._rates.setdefault(name, CreationRate()).wait_ms(rate, now_ms)
                for name, rate in _rated(limits, listener)
            ),
            default=0,
        )


def _rated(limits: NetLimits, listener: str) -> list[tuple[str, int]]:
    """The rates that hold for a listener; the broker's does not hold for that of brokers."""
    rates = [(listener, limits.creation_rate_of(listener))]
    if listener != limits.protected_listener:
        rates.append((EVERYBODY, limits.max_connection_creation_rate))
    return [(name, rate) for name, rate in rates if rate < UNLIMITED]
