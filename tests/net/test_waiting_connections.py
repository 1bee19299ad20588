"""Who is let in, who waits and who is refused."""

from __future__ import annotations

import pytest

from ottla.model.clock import MonoMs
from ottla.net.connection_limits import ConnectionCounts
from ottla.net.limits import NetLimits
from ottla.net.request_slot import Peer
from ottla.net.waiting_connections import AdmissionDecision, NewConnection, WaitingConnections

START = MonoMs(0)


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
    return [waiting.admit(caller, limits, START).decision for caller in callers]


def admitted(waiting: WaitingConnections, limits: NetLimits, now_ms: int) -> list[NewConnection]:
    """Those that wait no longer, and are let in."""
    connections = []
    while (found := waiting.next(limits, MonoMs(now_ms))[0]) is not None:
        connection, admission = found
        assert admission.decision is AdmissionDecision.NOW
        connections.append(connection)
    return connections


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
    reason = waiting.admit(Caller(), limits, START).reason
    assert "listener A: max.connections (1) reached" in reason
    assert waiting.next(limits, START) == (None, 0)
    counts.remove("A", "10.0.0.1")
    assert decisions(waiting, limits, Caller("A")) == [AdmissionDecision.NEVER], "nobody overtakes"
    assert admitted(waiting, limits, 0) == [callers[1]]
    assert decisions(waiting, limits, Caller("B")) == [AdmissionDecision.NOW]


@pytest.mark.spec("SEC-09")
def test_the_rates_of_the_listener_and_of_the_broker_both_hold() -> None:
    """Ten seconds' worth may come at once."""
    waiting = WaitingConnections(ConnectionCounts())
    limits = NetLimits(
        max_connection_creation_rate=3,
        listener_max_connection_creation_rate={"A": 1},
        protected_listener="INTERNAL",
    )
    callers = [Caller() for _ in range(12)]
    now, later = AdmissionDecision.NOW, AdmissionDecision.LATER
    assert decisions(waiting, limits, *callers) == [now] * 10 + [later] * 2
    others = [Caller("B") for _ in range(20)]
    assert decisions(waiting, limits, *others) == [now] * 19 + [later]
    internal = [Caller("INTERNAL") for _ in range(50)]
    assert decisions(waiting, limits, *internal) == [now] * 50, "brokers need not wait"
    found, wait_ms = waiting.next(limits, START)
    assert (found, wait_ms) == (None, 333), "of listener B, by the broker's rate"
    assert admitted(waiting, limits, 333) == [others[19]]
    assert waiting.next(limits, MonoMs(333)) == (None, 667)
    assert admitted(waiting, limits, 1_000) == [callers[10]]
    assert waiting.next(limits, MonoMs(1_000))[1] > 0, "the last one is counted from now on"


@pytest.mark.spec("SEC-09")
def test_in_the_long_run_connections_come_at_the_rate_as_it_is_measured() -> None:
    """By Kafka's formula: over ten to eleven seconds, so a little less than the rate."""
    waiting, limits = (
        WaitingConnections(ConnectionCounts()),
        NetLimits(max_connection_creation_rate=20),
    )
    entered = 0
    for now_ms in range(0, 90_000, 10):
        if len(waiting) < 5:
            found = waiting.admit(Caller(), limits, MonoMs(now_ms))
            entered += found.decision is AdmissionDecision.NOW and now_ms >= 30_000
        late = admitted(waiting, limits, now_ms)
        entered += len(late) if now_ms >= 30_000 else 0
    assert 0.92 * 20 * 60 < entered <= 20 * 60


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
def test_an_address_over_its_rate_is_turned_away_and_others_are_not() -> None:
    waiting, limits = WaitingConnections(ConnectionCounts()), NetLimits()
    rates = {"10.0.0.1": 1.0}
    waiting.rate_of_address = rates.get
    callers = [Caller() for _ in range(11)]
    now = AdmissionDecision.NOW
    assert decisions(waiting, limits, *callers) == [now] * 10 + [AdmissionDecision.THROTTLED]
    admission = waiting.admit(Caller(), limits, START)
    assert admission.delay_ms == 1_000, "at most one window, after which it is closed"
    assert "connection_creation_rate of 10.0.0.1" in admission.reason
    assert decisions(waiting, limits, Caller(address="10.0.0.2")) == [now]
    assert len(waiting) == 0
    later = [waiting.admit(Caller(), limits, MonoMs(11_000)).decision for _ in range(10)]
    assert later == [now] * 10, "those that were turned away did not count"
    rates.clear()
    assert decisions(waiting, limits, Caller()) == [now], "the quota is gone"


@pytest.mark.spec("SEC-09")
def test_who_is_turned_away_for_its_address_leaves_the_rate_of_the_listener_to_others() -> None:
    waiting, limits = (
        WaitingConnections(ConnectionCounts()),
        NetLimits(max_connection_creation_rate=1),
    )
    waiting.rate_of_address = {"10.0.0.1": 0.1}.get
    now = AdmissionDecision.NOW
    noisy = [Caller() for _ in range(50)]
    assert decisions(waiting, limits, *noisy).count(now) == 0, "less than one in ten seconds"
    others = [Caller(address="10.0.0.2") for _ in range(10)]
    assert decisions(waiting, limits, *others) == [now] * 10


def test_who_waited_is_checked_for_its_address_when_its_turn_comes() -> None:
    counts = ConnectionCounts()
    waiting = WaitingConnections(counts)
    limits = NetLimits(max_connections_per_ip=1, listener_max_connections={"A": 1})
    first, second, third = Caller(address="10.0.0.2"), Caller(), Caller()
    assert decisions(waiting, limits, first, second, third) == [
        AdmissionDecision.NOW,
        AdmissionDecision.LATER,
        AdmissionDecision.LATER,
    ]
    roomy = NetLimits(max_connections_per_ip=1)
    [one, two] = [waiting.next(roomy, START)[0] for _ in range(2)]
    assert one is not None
    assert two is not None
    assert [one[1].decision, two[1].decision] == [AdmissionDecision.NOW, AdmissionDecision.NEVER]
    assert "max.connections.per.ip (1) reached" in two[1].reason
