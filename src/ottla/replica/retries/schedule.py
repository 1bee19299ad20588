"""When replicas that could not be opened or deleted for a passing reason are tried again.

Owns which replicas wait, in order, and the pause before the next attempt. Pure: time is handed in.

The reason is one for all: the process has no file descriptor, or the machine no memory. So there is
one pause for all, and a round ends at the first replica that fails again: the others would too. It
goes to the back of the row, so that none that fails for ever keeps the others waiting.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Generic, TypeVar

from ottla.model.clock import MonoMs
from ottla.model.ids import TopicPartition

Work = TypeVar("Work")

FIRST_MS: Final = 500
LONGEST_MS: Final = 10_000


class RetrySchedule(Generic[Work]):
    """The work that is tried again, one item for each partition: the latest."""

    def __init__(self) -> None:
        self._waiting: dict[TopicPartition, Work] = {}
        self._failed_rounds = 0
        self._due_ms = MonoMs(0)

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(list(self._waiting))

    def get(self, key: TopicPartition) -> Work | None:
        return self._waiting.get(key)

    def add(self, key: TopicPartition, work: Work, now_ms: MonoMs) -> None:
        """It failed: to the back of the row. The first that waits sets the time."""
        if not self._waiting:
            self._failed_rounds = 0
            self._due_ms = MonoMs(now_ms + FIRST_MS)
        self._waiting.pop(key, None)
        self._waiting[key] = work

    def remove(self, key: TopicPartition) -> Work | None:
        """It was done, or nobody wants it any more."""
        return self._waiting.pop(key, None)

    def pause_ms(self, now_ms: MonoMs) -> int:
        """How long until the next round."""
        return max(0, self._due_ms - now_ms)

    def end_round(self, now_ms: MonoMs, *, any_done: bool) -> None:
        """Some or none of the waiting work was done: set the time of the next round."""
        self._failed_rounds = 0 if any_done else self._failed_rounds + 1
        pause_ms = min(LONGEST_MS, FIRST_MS << min(self._failed_rounds, 16))
        self._due_ms = MonoMs(now_ms + pause_ms)
