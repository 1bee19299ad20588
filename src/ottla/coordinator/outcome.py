"""What a coordinator's decision yields: a reply, records to persist, timers to set.

Owns nothing. A decision never appends, waits or looks at a clock; the runtime carries it out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from ottla.model.errors import ErrorCode

R = TypeVar("R")


class CoordinatorRecord(NamedTuple):
    """One record of an internal topic, and what it says."""

    what: Any
    """The typed value that `replay` takes; each coordinator has its own."""
    key: bytes
    value: bytes | None
    """None is a tombstone."""


class SetTimer(NamedTuple):
    """Call the shard's `on_timer` with this key after the delay, instead of any earlier plan."""

    key: Hashable
    delay_ms: int


class CancelTimer(NamedTuple):
    key: Hashable


TimerOp: TypeAlias = SetTimer | CancelTimer


class Outcome(NamedTuple, Generic[R]):
    """The whole of a decision; a tuple, for a transaction has four of them.

    The records become one batch, all or none of it, as long as one batch can hold them. `then`
    decides again once they are committed, or once it is known that they are not: it is told
    which, and the time.

    What may be written `lazily` follows from what the log holds already: lost, it is decided
    again. Nobody waits for it, and it shares the batch of the next records.
    """

    reply: R
    records: tuple[CoordinatorRecord, ...] = ()
    timers: tuple[TimerOp, ...] = ()
    then: Then | None = None
    lazily: bool = False


Then: TypeAlias = "Callable[[ErrorCode, int], Outcome[None]]"
Decide: TypeAlias = "Callable[[Any, int], Outcome[R]]"

NOTHING: Outcome[None] = Outcome(None)
