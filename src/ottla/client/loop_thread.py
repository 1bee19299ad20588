"""An event loop on a thread of its own, for the synchronous faces of the clients.

Owns: the thread, and what happens when the process forks or ends. Never knows what runs on it.

One `LoopThread` for each synchronous client: `run` hands a coroutine to the loop and waits for its
result, `call_soon` hands over a function and does not wait.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from typing import Any, TypeVar

from ottla.model.errors import UserError

T = TypeVar("T")


class LoopThread:
    """A thread that runs one event loop until `stop`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pid = 0

    def start(self) -> None:
        ready = threading.Event()
        self._pid = os.getpid()
        # A daemon: a program that forgets to close its client must still be able to end.
        self._thread = threading.Thread(
            target=self._main, args=(ready,), name=self._name, daemon=True
        )
        self._thread.start()
        ready.wait()

    @property
    def is_current(self) -> bool:
        """Whether the caller is on this very thread, where waiting for it would never end."""
        return threading.current_thread() is self._thread

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Have the loop do `work`, and do not wait for it."""
        try:
            loop = self._checked()
        except BaseException:
            work.close()
            raise
        return asyncio.run_coroutine_threadsafe(work, loop)

    @property
    def is_stopped(self) -> bool:
        return self._loop is None

    def run(self, work: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Do `work` on the loop and wait for what it gives; TimeoutError after `timeout` seconds.

        Work that is not waited for to the end is cancelled.
        """
        future = self.submit(work)
        try:
            return future.result(timeout)
        except FutureTimeout:
            if future.done():
                raise  # the work itself ran out of time, and says so better
            future.cancel()
            raise TimeoutError(f"not done in {timeout} s") from None
        except BaseException:  # an interrupt of the waiting thread
            future.cancel()
            raise

    def call_soon(self, function: Callable[..., object], *arguments: Any) -> None:
        """Have the loop call `function` as soon as it can."""
        self._checked().call_soon_threadsafe(function, *arguments)

    def stop(self) -> None:
        """End the loop once everything on it is cancelled; does nothing after a fork."""
        if self._loop is None or self._pid != os.getpid():
            return
        with suppress(RuntimeError):  # it ended already
            self._loop.call_soon_threadsafe(self._loop.stop)
        if self._thread is not None and not self.is_current:
            self._thread.join()
        self._loop = None

    def _checked(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            raise UserError("this client is closed; make another")
        if self._pid != os.getpid():
            raise UserError(
                "this client was made before the process forked, and its thread stayed behind; "
                "make the client in the process that uses it"
            )
        if self.is_current:
            raise UserError(
                "a callback runs on the client's own thread and cannot wait for the client; "
                "use another thread, or the client of ottla.aio"
            )
        return self._loop

    def _main(self, ready: threading.Event) -> None:
        with asyncio.Runner() as runner:
            self._loop = runner.get_loop()
            ready.set()
            self._loop.run_forever()
