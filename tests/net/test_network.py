"""What listeners share: limits that hold for all of them and can change while they run."""

from __future__ import annotations

import asyncio
import logging

import pytest

from ottla.model.metrics import Registry
from ottla.net.limits import SWEEP_SLICE, SWEEP_SLICE_MS, DescriptorLimits, NetLimits
from tests.net.frames import request
from tests.net.rig import SECOND, Parked, Rig, a_pass, echo


def gauge(registry: Registry, name: str) -> float:
    for family in registry.families():
        if family.name == name:
            (read,) = family.metrics.values()
            assert callable(read)
            return read()
    raise AssertionError(f"no metric {name}")


@pytest.mark.spec("NET-14", "NET-39")
async def test_at_the_broker_wide_limit_the_longest_idle_of_another_listener_makes_room(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = Rig(NetLimits(max_connections=3, protected_listener="INTERNAL"))
    oldest = rig.connect(echo, listener="EXTERNAL")
    rig.clock.ns += 1
    newer = rig.connect(echo, listener="EXTERNAL")
    rig.clock.ns += 1
    oldest.send(request(1))  # so now it is the other that was silent longer
    busy = rig.connect(Parked(), listener="EXTERNAL")
    busy.send(request(1))
    with caplog.at_level(logging.WARNING):
        welcome = rig.connect(echo, listener="INTERNAL")
    assert newer.transport.aborted
    assert not oldest.transport.is_closing()
    assert not busy.transport.is_closing()
    assert not welcome.transport.is_closing()
    assert "max.connections" in caplog.text


@pytest.mark.spec("NET-39")
async def test_at_the_broker_wide_limit_newcomers_wait_and_those_too_many_are_refused() -> None:
    rig = Rig(NetLimits(max_connections=1, socket_listen_backlog_size=2))
    here, second, third, refused = (rig.connect(echo) for _ in range(4))
    second.send(request(2))
    assert second.replies == []
    assert refused.transport.aborted
    assert not any(line.transport.is_closing() for line in (here, second, third))
    refused.lose()
    assert rig.network.connection_counts.total == 1, "who was never counted in is not counted out"
    counter = rig.registry.counter(
        "kafka_server_socketservermetrics_connections_refused_total", "", listener="PLAINTEXT"
    )
    assert counter.value == 1
    here.lose()
    await a_pass()
    assert second.replies == [2]
    third.lose()
    assert (rig.network.connection_counts.total, len(rig.network.waiting_connections)) == (1, 0)


async def test_without_descriptors_newcomers_wait_few_of_them_and_the_log_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = Rig(NetLimits(descriptors=DescriptorLimits(connections=1, waiting=2)))
    with caplog.at_level(logging.WARNING):
        here, second, third, refused = (rig.connect(echo) for _ in range(4))
    second.send(request(2))
    assert second.replies == []
    assert [line.transport.aborted for line in (here, second, third, refused)] == [
        False, False, False, True,
    ]  # fmt: skip
    [line] = [r.getMessage() for r in caplog.records if "wait: " in r.getMessage()]
    assert line == (
        "new connections on listener PLAINTEXT wait: "
        "1 connections are open: too few file descriptors, see ulimit -n"
    )
    here.lose()
    await a_pass()
    assert second.replies == [2]


@pytest.mark.spec("NET-39", "SEC-09")
async def test_a_listener_with_a_limit_of_its_own_does_not_hold_up_others() -> None:
    rig = Rig(NetLimits(listener_max_connections={"EXTERNAL": 1}))
    rig.connect(echo, listener="EXTERNAL")
    waits, other = rig.connect(echo, listener="EXTERNAL"), rig.connect(echo, listener="INTERNAL")
    other.send(request(1))
    waits.send(request(2))
    assert (other.replies, waits.replies) == ([1], [])
    rig.network.apply(NetLimits(listener_max_connections={"EXTERNAL": 2}))
    await a_pass()
    assert waits.replies == [2], "a limit that is raised lets it in"
    assert rig.network.connection_counts.of_listener("EXTERNAL") == 2


async def test_who_waits_to_be_let_in_is_closed_when_the_listener_ends() -> None:
    rig = Rig(NetLimits(max_connections=1))
    here, waits = rig.connect(echo), rig.connect(echo)
    rig.network.waiting_connections.close_waiting("PLAINTEXT", "listener PLAINTEXT is closed")
    assert waits.transport.is_closing()
    assert not here.transport.is_closing()
    waits.lose()
    assert rig.network.connection_counts.total == 1


@pytest.mark.spec("SEC-09")
async def test_connections_that_come_faster_than_allowed_wait_for_their_turn() -> None:
    rig = Rig(NetLimits(max_connection_creation_rate=2))
    lines = [rig.connect(echo) for _ in range(23)]
    for number, line in enumerate(lines):
        line.send(request(number))
    assert [len(line.replies) for line in lines] == [1] * 20 + [0] * 3
    for count in (21, 22):
        rig.clock.ns += SECOND // 2
        rig.network._admit_waiting()
        await a_pass()
        assert sum(len(line.replies) for line in lines) == count
    for line in lines:
        line.lose()
    assert (rig.network.connection_counts.total, len(rig.network.waiting_connections)) == (0, 0)


@pytest.mark.spec("SEC-09")
async def test_connections_of_an_address_that_come_too_early_are_closed_a_little_later() -> None:
    rig = Rig()
    rig.network.waiting_connections.rate_of_address = lambda _: 1.0
    lines = [rig.connect(echo) for _ in range(11)]
    early = lines[10]
    early.send(request(1))
    await asyncio.sleep(0.9)
    assert not early.transport.is_closing()
    assert not early.replies
    await asyncio.sleep(0.2)
    assert early.transport.is_closing()
    assert not early.replies
    assert rig.network.connection_counts.total == 10
    early.lose()
    refused = rig.network.refused_counter("PLAINTEXT")
    assert refused.value == 1


@pytest.mark.spec("NET-39")
async def test_an_address_over_its_limit_is_refused_and_others_are_not() -> None:
    rig = Rig(NetLimits(max_connections_per_ip=1, max_connections_per_ip_overrides={"10.0.0.9": 2}))
    lines = [
        rig.connect(echo, address=address)
        for address in ("10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.9", "10.0.0.9", "10.0.0.9")
    ]
    refused = [line.transport.aborted for line in lines]
    assert refused == [False, True, False, False, False, True]
    lines[0].lose()
    assert not rig.connect(echo, address="10.0.0.1").transport.aborted


@pytest.mark.spec("NET-40")
async def test_new_limits_hold_at_once_for_old_and_new_connections() -> None:
    rig, parked = Rig(), Parked()
    line = rig.connect(parked)
    rig.network.apply(
        NetLimits(max_inflight_requests_per_connection=1, max_connections=1, queued_max_requests=7)
    )
    line.send(request(1) + request(2))
    assert list(parked.slots) == [1]
    waits = rig.connect(echo)
    waits.send(request(3))
    assert waits.replies == []
    assert rig.network.queue.limit == 7
    rig.network.apply(NetLimits())
    await a_pass()
    assert waits.replies == [3]
    parked.answer(1)
    await a_pass()
    await a_pass()
    assert list(parked.slots) == [2]


@pytest.mark.spec("MON-09", "MON-11")
async def test_queues_and_connections_can_be_watched() -> None:
    rig, parked = Rig(), Parked()
    rig.network.on_listener_opened()
    stuck, many = rig.connect(parked), rig.connect(echo)
    control = rig.connect(echo, listener="CONTROLLER", control=True)
    stuck.send(request(1))
    stuck.channel.pause_writing()
    parked.answer(1)
    await a_pass()
    many.send(b"".join(map(request, range(100))))
    control.send(b"".join(map(request, range(100))))
    read = {
        name: gauge(rig.registry, f"kafka_network_requestchannel_{name}")
        for name in (
            "request_queue_size",
            "control_plane_request_queue_size",
            "response_queue_size",
        )
    }
    assert read == {
        "request_queue_size": 1,
        "control_plane_request_queue_size": 1,
        "response_queue_size": 1,
    }
    idle = "kafka_server_kafkarequesthandlerpool_request_handler_avg_idle_percent"
    assert gauge(rig.registry, idle) == 1.0
    rig.network.on_listener_closed()


async def test_the_last_listener_to_close_stops_the_sweep() -> None:
    rig = Rig()
    rig.network.on_listener_opened()
    rig.network.on_listener_opened()
    rig.network.on_listener_closed()
    assert rig.network._sweeper is not None
    assert not rig.network._sweeper.cancelled()
    rig.network.on_listener_closed()
    assert rig.network._sweeper.cancelled()


async def test_a_sweep_never_looks_at_all_of_many_connections_at_once() -> None:
    rig = Rig(NetLimits(connections_max_idle_ms=1_000))
    lines = [rig.connect(echo) for _ in range(SWEEP_SLICE + 100)]
    rig.clock.ns += 2 * SECOND
    rig.network.on_listener_opened()
    assert sum(line.transport.closed for line in lines) == SWEEP_SLICE
    await asyncio.sleep(2 * SWEEP_SLICE_MS / 1e3)
    assert all(line.transport.closed for line in lines)
    rig.network.on_listener_closed()


async def test_what_each_client_software_speaks_is_counted_while_it_is_connected() -> None:
    rig = Rig(NetLimits())
    rig.network.on_listener_opened()
    here, there = rig.connect(echo), rig.connect(echo)
    for live in rig.network.live:
        live.connection.peer.software_name = "kcat"
        live.connection.peer.versions[18] = 4
    there.lose()
    [family] = [
        one
        for one in rig.registry.families()
        if one.name == "kafka_server_socketservermetrics_client_versions"
    ]
    assert family.series is not None
    [(labels, count)] = family.series()
    assert dict(labels)["client_software_name"] == "kcat"
    assert dict(labels)["version"] == "4"
    assert count == 1
    here.lose()
    assert list(family.series()) == []
    rig.network.on_listener_closed()
