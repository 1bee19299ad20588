"""The process around one broker: signals in, the ready line and an exit code out.

Owns standard output, the log's format and the signals. Never builds a part of the broker.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import resource
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from ottla.broker.app import App
from ottla.broker.data_plane import NoLogDirectoryOnline
from ottla.broker.environment import Environment
from ottla.broker.log_format import LogStyle
from ottla.model.errors import UserError
from ottla.store.port import SessionExpired, StoreUnavailable

__all__ = ["LogStyle", "run"]

log = logging.getLogger("ottla")

GC_THRESHOLDS: Final = (5_000, 2, 2_000)
"""Requests make few cycles, and what stays (a group, a connection) stays for long: look through new
objects a few at a time, and through all of them hardly ever. With 5,000 groups an object costs up
to a microsecond, and 50,000 at a time stopped the loop for 60 ms: benchmarks/groups.py."""
SWITCH_S: Final = 0.0005
"""How long a pool thread may keep the interpreter from the loop. At Python's own 5 ms the p99 of a
produce while a log is compacted was 8 ms: benchmarks/compaction_latency.py."""


def run(settings: Mapping[str, str], logs: LogStyle | None = None) -> int:
    """Run a broker until SIGTERM or SIGINT; its exit code."""
    (logs or LogStyle()).apply()
    gc.set_threshold(*GC_THRESHOLDS)
    sys.setswitchinterval(SWITCH_S)
    _allow_descriptors()
    try:
        _loop_runner()(_serve(settings))
    except UserError:
        raise
    except (StoreUnavailable, SessionExpired) as gone:
        log.critical("the broker stops: the metadata cannot be reached: %s", gone)
        return 1
    except NoLogDirectoryOnline as gone:
        log.critical("broker stopped: %s; mend or replace the disk, then start it again", gone)
        return 1
    except Exception as failure:
        log.critical("the broker stops: %s", failure, exc_info=failure)
        return 1
    return 0


def _allow_descriptors() -> None:
    """As many as the system lets us have: connections and files of logs need one each."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def _serve(settings: Mapping[str, str]) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for one in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(one, stop.set)
    world = Environment.real()
    app = App(settings, world)
    await app.start()
    print(app.ready_line, flush=True)
    gc.freeze()  # what a broker starts with stays for good: the collector need never look at it
    gc.enable()
    try:
        await stop.wait()
    finally:
        await app.stop()
        world.close()


def _loop_runner() -> Callable[[Coroutine[Any, Any, None]], None]:
    """uvloop's where it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    runner: Callable[[Coroutine[Any, Any, None]], None] = uvloop.run
    return runner
