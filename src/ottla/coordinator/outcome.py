"""What a coordinator's decision yields: a reply, records to persist, timers to set, effects.

Owns nothing. A decision never appends, answers, logs, waits or reads a clock; the runtime executes
it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode

R_co = TypeVar("R_co", covariant=True)


Change: TypeAlias = Any
"""The typed value of a record of an internal topic; only the coordinator whose it is looks in."""
Reply: TypeAlias = Any
"""To a request that waits; of the type that the sender of that request expects."""


class CoordinatorRecord(NamedTuple):
    """One record of an internal topic: its typed value and its bytes."""

    change: Change
    key: bytes
    value: bytes | None
    """None is a tombstone."""


class SetTimer(NamedTuple):
    """Call the shard's `on_timer` with this key after the delay; replaces a timer of that key."""

    key: Hashable
    delay_ms: int


class CancelTimer(NamedTuple):
    key: Hashable


TimerOp: TypeAlias = SetTimer | CancelTimer


class Answer(NamedTuple):
    """Send a reply to a request that waits."""

    request: Callable[[Reply], object]
    """Sends the reply; only the executor calls it."""
    reply: Reply


class LogLine(NamedTuple):
    """Log a message, at level INFO."""

    logger: str
    message: str
    arguments: tuple[object, ...]


Effect: TypeAlias = Answer | LogLine


class Outcome(NamedTuple, Generic[R_co]):
    """The result of a decision; a tuple for speed, because a transaction makes four of them.

    The records become one atomic batch, as long as one batch can hold them. `then` is called when
    they are committed or their commit failed, with the error code and the time.

    `effects` are performed at once, also if the records cannot be appended.

    Records written `lazily` can be derived from the log again if they are lost. Nobody waits for
    them, and they share the batch of the next records.
    """

    reply: R_co
    records: tuple[CoordinatorRecord, ...] = ()
    timers: tuple[TimerOp, ...] = ()
    then: Then | None = None
    lazily: bool = False
    effects: tuple[Effect, ...] = ()


Then: TypeAlias = "Callable[[ErrorCode, WallMs], Outcome[None]]"

NOTHING: Outcome[None] = Outcome(None)
