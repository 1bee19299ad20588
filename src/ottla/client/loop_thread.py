"""An event loop on a thread of its own, for the synchronous clients.

Owns: the thread, and what happens when the process forks or exits. Never knows what runs on it.

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
from typing import TypeVar

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
        # A daemon: a program that does not close its client must still be able to exit.
        self._thread = threading.Thread(
            target=self._main, args=(ready,), name=self._name, daemon=True
        )
        self._thread.start()
        ready.wait()

    @property
    def is_current(self) -> bool:
        """Whether the caller is on this thread, where waiting for it would deadlock."""
        return threading.current_thread() is self._thread

    def submit(self, work: Coroutine[object, None, T]) -> Future[T]:
        """Run `work` on the loop without waiting for it."""
        try:
            loop = self._running_loop()
        except BaseException:
            work.close()
            raise
        return asyncio.run_coroutine_threadsafe(work, loop)

    @property
    def is_stopped(self) -> bool:
        return self._loop is None

    def run(self, work: Coroutine[object, None, T], timeout: float | None = None) -> T:
        """Run `work` on the loop and return its result; TimeoutError after `timeout` seconds.

        `work` is cancelled if the wait ends early.
        """
        future = self.submit(work)
        try:
            return future.result(timeout)
        except FutureTimeout:
            if future.done():
                raise  # the work itself timed out; its message says more
            future.cancel()
            raise TimeoutError(f"operation did not complete within {timeout} s") from None
        except BaseException:  # an interrupt of the waiting thread
            future.cancel()
            raise

    def call_soon(self, function: Callable[..., object], *arguments: object) -> None:
        """Schedule `function` on the loop."""
        self._running_loop().call_soon_threadsafe(function, *arguments)

    def stop(self) -> None:
        """Cancel all tasks and stop the loop; does nothing after a fork."""
        if self._loop is None or self._pid != os.getpid():
            return
        with suppress(RuntimeError):  # it ended already
            self._loop.call_soon_threadsafe(self._loop.stop)
        if self._thread is not None and not self.is_current:
            self._thread.join()
        self._loop = None

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            raise UserError("this client is closed; create a new one")
        if self._pid != os.getpid():
            raise UserError(
                "this client was created before the process forked, and its thread does not exist "
                "here; create the client in the process that uses it"
            )
        if self.is_current:
            raise UserError(
                "a callback runs on the client's own thread and cannot wait for the client; "
                "call it from another thread, or use the client in ottla.aio"
            )
        return self._loop

    def _main(self, ready: threading.Event) -> None:
        with asyncio.Runner() as runner:
            self._loop = runner.get_loop()
            ready.set()
            self._loop.run_forever()
