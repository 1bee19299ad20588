"""Connection counts: who may come in, and who makes room."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from ottla.net.connection_limits import ConnectionCounts, least_recently_used
from ottla.net.limits import DescriptorLimits, NetLimits


class Known(NamedTuple):
    listener_name: str
    active_ns: int
    idle: bool = True


@pytest.mark.spec("NET-39", "NET-13", "SEC-09")
def test_an_address_is_refused_at_its_limit_and_welcome_again_when_one_has_left() -> None:
    counts, limits = ConnectionCounts(), NetLimits(max_connections_per_ip=2)
    counts.add("A", "10.0.0.1")
    counts.add("B", "10.0.0.1")
    assert "max.connections.per.ip (2)" in (counts.refusal(limits, "10.0.0.1") or "")
    assert counts.refusal(limits, "10.0.0.2") is None
    counts.remove("B", "10.0.0.1")
    assert counts.refusal(limits, "10.0.0.1") is None


@pytest.mark.spec("NET-39", "SEC-09")
def test_newcomers_to_a_listener_wait_at_its_limit() -> None:
    counts = ConnectionCounts()
    limits = NetLimits(listener_max_connections={"A": 1})
    counts.add("A", "10.0.0.1")
    assert "listener A: max.connections (1) reached" in (counts.must_wait(limits, "A") or "")
    assert counts.must_wait(limits, "B") is None


@pytest.mark.spec("NET-39")
def test_at_the_brokers_limit_all_wait_but_those_who_come_through_the_listener_of_brokers() -> None:
    counts = ConnectionCounts()
    limits = NetLimits(max_connections=1, protected_listener="INTERNAL")
    counts.add("EXTERNAL", "10.0.0.1")
    assert "too many connections: max.connections (1) reached" in (
        counts.must_wait(limits, "EXTERNAL") or ""
    )
    assert counts.must_wait(limits, "INTERNAL") is None


@pytest.mark.spec("NET-13")
def test_counts_fall_back_to_nothing() -> None:
    counts = ConnectionCounts()
    for n in range(100):
        counts.add("A", f"10.0.0.{n}")
    assert counts.full(NetLimits(max_connections=100))
    assert not counts.full(NetLimits(max_connections=101))
    for n in range(100):
        counts.remove("A", f"10.0.0.{n}")
    assert (counts.total, counts.of_listener("A"), counts.of_address("10.0.0.5")) == (0, 0, 0)
    assert not counts._addresses, "addresses that are gone must not be remembered"


@pytest.mark.spec("NET-14", "NET-39")
def test_the_idle_connection_of_another_listener_that_was_silent_longest_makes_room() -> None:
    oldest_here = Known("HERE", 1)
    busy = Known("THERE", 2, idle=False)
    older, newer = Known("THERE", 3), Known("THERE", 4)
    assert least_recently_used([newer, busy, oldest_here, older], "HERE") is older
    assert least_recently_used([oldest_here, busy], "HERE") is None


@pytest.mark.spec("NET-13")
def test_connections_wait_when_their_share_of_the_descriptors_is_taken() -> None:
    counts = ConnectionCounts()
    limits = NetLimits(
        max_connections=10,
        descriptors=DescriptorLimits(connections=3, brokers=1),
        protected_listener="INTERNAL",
    )
    counts.add("EXTERNAL", "10.0.0.1")
    counts.add("EXTERNAL", "10.0.0.1")
    assert counts.must_wait(limits, "EXTERNAL") is None
    counts.duplicates += 1  # a connection may have two
    assert "2 connections are open: too few file descriptors" in (
        counts.must_wait(limits, "EXTERNAL") or ""
    )
    assert counts.full(limits)
    assert counts.must_wait(limits, "INTERNAL") is None, "brokers have some for themselves"
    counts.add("INTERNAL", "10.0.0.2")
    assert counts.must_wait(limits, "INTERNAL") is not None, "but not all"
    counts.duplicates -= 1
    counts.remove("EXTERNAL", "10.0.0.1")
    assert counts.must_wait(limits, "EXTERNAL") is None


def test_the_lower_of_the_setting_and_the_descriptors_rules() -> None:
    counts = ConnectionCounts()
    counts.add("A", "10.0.0.1")
    few = DescriptorLimits(connections=1)
    assert "max.connections (1)" in (
        counts.must_wait(NetLimits(max_connections=1, descriptors=few), "A") or ""
    )
    assert "ulimit -n" in (
        counts.must_wait(NetLimits(max_connections=2, descriptors=few), "A") or ""
    )
    many = DescriptorLimits(connections=2)
    assert "max.connections (1)" in (
        counts.must_wait(NetLimits(max_connections=1, descriptors=many), "A") or ""
    )
