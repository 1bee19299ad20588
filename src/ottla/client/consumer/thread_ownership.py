"""One user at a time: a consumer is not thread-safe, and says so when it is misused.

Owns who is inside. Not a lock: nobody waits. A listener that is called inside `poll` may call the
consumer again, so the same user may enter more than once.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Final, NamedTuple

from ottla.client.consumer.errors import ConcurrentUse

_INSIDE: Final = "inside"


class OwningThread(NamedTuple):
    """A thread or a task."""

    id: int
    name: str


class ThreadOwnership:
    """`with ownership:` around every public method but `wakeup`."""

    def __init__(self, kind: str, who: Callable[[], OwningThread]) -> None:
        self._kind = kind
        self._who = who
        self._users: dict[str, OwningThread] = {}
        self._depth = 0

    def __enter__(self) -> None:
        me = self._who()
        inside = self._users.setdefault(_INSIDE, me)  # one step: compare and set
        if inside.id != me.id:
            raise ConcurrentUse(
                f"a consumer is for one {self._kind} at a time: {self._kind} {me.name!r} called it "
                f"while {self._kind} {inside.name!r} was inside; give each its own consumer"
            )
        self._depth += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._depth -= 1
        if not self._depth:
            del self._users[_INSIDE]
