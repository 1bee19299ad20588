"""A timing wheel that the event loop advances.

Owns: one wheel and at most one pending wake-up, for the earliest bucket.
Never: creates one event loop timer per timeout; thousands of delayed requests share one.

The loop and the clock are handed in, so that the same timers run on virtual time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from ottla.delay.wheel import Entry, TimingWheel
from ottla.model.clock import Clock, MonoMs

log = logging.getLogger(__name__)


class Cancellable(Protocol):
    def cancel(self) -> None: ...


class Scheduler(Protocol):
    """All that timers need of an event loop."""

    def call_later(self, delay: float, callback: Callable[[], object], /) -> Cancellable: ...


class Call(Entry):
    """A function to call when the time comes."""

    __slots__ = ("_run",)

    def __init__(self, run: Callable[[], object]) -> None:
        super().__init__()
        self._run = run

    def on_timeout(self) -> None:
        self._run()


class Timers:
    """Add, cancel, expire; on one loop, from one thread."""

    __slots__ = ("_clock", "_scheduler", "_wake", "_wake_ms", "_wheel")

    def __init__(self, clock: Clock, scheduler: Scheduler) -> None:
        self._clock = clock
        self._scheduler = scheduler
        self._wheel = TimingWheel(clock.mono_ms())
        self._wake: Cancellable | None = None
        self._wake_ms = MonoMs(0)

    def __len__(self) -> int:
        return len(self._wheel)

    def add(self, entry: Entry, delay_ms: int) -> None:
        """Expire `entry` after `delay_ms`; now, before returning, when that has passed already."""
        expires_ms = MonoMs(self._clock.mono_ms() + delay_ms)
        if not self._wheel.add(entry, expires_ms):
            _expire(entry)
        elif self._wake is None or expires_ms < self._wake_ms:
            self._arm()

    def hasten(self, entry: Entry, delay_ms: int) -> None:
        """Expire `entry`, which waits here, after `delay_ms` if that is sooner."""
        if entry.waiting and self._clock.mono_ms() + delay_ms < entry.expires_ms:
            self._wheel.cancel(entry)
            self.add(entry, delay_ms)

    def call_later(self, delay_ms: int, run: Callable[[], object]) -> Call:
        call = Call(run)
        self.add(call, delay_ms)
        return call

    def cancel(self, entry: Entry) -> bool:
        """False: it was not waiting here."""
        return self._wheel.cancel(entry)

    def close(self) -> None:
        """No wake-up any more; what still waits never expires."""
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None

    def _arm(self) -> None:
        """Schedule a wake-up for the earliest bucket, unless it is scheduled already."""
        next_ms = self._wheel.next_ms()
        if self._wake is not None:
            if next_ms == self._wake_ms:
                return
            self._wake.cancel()
            self._wake = None
        if next_ms is not None:
            self._wake_ms = next_ms
            delay_s = max(0.0, next_ms / 1e3 - self._clock.mono_ns() / 1e9)
            self._wake = self._scheduler.call_later(delay_s, self._advance)

    def _advance(self) -> None:
        self._wake = None
        try:
            for entry in self._wheel.advance(self._clock.mono_ms()):
                _expire(entry)
        finally:
            self._arm()


def _expire(entry: Entry) -> None:
    try:
        entry.on_timeout()
    except Exception:  # one failing timeout must not prevent the others
        log.exception("timeout handler of %s failed", type(entry).__name__)
