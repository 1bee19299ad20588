"""Records and timers collected while a decision is made."""

from __future__ import annotations

from typing import TypeVar

from ottla.coordinator.group.records import TimerKey
from ottla.coordinator.outcome import (
    CancelTimer,
    CoordinatorRecord,
    Outcome,
    SetTimer,
    Then,
    TimerOp,
)

R = TypeVar("R")


class Draft:
    """Builds an `Outcome`."""

    __slots__ = ("now", "records", "then", "timers")

    def __init__(self, now: int) -> None:
        self.now = now
        self.records: list[CoordinatorRecord] = []
        self.timers: list[TimerOp] = []
        self.then: Then | None = None

    def set(self, key: TimerKey, delay_ms: int) -> None:
        self.timers.append(SetTimer(key, delay_ms))

    def cancel(self, key: TimerKey) -> None:
        self.timers.append(CancelTimer(key))

    def outcome(self, reply: R) -> Outcome[R]:
        return Outcome(reply, tuple(self.records), tuple(self.timers), self.then)
