"""`ottla zookeeper start`: a ZooKeeper, or an ensemble of several, for development."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Final

import typer

from ottla.cli.console import elapsed_seconds
from ottla.cli.zookeeper.ensemble import Server, running_servers
from ottla.model.errors import UserError

CHECK_EVERY_S: Final = 0.1
READY_TIMEOUT_S: Final = 60.0
SERVERS_MAX: Final = 9


class _Stopped(Exception):
    """SIGTERM or SIGINT."""


def start(
    *,
    servers: Annotated[
        int, typer.Option(min=1, max=SERVERS_MAX, help="Run this many; three survive without one.")
    ] = 1,
    data: Annotated[
        Path, typer.Option(metavar="DIR", help="Store the servers' files here.")
    ] = Path("zookeeper-data"),
    port: Annotated[
        int,
        typer.Option(
            min=1, max=65_535 - SERVERS_MAX, help="Listen on this port and the next ones."
        ),
    ] = 2181,
) -> int:
    """Run ZooKeeper on this machine until Ctrl-C, for development and tests.

    It needs Java and the jars that PySpark brings. What is stored stays in DIR and is found again
    by the next start.

    Examples:
      ottla zookeeper start
      ottla zookeeper start --servers 3 --data ./zookeeper-data --port 2181
    """
    ports = range(port, port + servers)
    try:
        with _signals_raise(), running_servers(data.resolve(), ports) as running:
            _wait_until_ready(running)
            connect = ",".join(server.address for server in running)
            print(f"brokers connect with zookeeper.connect={connect}", flush=True)
            return _watch(running)
    except _Stopped:
        return 0


def _wait_until_ready(servers: Sequence[Server]) -> None:
    waiting = list(servers)
    for _ in elapsed_seconds(READY_TIMEOUT_S, CHECK_EVERY_S):
        for server in list(waiting):
            if server.process.poll() is not None:
                raise UserError(
                    f"ZooKeeper server {server.number} ended during its start; "
                    f"{server.end_of_log()}"
                )
            mode = server.mode()
            if mode is not None:
                print(
                    f"ZooKeeper server {server.number} ready on {server.address} ({mode})",
                    flush=True,
                )
                waiting.remove(server)
        if not waiting:
            return
    numbers = ", ".join(str(server.number) for server in waiting)
    raise UserError(
        f"ZooKeeper server {numbers} not ready within {READY_TIMEOUT_S:g} s; "
        f"{waiting[0].end_of_log()}"
    )


def _watch(servers: Sequence[Server]) -> int:
    """Until a signal comes, or no server is left. The others may go on without one that ends."""
    running = list(servers)
    for _ in elapsed_seconds(float("inf"), CHECK_EVERY_S):
        for server in [each for each in running if each.process.poll() is not None]:
            running.remove(server)
            print(
                f"ZooKeeper server {server.number} ended with code {server.process.returncode}; "
                f"see {server.log}",
                flush=True,
            )
        if not running:
            break
    return 1


@contextmanager
def _signals_raise() -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise _Stopped

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
