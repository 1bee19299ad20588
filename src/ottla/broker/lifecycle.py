"""The process around one broker: signals in, the ready line and an exit code out.

Owns standard output, log configuration and signal handling. Never builds a part of the broker.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import resource
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

from ottla.broker.app import App
from ottla.broker.data_plane import NoLogDirectoryOnline
from ottla.broker.environment import Environment
from ottla.config.broker import BrokerConfig
from ottla.log.files import OutOfResources
from ottla.model.errors import UserError
from ottla.model.text import printable
from ottla.store.port import SessionExpired, StoreUnavailable

TEXT: Final = "text"
JSON: Final = "json"
FORMATS: Final = (TEXT, JSON)
LEVELS: Final = ("debug", "info", "warning", "error", "critical")
LINE: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class LogStyle(NamedTuple):
    """Level and format of the log."""

    level: str = "info"
    format: str = TEXT

    def apply(self) -> None:
        """Log to stderr from now on."""
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(JsonLine() if self.format == JSON else TextLine(LINE))
        logging.basicConfig(level=self.level.upper(), handlers=[handler])


class TextLine(logging.Formatter):
    """A record as one line of text, whatever names of clients, users and groups are in it."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = printable(record.message)
        return super().formatMessage(record)


class JsonLine(logging.Formatter):
    """A record as one line of JSON: time, level, logger, message, and the exception if any."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = {
            "time": time.replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)


log = logging.getLogger("ottla")

GC_THRESHOLDS: Final = (4_000, 1, 5_000)
"""Requests create few reference cycles, and long-lived objects (groups, connections) stay: collect
the young generation often and the oldest hardly ever. With 5,000 groups an object costs up to a
microsecond, and 50,000 at a time stopped the loop for 60 ms: benchmarks/groups.py. With 30,000
partitions, whose objects are cold, 15,000 took up to 30 ms: benchmarks/stalls.py."""
SWITCH_S: Final = 0.0005
"""How long a pool thread may keep the interpreter from the loop. At Python's own 5 ms the p99 of a
produce while a log is compacted was 8 ms: benchmarks/compaction_latency.py."""


def run(settings: Mapping[str, str], logs: LogStyle | None = None) -> int:
    """Run a broker until SIGTERM or SIGINT; returns the exit code."""
    (logs or LogStyle()).apply()
    gc.set_threshold(*GC_THRESHOLDS)
    sys.setswitchinterval(SWITCH_S)
    _raise_descriptor_limit()
    os.umask(int(BrokerConfig.parse(settings).log_dirs_umask, 8))
    try:
        _loop_runner()(_serve(settings))
    except UserError:
        raise
    except (StoreUnavailable, SessionExpired) as error:
        log.critical("broker stopped: metadata store unavailable: %s", error)
        return 1
    except NoLogDirectoryOnline as error:
        log.critical("broker stopped: %s; repair or replace the disk, then restart it", error)
        return 1
    except OutOfResources as error:
        log.critical("broker stopped: %s", error)
        return 1
    except Exception as error:
        log.critical("broker stopped: unexpected error: %s", error, exc_info=error)
        return 1
    return 0


def _raise_descriptor_limit() -> None:
    """To the hard limit: each connection and each log file needs a descriptor."""
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))


async def _serve(settings: Mapping[str, str]) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    environment = Environment.real()
    app = App(settings, environment)
    await app.start()
    print(app.ready_line, flush=True)
    gc.freeze()  # objects of the start live until the end: no need to scan them
    gc.enable()
    try:
        await stop.wait()
    finally:
        await app.stop()
        environment.close()


def _loop_runner() -> Callable[[Coroutine[object, None, None]], None]:
    """uvloop's runner if it is installed, otherwise asyncio's."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    runner: Callable[[Coroutine[object, None, None]], None] = uvloop.run
    return runner
