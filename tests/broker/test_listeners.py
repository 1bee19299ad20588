"""Where a broker can be reached, while that changes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ottla.broker.listeners import ListenerSet
from ottla.config.broker import BrokerConfig
from ottla.config.dynamic import DynamicConfig
from ottla.config.listeners import Endpoint, Listeners
from ottla.model.clock import SystemClock
from ottla.model.errors import ErrorCode, UserError
from ottla.model.metrics import Registry
from ottla.net.limits import NetLimits
from ottla.net.network import Network
from ottla.net.request_metrics import RequestMetrics
from ottla.testing import Broker
from tests.net.frames import numbers_in, request
from tests.net.rig import echo
from tests.raw_requests import Line

MAP = "PLAINTEXT:PLAINTEXT,IN:PLAINTEXT,OUT:PLAINTEXT"
HERE = "127.0.0.1"


def listener_settings(*listeners: str) -> dict[str, str]:
    return {
        "listeners": ",".join(f"{name}://{HERE}:0" for name in listeners),
        "listener.security.protocol.map": MAP,
        "inter.broker.listener.name": "IN",
    }


def listeners(*names: str) -> Listeners:
    return Listeners.of(BrokerConfig.parse(listener_settings(*names)))


@asynccontextmanager
async def listener_set() -> AsyncIterator[ListenerSet]:
    clock = SystemClock()
    network = Network(NetLimits(), clock, RequestMetrics(Registry(), {}, clock), None)
    opened = ListenerSet(network, echo, lambda: "box")
    try:
        yield opened
    finally:
        await opened.stop()


async def answers(endpoint: Endpoint) -> bool:
    """Whether somebody listens there and replies."""
    try:
        reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
    except OSError:
        return False
    writer.write(request(1))
    size = await reader.readexactly(4)
    reply = size + await reader.readexactly(int.from_bytes(size, "big"))
    writer.close()
    await writer.wait_closed()
    return numbers_in(reply) == [1]


@pytest.mark.spec("CFG-006", "NET-36")
@pytest.mark.real_loop
async def test_advertised_endpoints_have_the_actual_ports() -> None:
    async with listener_set() as some:
        await some.bind(listeners("IN", "OUT"))
        assert [(one.name, one.host) for one in some.advertised] == [
            ("IN", HERE),
            ("OUT", HERE),
        ]
        assert all(one.port > 0 for one in some.advertised)
        assert not await answers(some.advertised[0]), "nobody is let in before it serves"
        await some.serve()
        assert [await answers(one) for one in some.advertised] == [True, True]


@pytest.mark.spec("CFG-006", "NET-40")
@pytest.mark.real_loop
async def test_a_change_opens_what_is_new_closes_what_is_gone_and_leaves_the_rest() -> None:
    async with listener_set() as some:
        await some.bind(listeners("IN", "OUT"))
        await some.serve()
        stays, goes = some.advertised
        await some.change(listeners("IN", "PLAINTEXT"))
        assert [one.name for one in some.advertised] == ["IN", "PLAINTEXT"]
        assert some.advertised[0] == stays
        assert [await answers(one) for one in (*some.advertised, goes)] == [True, True, False]


@pytest.mark.spec("CFG-006", "NET-40")
@pytest.mark.real_loop
async def test_a_change_that_cannot_be_carried_out_changes_nothing() -> None:
    async with listener_set() as some:
        await some.bind(listeners("IN"))
        await some.serve()
        (before,) = some.advertised
        with socket.create_server((HERE, 0)) as taken:
            port = taken.getsockname()[1]
            settings = {
                **listener_settings("IN"),
                "listeners": f"OUT://{HERE}:0,IN://{HERE}:{port}",
            }
            with pytest.raises(UserError, match="listeners: cannot bind IN://"):
                await some.change(Listeners.of(BrokerConfig.parse(settings)))
        assert some.advertised == (before,)
        assert await answers(before)


@pytest.mark.spec("CFG-006", "NET-40")
@pytest.mark.real_loop
async def test_listeners_follow_the_settings_and_are_advertised() -> None:
    config, published = (
        DynamicConfig(listener_settings("IN")),
        asyncio.Queue[tuple[Endpoint, ...]](),
    )
    async with listener_set() as some, asyncio.TaskGroup() as tasks:
        await some.bind(Listeners.of(config.current))
        following = tasks.create_task(some.apply_changes(config, published.put))
        await asyncio.sleep(0)
        config.set_broker({"num.io.threads": "9"})
        config.set_broker({"listeners": listener_settings("IN", "OUT")["listeners"]})
        assert [one.name for one in await published.get()] == ["IN", "OUT"]
        config.set_broker({"listeners": listener_settings("IN")["listeners"]})
        assert [one.name for one in await published.get()] == ["IN"]
        assert published.empty(), "a change of something else is not published"
        following.cancel()


def alter(line: Line, *names: str) -> int:
    """Give broker 0 these listeners; the code it answers with."""
    change = {
        "name": "listeners",
        "config_operation": 0,
        "value": listener_settings(*names)["listeners"],
    }
    resource = {"resource_type": 4, "resource_name": "0", "configs": [change]}
    reply = line.ask(44, 1, resources=[resource], validate_only=False)
    return int(reply.responses[0].error_code)


def until(line: Line, condition: Callable[[], bool]) -> None:
    """Ask something again and again until it holds."""
    for _ in range(10_000):
        if condition():
            return
        line.ask(18, 0)
    raise AssertionError("it never held")


@pytest.mark.spec("CFG-006", "CFG-007", "CFG-008", "NET-40")
def test_a_client_that_adds_a_listener_finds_it_advertised_and_open_and_there_after_a_restart(
    tmp_path: Path,
) -> None:
    with (
        Broker(listener_settings("IN"), data_dir=tmp_path) as broker,
        Line(broker.bootstrap_servers) as line,
    ):
        assert alter(line, "IN", "OUT") == ErrorCode.none
        until(line, lambda: "," in broker.bootstrap_servers)
        _, new = broker.bootstrap_servers.split(",")
        with Line(new) as other:
            until(other, lambda: bool(other.ask(3, 1, topics=[]).brokers))
            (node,) = other.ask(3, 1, topics=[]).brokers
            assert f"{node.host}:{node.port}" == new
    with Broker(listener_settings("IN"), data_dir=tmp_path) as broker:
        assert len(broker.bootstrap_servers.split(",")) == 2


@pytest.mark.spec("CFG-006")
def test_the_listener_that_brokers_use_cannot_be_taken_away() -> None:
    with (
        Broker(listener_settings("IN", "OUT")) as broker,
        Line(broker.bootstrap_servers.split(",")[0]) as line,
    ):
        assert alter(line, "OUT") == ErrorCode.invalid_request
