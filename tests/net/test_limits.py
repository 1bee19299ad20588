"""Limits: the defaults are Kafka's, overrides win."""

from __future__ import annotations

import pytest

from ottla.net.limits import UNLIMITED, NetLimits


@pytest.mark.spec("NET-05", "NET-23")
def test_the_defaults_are_kafkas() -> None:
    limits = NetLimits()
    assert limits.queued_max_requests == 500
    assert limits.socket_send_buffer_bytes == 102_400
    assert limits.socket_receive_buffer_bytes == -1, "the one that is not: decision 0013"
    assert limits.socket_request_max_bytes == 104_857_600
    assert limits.connections_max_idle_ms == 600_000
    assert limits.socket_listen_backlog_size == 50


@pytest.mark.spec("NET-39")
def test_an_address_with_an_override_has_its_own_limit() -> None:
    limits = NetLimits(
        max_connections_per_ip=3, max_connections_per_ip_overrides={"127.0.0.1": 100}
    )
    assert limits.connections_from("127.0.0.1") == 100
    assert limits.connections_from("10.0.0.1") == 3


@pytest.mark.spec("NET-39")
def test_a_listener_without_a_limit_of_its_own_has_none() -> None:
    limits = NetLimits(listener_max_connections={"EXTERNAL": 2})
    assert limits.connections_to("EXTERNAL") == 2
    assert limits.connections_to("INTERNAL") == UNLIMITED
