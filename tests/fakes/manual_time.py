"""Time that stands still until a test moves it."""

from __future__ import annotations

from collections.abc import Callable

from ottla.model.clock import MonoMs, WallMs


class ManualClock:
    """Shows what the test has set."""

    def __init__(self, now_ms: int = 0) -> None:
        self.ns = now_ms * 1_000_000

    def mono_ns(self) -> int:
        return self.ns

    def mono_ms(self) -> MonoMs:
        return MonoMs(self.ns // 1_000_000)

    def wall_ms(self) -> WallMs:
        return WallMs(self.ns // 1_000_000)


class Wake:
    """A call that was asked for and may still be cancelled."""

    def __init__(self, at_ns: int, callback: Callable[[], object]) -> None:
        self.at_ns = at_ns
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class ManualScheduler:
    """An event loop's timers on a `ManualClock`: `pass_ms` runs what becomes due, in order."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.asked: list[Wake] = []

    @property
    def pending(self) -> list[Wake]:
        return [wake for wake in self.asked if not wake.cancelled]

    def call_later(self, delay: float, callback: Callable[[], object], /) -> Wake:
        wake = Wake(self._clock.ns + round(delay * 1e9), callback)
        self.asked.append(wake)
        return wake

    def pass_ms(self, ms: int) -> None:
        end_ns = self._clock.ns + ms * 1_000_000
        while due := [wake for wake in self.pending if wake.at_ns <= end_ns]:
            first = min(due, key=lambda wake: wake.at_ns)
            first.cancel()
            self._clock.ns = max(self._clock.ns, first.at_ns)
            first.callback()
        self._clock.ns = end_ns
