"""Which errors are retried, with what backoff and deadline.

Pure but for `retrying`, the one loop that does it. Time and dice are handed in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Final, Protocol, TypeVar

from ottla.client.errors import ErrorCode, KafkaError
from ottla.model.clock import Clock, MonoMs

T = TypeVar("T")

JITTER: Final = 0.2

STALE: Final = frozenset(
    {
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.leader_not_available,
        ErrorCode.not_leader_or_follower,
        ErrorCode.replica_not_available,
        ErrorCode.kafka_storage_error,
        ErrorCode.listener_not_found,
        ErrorCode.fenced_leader_epoch,
        ErrorCode.unknown_topic_id,
        ErrorCode.inconsistent_topic_id,
        ErrorCode.not_controller,
        ErrorCode.network_exception,
    }
)
"""Errors that mean: the client's metadata is out of date."""

MOVED: Final = frozenset({ErrorCode.not_coordinator, ErrorCode.coordinator_not_available})
"""Errors that mean: another broker is the coordinator now, or will be."""


def is_retriable(error: BaseException) -> bool:
    """Whether the same request may succeed later: a retriable error, or a broker out of reach."""
    if isinstance(error, KafkaError):
        return error.retriable
    return isinstance(error, OSError)  # TimeoutError and ConnectionError are OSErrors


def is_stale(error: BaseException) -> bool:
    """Whether the metadata should be refreshed before the request is retried."""
    if isinstance(error, KafkaError):
        return error.code in STALE
    return isinstance(error, OSError)


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses that double up to a maximum, with jitter."""

    first_ms: int
    max_ms: int
    dice: Random

    def after(self, failures: int) -> int:
        """The pause after this many failures in a row."""
        if failures <= 0:
            return 0
        ceiling = min(self.max_ms, self.first_ms << min(failures - 1, 32))
        return int(ceiling * self.dice.uniform(1 - JITTER, 1 + JITTER))


class Deadline:
    """The point in time at which an operation times out."""

    __slots__ = ("_at_ms", "_clock", "allowed_ms")

    def __init__(self, clock: Clock, allowed_ms: int) -> None:
        self._clock = clock
        self._at_ms = MonoMs(clock.mono_ms() + allowed_ms)
        self.allowed_ms = allowed_ms

    @property
    def left_ms(self) -> int:
        return max(0, self._at_ms - self._clock.mono_ms())

    @property
    def is_over(self) -> bool:
        return self._clock.mono_ms() >= self._at_ms


class Refreshing(Protocol):
    """What a retry needs of a cluster."""

    @property
    def backoff(self) -> Backoff: ...

    async def refresh(self, topics: Iterable[str] | None = ...) -> object: ...


async def retrying(
    cluster: Refreshing,
    attempt: Callable[[], Awaitable[T]],
    deadline: Deadline,
    topics: Iterable[str] = (),
) -> T:
    """Call `attempt` until it succeeds, fails with an error that is not retriable, or times out.

    Retried are the codes that Kafka calls retriable, and brokers out of reach. The loop does not
    know whose code it is: `attempt` sends one request to one broker, so that a code can only be
    that broker's, and itself forgets a coordinator that answers with one of `MOVED`.

    `topics` are those whose leaders it depends on: their metadata is refreshed if that may help.
    """
    failures = 0
    last_error: Exception | None = None
    while True:
        try:
            async with asyncio.timeout(max(deadline.left_ms, 1) / 1e3):
                return await attempt()
        except (KafkaError, OSError) as error:
            if not is_retriable(error):
                raise
            failures += 1
            pause_ms = cluster.backoff.after(failures)
            if last_error is None or str(error):  # not the empty error of our own timeout
                last_error = error
            if deadline.left_ms <= pause_ms:
                reason = error_text(last_error)
                raise TimeoutError(
                    f"timed out after {deadline.allowed_ms} ms; last error: {reason}"
                ) from last_error
            stale = is_stale(error)
        await asyncio.sleep(pause_ms / 1e3)
        if stale:
            await _refresh_metadata(cluster, topics, deadline)


async def _refresh_metadata(cluster: Refreshing, topics: Iterable[str], deadline: Deadline) -> None:
    try:
        async with asyncio.timeout(max(deadline.left_ms, 1) / 1e3):
            await cluster.refresh(topics)
    except (KafkaError, OSError):
        return  # the next attempt reports the error


def error_text(error: BaseException) -> str:
    """The message of an error, or its class name if it has none."""
    return str(error) or type(error).__name__
