"""What will be known soon, told to whoever waits in the very call that finds it out.

Owns who waits. Never takes a turn of the loop: a future's callbacks run one turn later, and a
transaction waits for four things one after the other (benchmarks/transactions.py).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from ottla.model.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)

T = TypeVar("T")


class DeferredReply(Generic[T]):
    """Settled once. It may be awaited; whoever stops waiting disturbs nobody."""

    __slots__ = ("_calls", "_value", "settled")

    _value: T

    def __init__(self) -> None:
        self.settled = False
        self._calls: list[Callable[[T], object]] = []

    def settle(self, value: T) -> None:
        assert not self.settled, "settled twice"
        self.settled = True
        self._value = value
        calls, self._calls = self._calls, []
        for call in calls:
            _call(call, value)

    def then(self, call: Callable[[T], object]) -> None:
        """Call this when it is settled, which may be now; after whoever asked before."""
        if self.settled:
            _call(call, self._value)
        else:
            self._calls.append(call)

    def __await__(self) -> Generator[Any, None, T]:
        if not self.settled:
            woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._calls.append(lambda _: None if woken.done() else woken.set_result(None))
            yield from woken
        return self._value


Commit: TypeAlias = DeferredReply[ErrorCode]
"""When what was appended is committed; or what a client hears because it is not.

A name for annotations: called, it costs three times what `DeferredReply` does.
"""


def all_of(commits: Sequence[Commit]) -> Commit:
    """Settled with the last of them, by the first refusal if there is one."""
    whole: Commit = DeferredReply()
    left = len(commits)
    worst = ErrorCode.none

    def one(code: ErrorCode) -> None:
        nonlocal left, worst
        left -= 1
        if worst is ErrorCode.none:
            worst = code
        if not left:
            whole.settle(worst)

    for commit in commits:
        commit.then(one)
    return whole


async def committed(commit: Commit | None) -> None:
    """Wait for it, if there is anything to wait for; KafkaError where it is refused."""
    if commit is not None:
        code = await commit
        if code is not ErrorCode.none:
            raise KafkaError(code)


def _call(call: Callable[[T], object], value: T) -> None:
    try:
        call(value)
    except Exception:  # one waiter's fault must not cost the others their turn
        log.exception("a waiter failed")
