"""The command `ottla`, with its outgoing connections sent through other addresses.

    python tests/cluster/routed_ottla.py '{"127.0.0.3:9092": ["127.0.0.1", 40001]}' serve …

Stands for the network of a machine: what a broker connects to another broker or to ZooKeeper
passes a proxy of that pair, although all brokers advertise the same addresses to everybody.
Nothing else of the program differs, but that SIGUSR2 has it write where its tasks wait.
"""

from __future__ import annotations

import asyncio
import json
import runpy
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from typing import Any


def route(routes: Mapping[tuple[str, int], tuple[str, int]]) -> None:
    """Redirect connections of asyncio's loop, of uvloop's, and of blocking sockets."""

    def on_loop(create: Callable[..., Any]) -> Callable[..., Any]:
        async def create_connection(
            loop: Any, factory: Any, host: str, port: int, **options: Any
        ) -> Any:
            host, port = routes.get((host, port), (host, port))
            return await create(loop, factory, host, port, **options)

        return create_connection

    connect = socket.create_connection

    def create_connection(address: Any, *rest: Any, **options: Any) -> socket.socket:
        return connect(routes.get((address[0], address[1]), address), *rest, **options)

    socket.create_connection = create_connection
    loops: list[Any] = [asyncio.BaseEventLoop]
    try:
        import uvloop
    except ImportError:
        pass
    else:
        loops.append(uvloop.Loop)
    for loop in loops:
        loop.create_connection = on_loop(loop.create_connection)


def describe_tasks() -> str:
    """For every task of the running loop, the lines at which it and what it awaits wait."""
    lines = []
    for task in asyncio.all_tasks():
        lines.append(f"task {task.get_name()}, cancelled {task.cancelling()} times:")
        waits: Any = task.get_coro()
        while waits is not None:
            frame = getattr(waits, "cr_frame", None) or getattr(waits, "ag_frame", None)
            if frame is not None:
                code = frame.f_code
                lines.append(f"    {code.co_qualname} {code.co_filename}:{frame.f_lineno}")
            waits = getattr(waits, "cr_await", None) or getattr(waits, "ag_await", None)
    return "\n".join(lines)


def main() -> None:
    given: dict[str, tuple[str, int]] = json.loads(sys.argv.pop(1))
    routes = {}
    for address, (host, port) in given.items():
        name, _, number = address.rpartition(":")
        routes[name, int(number)] = (host, port)
    route(routes)
    signal.signal(signal.SIGUSR2, lambda *_: print(describe_tasks(), file=sys.stderr, flush=True))
    runpy.run_module("ottla", run_name="__main__")


if __name__ == "__main__":
    main()
