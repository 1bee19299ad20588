"""A whole broker in a simulation: it starts, stops, is killed, and loses power.

Owns the process it runs in, and what outlives it: the disk and the metadata store. Never looks
inside the broker; `App` and `Environment` are the same as everywhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextvars import Context, copy_context
from pathlib import Path
from random import Random
from typing import Final

from ottla.broker.app import App
from ottla.broker.data_plane import NoLogDirectoryOnline
from ottla.broker.environment import Environment
from ottla.store.memory import Ensemble, MemoryStore
from ottla.store.port import Op, Result, Watch
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.sim.loop import Process, SimClock
from tests.sim.network import NetLoop

HOST: Final = "broker"
PORT: Final = 9092
DATA: Final = "/data"


class SimStore(MemoryStore):
    """A session whose answers take a while: a write may be done and nobody told of it."""

    context: Context

    async def start(self) -> None:
        self.context = copy_context()
        await super().start()

    def call_watch(self, watch: Watch, path: str) -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(self._deliver, watch, path, context=self.context)

    async def multi(self, ops: Sequence[Op]) -> list[Result]:
        results = await super().multi(ops)
        await self._pause()
        return results


class SimBroker:
    """One broker, in one life after another."""

    def __init__(
        self,
        loop: NetLoop,
        clock: SimClock,
        disk: ForgettingDisk,
        settings: Mapping[str, str],
        host: str = HOST,
    ) -> None:
        self.settings = {
            "broker.id": "0",
            "listeners": f"PLAINTEXT://{host}:{PORT}",
            "log.dirs": DATA,
            **settings,
        }
        self.host = host
        self.ensemble = Ensemble()
        self.disk = disk
        self.app: App | None = None
        self.lives: list[Process] = []
        self.loop = loop
        self._clock = clock
        self._dice = Random(loop.dice.random())
        self._stop = asyncio.Event()
        self._main: asyncio.Task[None] | None = None
        self._stores: list[SimStore] = []

    @property
    def running(self) -> bool:
        return bool(self.lives) and self.lives[-1].alive

    @property
    def data_dirs(self) -> list[Path]:
        return [Path(path) for path in self.settings["log.dirs"].split(",")]

    def check(self) -> None:
        """Raise what ended it, if anything but us did."""
        if self._main is not None and self._main.done():
            self._main.result()
            raise AssertionError("the broker stopped unexpectedly")

    def gave_up(self) -> bool:
        """Whether it ended because its last log directory failed."""
        assert self._main is not None
        if not self._main.done() or not _has(self._main.exception(), NoLogDirectoryOnline):
            return False
        self._buried()
        return True

    def begin(self) -> asyncio.Future[None]:
        """Start a life; what is returned is done when it is ready, or has failed to be."""
        assert not self.running
        self.loop.network.down.discard(self.host)
        process = Process(f"{self.host}-{len(self.lives)}", self.host)
        self.lives.append(process)
        self._stop = asyncio.Event()
        ready: asyncio.Future[None] = self.loop.create_future()
        with process.running():
            self._main = self.loop.create_task(self._live(ready))
        return ready

    async def stop(self) -> None:
        """A graceful stop, as SIGTERM asks for. Only a bad disk may spoil it."""
        assert self._main is not None
        self._stop.set()
        await asyncio.wait([self._main])
        if not (self.disk.is_broken and self.gave_up()):
            self._main.result()
            self._buried()

    def _buried(self) -> None:
        """It ended by itself; nothing of it may be left."""
        process = self.lives[-1]
        left = process.pending()
        process.alive = False
        self._stores.clear()
        assert not left, f"tasks outlived the broker: {left}"

    def kill(self) -> None:
        """kill -9: the process is gone, the page cache is not."""
        self._die(silently=False)
        self.disk.kill()

    def cut_power(self) -> None:
        """Everything that was not flushed is at the mercy of the dice, and nobody is told."""
        self.loop.network.down.add(self.host)
        self._die(silently=True)
        self.disk.crash(self._dice.getrandbits(32))

    def _die(self, *, silently: bool) -> None:
        process = self.lives[-1]
        self.loop.kill(process)
        self.loop.network.lose(process, silently=silently)
        for store in self._stores:
            if store.session:  # it got as far as opening one
                self._end_session(store.session)
        self._stores.clear()

    def _end_session(self, session: int) -> None:
        """The store learns that the process is gone."""
        self.ensemble.end(session)

    async def _live(self, ready: asyncio.Future[None]) -> None:
        world = Environment(
            clock=self._clock,
            dice=Random(self._dice.random()),
            disk=self.disk,
            open_store=lambda _: self._open_store(),
            join_store=lambda _: self._open_store(),
            pool=None,
            random_bytes=Random(self.lives[-1].name).randbytes,
        )
        self.app = app = App(self.settings, world)
        try:
            await app.start()
        except Exception as error:
            ready.set_exception(error)
            return
        ready.set_result(None)
        try:
            await self._stop.wait()
        finally:
            await app.stop()

    def _open_store(self) -> SimStore:
        store = SimStore(self.ensemble, self._pause)
        self._stores.append(store)
        return store

    async def _pause(self) -> None:
        await asyncio.sleep(self._dice.random() ** 4 * 0.005)


def _has(error: BaseException | None, kind: type[BaseException]) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(_has(one, kind) for one in error.exceptions)
    return isinstance(error, kind)
