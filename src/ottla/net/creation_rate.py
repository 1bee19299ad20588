"""A limit on new connections per second, measured as Kafka measures its quotas. Pure.

Owns: how many came lately. A rate is measured over `quota.window.num` windows, so that connections
that did not come in the last ten seconds may come at once.
"""

from __future__ import annotations

from ottla.delay.rates import SampledRate, Windows
from ottla.model.clock import MonoMs


class CreationRate:
    """A number of connections a second."""

    __slots__ = ("_longest_ms", "_used")

    def __init__(self, windows: Windows) -> None:
        self._used = SampledRate(windows)
        self._longest_ms = windows.size_ms

    def count_one(self, rate: float, now_ms: MonoMs) -> int:
        """Count a new connection. How long it is too early, at most one window; 0: it is not."""
        self._used.record(1, now_ms)
        if rate <= 0:
            return self._longest_ms
        return min(self._used.delay_ms(rate, now_ms), self._longest_ms)

    def take_back(self, now_ms: MonoMs) -> None:
        """One that was counted is not accepted after all."""
        self._used.record(-1, now_ms)
