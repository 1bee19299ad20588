"""What may be tried again, how long to wait before, and until when.

Pure but for `retrying`, the one loop that does it. Time and dice are handed in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Final, Protocol, TypeVar

from ottla.client.errors import ErrorCode, KafkaError
from ottla.model.clock import Clock

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
"""Refusals that say: what you know of the cluster is old."""

MOVED: Final = frozenset({ErrorCode.not_coordinator, ErrorCode.coordinator_not_available})
"""Refusals that say: another broker is the coordinator now, or will be."""


def is_retriable(error: BaseException) -> bool:
    """Whether the same request may succeed later: a passing refusal, or a broker out of reach."""
    if isinstance(error, KafkaError):
        return error.retriable
    return isinstance(error, OSError)  # TimeoutError and ConnectionError are OSErrors


def is_stale(error: BaseException) -> bool:
    """Whether the cluster should be looked at anew before the request is made again."""
    if isinstance(error, KafkaError):
        return error.code in STALE
    return isinstance(error, OSError)


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses that double up to a bound, never in step with other clients'."""

    first_ms: int
    max_ms: int
    dice: Random

    def after(self, failures: int) -> int:
        """How long to wait after so many failures in a row."""
        if failures <= 0:
            return 0
        ceiling = min(self.max_ms, self.first_ms << min(failures - 1, 32))
        return int(ceiling * self.dice.uniform(1 - JITTER, 1 + JITTER))


class Deadline:
    """A point in time until which something may take."""

    __slots__ = ("_at_ms", "_clock", "allowed_ms")

    def __init__(self, clock: Clock, allowed_ms: int) -> None:
        self._clock = clock
        self._at_ms = clock.mono_ms() + allowed_ms
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
    what: Callable[[], Awaitable[T]],
    deadline: Deadline,
    topics: Iterable[str] = (),
) -> T:
    """Do `what` until it succeeds, fails for good, or time is up.

    Retried are the codes that Kafka calls retriable, and brokers out of reach. The loop does not
    know whose code it is: `what` makes one request of one broker, so that a code can only be that
    broker's, and itself forgets a coordinator that refuses with one of `MOVED`.

    `topics` are those whose leaders it rests on: they are looked up anew when that may help.
    """
    failures = 0
    told: Exception | None = None
    while True:
        try:
            async with asyncio.timeout(max(deadline.left_ms, 1) / 1e3):
                return await what()
        except (KafkaError, OSError) as error:
            if not is_retriable(error):
                raise
            failures += 1
            pause_ms = cluster.backoff.after(failures)
            if told is None or str(error):  # not that the last try was cut short by our own clock
                told = error
            if deadline.left_ms <= pause_ms:
                raise TimeoutError(
                    f"no success in {deadline.allowed_ms} ms: {said(told)}"
                ) from told
            stale = is_stale(error)
        await asyncio.sleep(pause_ms / 1e3)
        if stale:
            await _look_again(cluster, topics, deadline)


async def _look_again(cluster: Refreshing, topics: Iterable[str], deadline: Deadline) -> None:
    try:
        async with asyncio.timeout(max(deadline.left_ms, 1) / 1e3):
            await cluster.refresh(topics)
    except (KafkaError, OSError):
        return  # the next try will say what is wrong


def said(error: BaseException) -> str:
    """An error in a few words, also one that has none."""
    return str(error) or type(error).__name__
