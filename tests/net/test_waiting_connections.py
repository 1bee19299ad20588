"""Who is let in, who waits and who is refused."""

from __future__ import annotations

import pytest

from ottla.net.connection_limits import ConnectionCounts
from ottla.net.limits import NetLimits
from ottla.net.request_slot import Peer
from ottla.net.waiting_connections import AdmissionDecision, WaitingConnections


class Caller:
    def __init__(self, listener: str = "A", address: str = "10.0.0.1") -> None:
        self.peer = Peer(address, 4711, listener, "PLAINTEXT")
        self.evicted: str | None = None

    def on_admitted(self) -> None: ...

    def evict(self, reason: str) -> None:
        self.evicted = reason


def decisions(
    waiting: WaitingConnections, limits: NetLimits, *callers: Caller
) -> list[AdmissionDecision]:
    return [waiting.admit(caller, limits, 0)[0] for caller in callers]


@pytest.mark.spec("NET-39")
def test_an_address_over_its_limit_is_refused_at_once() -> None:
    waiting, limits = WaitingConnections(ConnectionCounts()), NetLimits(max_connections_per_ip=1)
    assert decisions(waiting, limits, Caller(), Caller()) == [
        AdmissionDecision.NOW,
        AdmissionDecision.NEVER,
    ]
    assert len(waiting) == 0


@pytest.mark.spec("SEC-09")
def test_a_full_listener_has_newcomers_wait_in_order_and_refuses_when_too_many_do() -> None:
    counts = ConnectionCounts()
    waiting = WaitingConnections(counts)
    limits = NetLimits(listener_max_connections={"A": 1}, socket_listen_backlog_size=2)
    callers = [Caller() for _ in range(4)]
    answers = decisions(waiting, limits, *callers)
    assert answers == [
        AdmissionDecision.NOW,
        AdmissionDecision.LATER,
        AdmissionDecision.LATER,
        AdmissionDecision.NEVER,
    ]
    assert "listener A: max.connections (1) reached" in waiting.admit(Caller(), limits, 0)[1]
    assert waiting.next(limits, 0) == (None, 0)
    counts.remove("A", "10.0.0.1")
    assert waiting.admit(Caller("A"), limits, 0)[0] is AdmissionDecision.NEVER, "nobody overtakes"
    assert waiting.next(limits, 0) == (callers[1], 0)
    assert waiting.next(limits, 0) == (None, 0)
    assert waiting.admit(Caller("B"), limits, 0)[0] is AdmissionDecision.NOW


@pytest.mark.spec("SEC-09")
def test_the_rates_of_the_listener_and_of_the_broker_both_hold() -> None:
    waiting = WaitingConnections(ConnectionCounts())
    limits = NetLimits(
        max_connection_creation_rate=3,
        listener_max_connection_creation_rate={"A": 1},
        protected_listener="INTERNAL",
    )
    assert decisions(waiting, limits, Caller(), Caller()) == [
        AdmissionDecision.NOW,
        AdmissionDecision.LATER,
    ]
    others = [Caller("B") for _ in range(3)]
    assert decisions(waiting, limits, *others) == [
        AdmissionDecision.NOW,
        AdmissionDecision.NOW,
        AdmissionDecision.LATER,
    ]
    internal = [Caller("INTERNAL") for _ in range(5)]
    assert decisions(waiting, limits, *internal) == [AdmissionDecision.NOW] * 5, (
        "brokers need not wait"
    )
    connection, wait_ms = waiting.next(limits, 0)
    assert connection is None
    assert 333 <= wait_ms <= 335
    assert waiting.next(limits, wait_ms) == (others[2], 0)


def test_who_leaves_while_waiting_is_forgotten_and_who_is_turned_away_hears_why() -> None:
    waiting, limits = WaitingConnections(ConnectionCounts()), NetLimits(max_connections=0)
    gone, stays, other = Caller(), Caller(), Caller("B")
    assert decisions(waiting, limits, gone, stays, other) == [AdmissionDecision.LATER] * 3
    assert waiting.remove(gone)
    assert not waiting.remove(gone)
    waiting.close_waiting("A", "the end")
    assert (gone.evicted, stays.evicted, other.evicted) == (None, "the end", None)
    assert len(waiting) == 1


@pytest.mark.spec("SEC-09", "NET-39")
def test_an_address_over_its_rate_waits_and_others_do_not() -> None:
    waiting, limits = (
        WaitingConnections(ConnectionCounts()),
        NetLimits(socket_listen_backlog_size=2),
    )
    rates = {"10.0.0.1": 1.0}
    waiting.rate_of_address = rates.get
    callers = [Caller() for _ in range(4)]
    assert decisions(waiting, limits, *callers) == [
        AdmissionDecision.NOW,
        AdmissionDecision.LATER,
        AdmissionDecision.LATER,
        AdmissionDecision.NEVER,
    ]
    other = Caller(address="10.0.0.2")
    assert decisions(waiting, limits, other) == [AdmissionDecision.NOW]
    found, wait_ms = waiting.next(limits, 0)
    assert found is None
    assert 0 < wait_ms <= 1_001
    assert waiting.next(limits, wait_ms)[0] is callers[1]
    assert waiting.next(limits, wait_ms)[0] is None
    rates.clear()
    assert waiting.next(limits, wait_ms) == (callers[2], 0), "the quota is gone"
    assert len(waiting) == 0


def test_a_connection_that_waits_for_its_address_may_go() -> None:
    waiting, limits = WaitingConnections(ConnectionCounts()), NetLimits()
    waiting.rate_of_address = {"10.0.0.1": 1.0}.get
    callers = [Caller() for _ in range(3)]
    decisions(waiting, limits, *callers)
    assert waiting.remove(callers[1])
    assert not waiting.remove(callers[1])
    waiting.close_waiting("A", "closed")
    assert callers[2].evicted == "closed"
    assert len(waiting) == 0
