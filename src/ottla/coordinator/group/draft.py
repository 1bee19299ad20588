"""Records, timers, replies and log lines collected while a decision is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ottla.coordinator.group.records import TimerKey
from ottla.coordinator.outcome import (
    Answer,
    CancelTimer,
    CoordinatorRecord,
    Effect,
    LogLine,
    Outcome,
    SetTimer,
    Then,
    TimerOp,
)
from ottla.model.clock import WallMs

R = TypeVar("R")


class Draft:
    """Builds an `Outcome`."""

    __slots__ = ("effects", "now", "records", "then", "timers")

    def __init__(self, now: WallMs) -> None:
        self.now = now
        self.records: list[CoordinatorRecord] = []
        self.timers: list[TimerOp] = []
        self.then: Then | None = None
        self.effects: list[Effect] = []

    def set(self, key: TimerKey, delay_ms: int) -> None:
        self.timers.append(SetTimer(key, delay_ms))

    def cancel(self, key: TimerKey) -> None:
        self.timers.append(CancelTimer(key))

    def answer(self, request: Callable[[R], object] | None, reply: R) -> None:
        """Send a reply to a request, if one waits."""
        if request is not None:
            self.effects.append(Answer(request, reply))

    def log(self, logger: str, message: str, *arguments: object) -> None:
        self.effects.append(LogLine(logger, message, arguments))

    def outcome(self, reply: R) -> Outcome[R]:
        return Outcome(
            reply,
            tuple(self.records),
            tuple(self.timers),
            self.then,
            effects=tuple(self.effects),
        )
