"""A value that is set once, later; its callbacks run inside the call that sets it.

Owns the callbacks. Never waits for the event loop: a future's callbacks run one iteration later,
and a transaction waits for four results in a row (benchmarks/transactions.py).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator, Sequence
from typing import Generic, TypeAlias, TypeVar

from ottla.model.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)

T = TypeVar("T")


class DeferredReply(Generic[T]):
    """Settled once. It may be awaited; cancelling one waiter does not affect the others."""

    __slots__ = ("_calls", "_value", "settled")

    _value: T

    def __init__(self) -> None:
        self.settled = False
        self._calls: list[Callable[[T], object]] = []

    def settle(self, value: T) -> None:
        assert not self.settled, "deferred reply settled more than once"
        self.settled = True
        self._value = value
        calls, self._calls = self._calls, []
        for call in calls:
            _call(call, value)

    def then(self, call: Callable[[T], object]) -> None:
        """Run `call` when it is settled, at once if it is; callbacks run in order of addition."""
        if self.settled:
            _call(call, self._value)
        else:
            self._calls.append(call)

    def __await__(self) -> Generator[object, None, T]:
        if not self.settled:
            woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._calls.append(lambda _: None if woken.done() else woken.set_result(None))
            yield from woken
        return self._value


Commit: TypeAlias = DeferredReply[ErrorCode]
"""Settled with `none` when the appended records are committed, or with the error for the client.

For annotations only: calling it costs three times what calling `DeferredReply` does.
"""


def all_of(commits: Sequence[Commit]) -> Commit:
    """Settled when the last of them is, with the first error if there is one."""
    combined: Commit = DeferredReply()
    remaining = len(commits)
    first_error = ErrorCode.none

    def on_settled(code: ErrorCode) -> None:
        nonlocal remaining, first_error
        remaining -= 1
        if first_error is ErrorCode.none:
            first_error = code
        if not remaining:
            combined.settle(first_error)

    for commit in commits:
        commit.then(on_settled)
    return combined


async def wait_for_commit(commit: Commit | None) -> None:
    """Wait for the commit, if there is one; KafkaError if it fails."""
    if commit is not None:
        code = await commit
        if code is not ErrorCode.none:
            raise KafkaError(code)


def _call(call: Callable[[T], object], value: T) -> None:
    try:
        call(value)
    except Exception:  # a failing callback must not keep the others from running
        log.exception("callback of a deferred coordinator reply failed")
