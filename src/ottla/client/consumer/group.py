"""What the rest of the consumer needs of its group, whichever protocol it speaks.

Owns the port that `classic_loop` and `modern_loop` fill, and the pace of a member: when the user
last polled, and how long is too long.
"""

from __future__ import annotations

from typing import Protocol

from ottla.client.consumer.classic import GroupMetadata
from ottla.client.consumer.reactions import After
from ottla.model.clock import Clock


class Group(Protocol):
    """One membership."""

    @property
    def metadata(self) -> GroupMetadata: ...

    @property
    def is_lost(self) -> bool:
        """Whether its partitions may be others' already."""
        ...

    def committing(self) -> GroupMetadata | None:
        """Under whose name to commit; None: it is no longer a member."""
        ...

    def commit_refused(self, after: After) -> None: ...

    def subscribed(self) -> None:
        """The topics have changed."""
        ...

    def rejoin(self, reason: str) -> None:
        """Have the group dealt out anew."""
        ...

    async def run(self) -> None:
        """Be a member until cancelled."""
        ...

    async def leave(self, reason: str, timeout_ms: int) -> None:
        """Tell the coordinator, so that nobody has to wait for the session to end."""
        ...


class Pace:
    """When the user last polled: a member that stops polling must give up its partitions."""

    def __init__(self, clock: Clock, max_interval_ms: int) -> None:
        self._clock = clock
        self._max_interval_ms = max_interval_ms
        self._inside = 0
        self._polled_ms: int | None = None

    def enter(self) -> None:
        self._inside += 1

    def leave(self) -> None:
        self._inside -= 1
        self.polled()

    def polled(self) -> None:
        self._polled_ms = self._clock.mono_ms()

    @property
    def left_ms(self) -> int:
        if self._inside or self._polled_ms is None:  # a poll may wait as long as it likes
            return self._max_interval_ms
        return self._polled_ms + self._max_interval_ms - self._clock.mono_ms()

    @property
    def is_too_slow(self) -> bool:
        return self.left_ms <= 0
