"""Who is let in, who waits and who is refused."""

from __future__ import annotations

import pytest

from ottla.net.connection_limits import ConnectionCounts
from ottla.net.limits import NetLimits
from ottla.net.request_slot import Peer
from ottla.net.waiting_connections import Entry, Newcomers


class Caller:
    def __init__(self, listener: str = "A", address: str = "10.0.0.1") -> None:
        self.peer = Peer(address, 4711, listener, "PLAINTEXT")
        self.evicted: str | None = None

    def let_in(self) -> None: ...

    def evict(self, reason: str) -> None:
        self.evicted = reason


def entries(newcomers: Newcomers, limits: NetLimits, *callers: Caller) -> list[Entry]:
    return [newcomers.came(caller, limits, 0)[0] for caller in callers]


@pytest.mark.spec("NET-39")
def test_an_address_over_its_limit_is_refused_at_once() -> None:
    newcomers, limits = Newcomers(ConnectionCounts()), NetLimits(max_connections_per_ip=1)
    assert entries(newcomers, limits, Caller(), Caller()) == [Entry.IN, Entry.REFUSED]
    assert len(newcomers) == 0


@pytest.mark.spec("SEC-09")
def test_a_full_listener_has_newcomers_wait_in_order_and_refuses_when_too_many_do() -> None:
    census = ConnectionCounts()
    newcomers = Newcomers(census)
    limits = NetLimits(listener_max_connections={"A": 1}, socket_listen_backlog_size=2)
    callers = [Caller() for _ in range(4)]
    said = entries(newcomers, limits, *callers)
    assert said == [Entry.IN, Entry.WAITS, Entry.WAITS, Entry.REFUSED]
    assert "listener A: max.connections (1) reached" in newcomers.came(Caller(), limits, 0)[1]
    assert newcomers.next(limits, 0) == (None, 0)
    census.left("A", "10.0.0.1")
    assert newcomers.came(Caller("A"), limits, 0)[0] is Entry.REFUSED, "nobody overtakes"
    assert newcomers.next(limits, 0) == (callers[1], 0)
    assert newcomers.next(limits, 0) == (None, 0)
    assert newcomers.came(Caller("B"), limits, 0)[0] is Entry.IN


@pytest.mark.spec("SEC-09")
def test_the_rates_of_the_listener_and_of_the_broker_both_hold() -> None:
    newcomers = Newcomers(ConnectionCounts())
    limits = NetLimits(
        max_connection_creation_rate=3,
        listener_max_connection_creation_rate={"A": 1},
        protected_listener="INTERNAL",
    )
    assert entries(newcomers, limits, Caller(), Caller()) == [Entry.IN, Entry.WAITS]
    others = [Caller("B") for _ in range(3)]
    assert entries(newcomers, limits, *others) == [Entry.IN, Entry.IN, Entry.WAITS]
    internal = [Caller("INTERNAL") for _ in range(5)]
    assert entries(newcomers, limits, *internal) == [Entry.IN] * 5, "brokers need not wait"
    newcomer, wait_ms = newcomers.next(limits, 0)
    assert newcomer is None
    assert 333 <= wait_ms <= 335
    assert newcomers.next(limits, wait_ms) == (others[2], 0)


def test_who_leaves_while_waiting_is_forgotten_and_who_is_turned_away_hears_why() -> None:
    newcomers, limits = Newcomers(ConnectionCounts()), NetLimits(max_connections=0)
    gone, stays, other = Caller(), Caller(), Caller("B")
    assert entries(newcomers, limits, gone, stays, other) == [Entry.WAITS] * 3
    assert newcomers.left(gone)
    assert not newcomers.left(gone)
    newcomers.turn_away("A", "the end")
    assert (gone.evicted, stays.evicted, other.evicted) == (None, "the end", None)
    assert len(newcomers) == 1
