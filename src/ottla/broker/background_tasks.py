"""Starting work on the way, until the broker ends.

Owns nothing. Once a part of the broker has failed its task group takes no more work and says so
with an error. Whoever wants to start something in that moment is not at fault, so here it is an
answer instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


def task_starter(tasks: asyncio.TaskGroup) -> Callable[[Coroutine[Any, Any, None]], bool]:
    """A function that starts work in this group; False: the broker ends, it was not begun."""

    def spawn(work: Coroutine[Any, Any, None]) -> bool:
        try:
            tasks.create_task(work)
        except RuntimeError:
            work.close()
            return False
        return True

    return spawn
