"""Kafka's sampled rate and token bucket, and the delays that follow from them. Pure.

A rate is measured over samples of one window each (`quota.window.num`,
`quota.window.size.seconds`). While there are fewer than all but one, the missing ones count as
empty, so that a client may use the quota of several windows at its start. A delay is as long as it
takes until the measured rate, with nothing more used, is back at the quota. These are Kafka's
formulas, so that a client gets the same throughput from both.
"""

from __future__ import annotations

from typing import Final, NamedTuple

MS: Final = 1000


class Windows(NamedTuple):
    """How usage is measured."""

    samples: int = 11
    size_ms: int = MS

    @property
    def full_ms(self) -> int:
        return self.samples * self.size_ms


class _Sample:
    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.start_ms = self.last_ms = now_ms
        self.value = 0.0


class SampledRate:
    """Usage in a second."""

    __slots__ = ("_current", "_samples", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        """`value` may be negative: then something recorded before does not count."""
        samples, windows = self._samples, self._windows
        if not samples:
            samples.append(_Sample(now_ms))
        sample = samples[self._current]
        if now_ms - sample.start_ms >= windows.size_ms:
            # One more than are measured: the oldest may overlap the measured time.
            self._current = (self._current + 1) % (windows.samples + 1)
            if self._current == len(samples):
                samples.append(_Sample(now_ms))
            sample = samples[self._current]
            if sample.start_ms != now_ms:
                sample.reset(now_ms)
        sample.value += value
        sample.last_ms = now_ms

    def rate(self, now_ms: int) -> float:
        """Usage per second, over the time that is measured."""
        elapsed_ms = self.measured_ms(now_ms)
        return sum(sample.value for sample in self._samples) * MS / elapsed_ms

    def measured_ms(self, now_ms: int) -> int:
        """The time over which the rate is measured: all windows but one, or longer."""
        samples, size_ms = self._windows
        full_ms = self._windows.full_ms
        oldest_ms = now_ms
        for sample in self._samples:
            if now_ms - sample.last_ms >= full_ms:
                sample.reset(now_ms)
            oldest_ms = min(oldest_ms, sample.start_ms)
        elapsed_ms = now_ms - oldest_ms
        missing = samples - 1 - elapsed_ms // size_ms
        return max(elapsed_ms + max(missing, 0) * size_ms, 1)

    def delay_ms(self, quota: float, now_ms: int) -> int:
        """How long a client with this usage is throttled; 0 if it is within its quota."""
        rate = self.rate(now_ms)
        if rate <= quota:
            return 0
        return round_half_up((rate - quota) / quota * self.measured_ms(now_ms))


class TokenBucket:
    """Permits that come at the rate of a quota and may be saved up for all windows."""

    __slots__ = ("_tokens", "_updated_ms", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._tokens = 0.0
        self._updated_ms: int | None = None  # None: full

    def available(self, quota: float, now_ms: int) -> float:
        """How many permits there are; negative if more were taken than there were."""
        most = quota * self._windows.full_ms / MS
        if self._updated_ms is None:
            self._tokens = most
        else:
            gained = quota * (now_ms - self._updated_ms) / MS
            self._tokens = min(most, self._tokens + gained)
        self._updated_ms = now_ms
        return self._tokens

    def take(self, permits: float, quota: float, now_ms: int) -> None:
        self._tokens = self.available(quota, now_ms) - permits

    def delay_ms(self, quota: float, now_ms: int) -> int:
        """How long until no more permits are taken than there are."""
        available = self.available(quota, now_ms)
        return 0 if available >= 0 else round_half_up(-available / quota * MS)


def round_half_up(value: float) -> int:
    """As Java rounds."""
    return int(value + 0.5)
