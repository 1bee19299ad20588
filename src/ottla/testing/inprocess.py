"""The broker as an object of a test: `with Broker() as broker` or `async with`.

Owns a temporary directory and, in the synchronous form, one thread with an event loop. Never
differs from `ottla serve` in what it runs; only its defaults suit a test: a free port, no fsync
before an acknowledgement, nothing kept afterwards.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from ottla.broker.app import App
from ottla.broker.environment import Environment

FOR_TESTS: Final[Mapping[str, str]] = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "flush.before.ack": "never",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.ms": "-1",  # tests write what time they like: records of 2023 stay as well
}


class Broker:
    """One broker, for as long as the block lasts.

    `settings` are Kafka's broker settings. With `data_dir` the data stays there afterwards, and a
    second Broker on it finds it again.
    """

    def __init__(
        self, settings: Mapping[str, str] | None = None, *, data_dir: Path | None = None
    ) -> None:
        self._settings = {**FOR_TESTS, **(settings or {})}
        self._data_dir = data_dir
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._app: App | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._world: Environment | None = None
        self._failure: BaseException | None = None

    @property
    def bootstrap_servers(self) -> str:
        """What a client's `bootstrap.servers` wants."""
        assert self._app is not None, "the broker runs inside its with block"
        return self._app.bootstrap_servers

    @property
    def metrics_port(self) -> int | None:
        """Where the Prometheus page is; None without the setting `metrics.port`."""
        assert self._app is not None, "the broker runs inside its with block"
        return self._app.metrics_port

    @property
    def data_dir(self) -> Path:
        assert self._app is not None, "the broker runs inside its with block"
        return Path(self._app.config.data_dirs[0])

    # async with: on the caller's own loop

    async def __aenter__(self) -> Self:
        try:
            self._app = self._build()
            await self._app.start()
        except BaseException:
            self._clean()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._app is not None
        try:
            await self._app.stop()
        finally:
            self._clean()

    # with: on a loop of its own, in a thread

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._failure = None
        self._thread = threading.Thread(
            target=self._serve, args=(ready,), name="ottla-broker", daemon=True
        )
        self._thread.start()
        ready.wait()
        if self._failure is not None:
            self._thread.join()
            self._clean()
            raise self._failure
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._loop is not None
        assert self._stop is not None
        assert self._thread is not None
        with suppress(RuntimeError):  # it failed meanwhile, and its loop is closed
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._clean()
        if self._failure is not None and error is None:
            raise self._failure

    def _serve(self, ready: threading.Event) -> None:
        async def main() -> None:
            self._loop = asyncio.get_running_loop()
            self._stop = asyncio.Event()
            self._app = self._build()
            await self._app.start()
            ready.set()
            try:
                await self._stop.wait()
            finally:
                await self._app.stop()

        try:
            asyncio.run(main())
        except BaseException as failure:
            self._failure = failure
        finally:
            ready.set()

    def _build(self) -> App:
        directory = self._data_dir
        if directory is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="ottla-")
            directory = Path(self._temporary.name)
        self._world = Environment.real()
        return App({**self._settings, "log.dirs": str(directory)}, self._world)

    def _clean(self) -> None:
        if self._world is not None:
            self._world.close()
            self._world = None
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None
