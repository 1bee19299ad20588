"""A pool whose threads are the caller's own: work is done by the time it is handed in."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any


class InlinePool(Executor):
    """Runs work at once, or keeps it until `run_all` while `held`."""

    def __init__(self) -> None:
        self.held = False
        self.fault: Exception | None = None
        """What happens instead of the work, while it is set."""
        self._waiting: list[Callable[[], None]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def work() -> None:
            try:
                if self.fault is not None:
                    raise self.fault
                future.set_result(fn(*args, **kwargs))
            except Exception as error:
                future.set_exception(error)

        if self.held:
            self._waiting.append(work)
        else:
            work()
        return future

    @property
    def waiting(self) -> int:
        """How much was kept."""
        return len(self._waiting)

    def run_all(self) -> None:
        """Let everything that was kept happen now."""
        waiting, self._waiting = self._waiting, []
        for work in waiting:
            work()
