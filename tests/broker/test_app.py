"""One broker from start to stop: nothing is left behind, and what was kept is found again."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from ottla.broker.app import App
from ottla.broker.environment import Environment
from ottla.broker.listeners import DRAIN_MS
from ottla.log.directories.directory import CLEAN_SHUTDOWN
from ottla.log.files import RealDisk
from ottla.model.clock import SystemClock
from ottla.model.errors import UserError
from ottla.store.embedded import EmbeddedStore
from tests.fakes.inline_pool import InlinePool
from tests.raw_requests import FETCH, Line, batch, create_topics, fetch_fields, fetched, produced

FREE = "PLAINTEXT://127.0.0.1:0"


def environment() -> Environment:
    """The real one, without threads of its own."""
    return Environment(SystemClock(), Random(1), RealDisk(), EmbeddedStore.at, InlinePool())


def app(data: Path, **settings: str) -> App:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return App({"listeners": FREE, "log.dirs": str(data), **named}, environment())


def descriptors() -> set[str]:
    """Without the files of brokers that other tests keep running in this process."""
    gc.collect()
    return {
        f"{name} {target}"
        for name in os.listdir("/proc/self/fd")  # noqa: PTH208
        if (target := _target(name)) and "eventpoll" not in target and "/ottla-" not in target
    }


def threads() -> set[str]:
    """Without those that the loop keeps to look up addresses, and the pools of other brokers."""
    others = ("asyncio", "ottla_")  # ours has no pool of its own
    return {thread.name for thread in threading.enumerate() if not thread.name.startswith(others)}


def _target(name: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{name}")  # noqa: PTH115
    except FileNotFoundError:
        return ""  # the one that was listing


@contextmanager
def nothing_left() -> Iterator[None]:
    """Neither a task, nor a thread, nor a descriptor more than before."""
    before = asyncio.all_tasks(), threads(), descriptors()
    yield
    assert (asyncio.all_tasks(), threads()) == before[:2]
    assert descriptors() <= before[2]


@pytest.mark.real_loop
async def test_a_start_and_a_stop_leave_nothing_behind_but_the_data(tmp_path: Path) -> None:
    with nothing_left():
        broker = app(tmp_path, metrics_port="0")
        await broker.start()
        assert (tmp_path / ".lock").exists()
        assert not (tmp_path / CLEAN_SHUTDOWN).exists()
        await broker.stop()
    assert (tmp_path / CLEAN_SHUTDOWN).exists()


@pytest.mark.parametrize(
    ("host", "elsewhere"), [(None, False), ("127.0.0.1", False), ("0.0.0.0", True)]
)
@pytest.mark.real_loop
async def test_metrics_are_served_where_the_broker_listens_unless_it_is_said_otherwise(
    tmp_path: Path, host: str | None, elsewhere: bool
) -> None:
    async def reached(address: str, port: int | None) -> bool:
        try:
            _, writer = await asyncio.open_connection(address, port)
        except OSError:
            return False
        writer.close()
        return True

    more = {} if host is None else {"metrics_host": host}
    broker = app(tmp_path, metrics_port="0", **more)
    await broker.start()
    try:
        assert await reached("127.0.0.1", broker.metrics_port)
        assert await reached("127.0.0.2", broker.metrics_port) == elsewhere
    finally:
        await broker.stop()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"listeners": "PLAINTEXT://127.0.0.1:{taken}"}, "listeners"),
        ({"listeners": FREE + ",OTHER://127.0.0.1:{taken}"}, "listeners"),
        ({"metrics.port": "{taken}"}, "metrics.port"),
        ({"listeners": "NOBODY://127.0.0.1:0"}, "NOBODY"),
        (
            {
                "zookeeper.connect": "127.0.0.1:{taken}/nobody",
                "zookeeper.connection.timeout.ms": "200",
                "zookeeper.session.timeout.ms": "1000",  # a server that is silent is given so long
            },
            "ZooKeeper at 127.0.0.1",
        ),
        ({"broker.id": "7"}, "broker.id"),
    ],
    ids=["port", "second port", "metrics port", "listener", "zookeeper", "identity"],
)
@pytest.mark.real_loop
async def test_a_start_that_fails_leaves_nothing_behind_and_names_what_failed(
    tmp_path: Path, settings: dict[str, str], message: str
) -> None:
    protocols = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT"}
    first = app(tmp_path, broker_id="3")
    await first.start()
    await first.stop()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        named = {key: value.replace("{taken}", port) for key, value in settings.items()}
        data = {"listeners": FREE, "log.dirs": str(tmp_path), "broker.id": "3", **protocols}
        with nothing_left(), pytest.raises(UserError, match=message):
            await App({**data, **named}, environment()).start()
    again = app(tmp_path, broker_id="3")
    await again.start()
    await again.stop()


@pytest.mark.real_loop
async def test_a_directory_has_one_broker_at_a_time(tmp_path: Path) -> None:
    first = app(tmp_path)
    await first.start()
    with nothing_left(), pytest.raises(UserError, match="another process is using"):
        await app(tmp_path).start()
    with Line(first.bootstrap_servers) as line:
        await asyncio.to_thread(create_topics, line, ["t"])
    await first.stop()


@pytest.mark.spec("SEC-02")
@pytest.mark.real_loop
async def test_the_ready_line_names_the_port_that_was_really_taken(tmp_path: Path) -> None:
    broker = app(tmp_path, broker_id="5", listeners="A://127.0.0.1:0,B://127.0.0.1:0",
              listener_security_protocol_map="A:PLAINTEXT,B:PLAINTEXT",
              inter_broker_listener_name="A")  # fmt: skip
    await broker.start()
    first, second = broker.endpoints
    assert 0 < first.port != second.port > 0
    assert broker.ready_line == (
        f"broker 5 ready on A://127.0.0.1:{first.port}, B://127.0.0.1:{second.port}, "
        f"data in {tmp_path}"
    )
    assert broker.bootstrap_servers == f"127.0.0.1:{first.port},127.0.0.1:{second.port}"
    for endpoint in broker.endpoints:
        socket.create_connection((endpoint.host, endpoint.port)).close()
    await broker.stop()


@pytest.mark.real_loop
async def test_a_restart_finds_topics_records_and_settings_again(tmp_path: Path) -> None:
    def first_life(servers: str) -> None:
        with Line(servers) as line:
            create_topics(line, ["t"], retention_ms="12345678")
            assert produced(line, "t", batch("a", "b")).base_offset == 0

    def second_life(servers: str) -> None:
        with Line(servers) as line:
            answer = fetched(line, "t")
            assert answer.high_watermark == 2
            assert produced(line, "t", batch("c")).base_offset == 2

    for life in (first_life, second_life):
        broker = app(tmp_path)
        await broker.start()
        await asyncio.to_thread(life, broker.bootstrap_servers)
        assert broker.dynamic.topic("t").retention_ms == 12_345_678
        await broker.stop()


@pytest.mark.spec("NET-16")
@pytest.mark.real_loop
async def test_a_stop_answers_who_waits_and_does_not_wait_with_them(tmp_path: Path) -> None:
    broker = app(tmp_path)
    await broker.start()
    with Line(broker.bootstrap_servers) as line:
        await asyncio.to_thread(create_topics, line, ["t"])
        await asyncio.to_thread(
            line.send_request, FETCH, 12, **{**fetch_fields("t"), "max_wait": 600_000}
        )
        while not parked(broker):
            await turn()
        loop = asyncio.get_running_loop()
        began = loop.time()
        await broker.stop()
        assert loop.time() - began < DRAIN_MS / 1000
        assert await asyncio.to_thread(line.receive) is not None
        assert await asyncio.to_thread(line.is_closed)


async def turn() -> None:
    """Let the broker on this loop go on."""
    await asyncio.sleep(0)


def parked(broker: App) -> float:
    name = "kafka_server_delayedoperationpurgatory_num_delayed_operations"
    [family] = [family for family in broker.registry.families() if family.name == name]
    waiting = family.metrics[(("delayed_operation", "Fetch"),)]
    assert callable(waiting)
    return waiting()


@pytest.mark.real_loop
async def test_a_broker_that_stopped_can_be_followed_by_another_in_the_same_process(
    tmp_path: Path,
) -> None:
    ports = []
    for _ in range(3):
        broker = app(tmp_path)
        await broker.start()
        ports.append(broker.endpoints[0].port)
        await broker.stop()
    assert len(ports) == 3
