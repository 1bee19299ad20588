"""Kafka's sampled rate and token bucket, and the delays that follow from them. Pure.

A rate is measured over samples of one window each (`quota.window.num`,
`quota.window.size.seconds`). While there are fewer than all but one, the missing ones count as
empty, so that a client may use the quota of several windows at its start. A delay is as long as it
takes until the measured rate, with nothing more used, is back at the quota. These are Kafka's
formulas, so that a client gets the same throughput from both (tests/interop/test_quota_formulas.py
compares them with Kafka's own classes).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.model.clock import MonoMs

MS: Final = 1000


class Windows(NamedTuple):
    """How usage is measured."""

    samples: int = 11
    size_ms: int = MS

    @property
    def full_ms(self) -> int:
        return self.samples * self.size_ms


KAFKAS_WINDOWS: Final = Windows()


class _Sample:
    __slots__ = ("last_ms", "recorded", "start_ms", "value")

    def __init__(self, now_ms: MonoMs) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: MonoMs) -> None:
        self.start_ms = self.last_ms = now_ms
        self.value = 0.0
        self.recorded = 0.0  # without what was taken back


class SampledRate:
    """Usage in a second. Hot where a quota applies: benchmarks/instructions.py."""

    __slots__ = ("_at_most", "_current", "_expires_ms", "_least_ms", "_samples", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._least_ms = (windows.samples - 1) * windows.size_ms  # that a rate is measured over
        self._samples: list[_Sample] = []
        self._current = 0
        self._at_most = 0.0  # all that is measured is not more
        self._expires_ms = 0  # no sample is too old before

    def record(self, value: float, now_ms: MonoMs) -> None:
        """`value` may be negative: then something recorded before does not count."""
        samples = self._samples
        if not samples:
            samples.append(_Sample(now_ms))
        sample = samples[self._current]
        if now_ms - sample.start_ms >= self._windows.size_ms:
            sample = self._advance(now_ms)
        sample.value += value
        sample.last_ms = now_ms
        if value > 0:
            sample.recorded += value
            self._at_most += value

    def rate(self, now_ms: MonoMs) -> float:
        """Usage per second, over the time that is measured."""
        elapsed_ms = self.measured_ms(now_ms)
        return sum([sample.value for sample in self._samples]) / (elapsed_ms / MS)

    def measured_ms(self, now_ms: MonoMs) -> int:
        """The time over which the rate is measured: all windows but one, or longer."""
        elapsed_ms = self._elapsed_ms(now_ms)
        samples, size_ms = self._windows
        missing = samples - 1 - elapsed_ms // size_ms
        return max(elapsed_ms + max(missing, 0) * size_ms, 1)

    def delay_ms(self, quota: float, now_ms: MonoMs) -> int:
        """How long a client with this usage is throttled; 0 if it is within its quota."""
        if now_ms >= self._expires_ms:
            self._expire(now_ms)
        if self._at_most * MS <= quota * self._least_ms:
            return 0
        rate = self.rate(now_ms)
        if rate <= quota:
            return 0
        return round_half_up((rate - quota) / quota * self.measured_ms(now_ms))

    def _advance(self, now_ms: MonoMs) -> _Sample:
        """Start the next sample, in the place of the oldest one if there are enough."""
        samples = self._samples
        # One more than are measured: the oldest may overlap the measured time.
        self._current = (self._current + 1) % (self._windows.samples + 1)
        if self._current == len(samples):
            samples.append(_Sample(now_ms))
        else:
            samples[self._current].reset(now_ms)
            self._at_most = sum([sample.recorded for sample in samples])
        return samples[self._current]

    def _expire(self, now_ms: MonoMs) -> None:
        """Empty the samples that are too old to be measured."""
        samples, full_ms = self._samples, self._windows.full_ms
        if not samples:
            samples.append(_Sample(now_ms))
        for sample in samples:
            if now_ms - sample.last_ms >= full_ms:
                sample.reset(now_ms)
        self._at_most = sum([sample.recorded for sample in samples])
        self._expires_ms = min([sample.last_ms for sample in samples]) + full_ms

    def _elapsed_ms(self, now_ms: MonoMs) -> int:
        """Since the oldest sample began."""
        self._expire(now_ms)
        return now_ms - min([sample.start_ms for sample in self._samples])


class SimpleRate(SampledRate):
    """The same, measured over the time that has really passed, but over one window at least."""

    __slots__ = ()

    def __init__(self, windows: Windows) -> None:
        super().__init__(windows)
        self._least_ms = windows.size_ms

    def measured_ms(self, now_ms: MonoMs) -> int:
        return max(self._elapsed_ms(now_ms), self._windows.size_ms)


class TokenBucket:
    """Permits that come at the rate of a quota and may be saved up for all windows."""

    __slots__ = ("_tokens", "_updated_ms", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._tokens = 0.0
        self._updated_ms: MonoMs | None = None  # None: full

    def available(self, quota: float, now_ms: MonoMs) -> float:
        """How many permits there are; negative if more were taken than there were."""
        most = quota * self._windows.full_ms / MS
        if self._updated_ms is None:
            self._tokens = most
        else:
            gained = quota * (now_ms - self._updated_ms) / MS
            self._tokens = min(most, self._tokens + gained)
        self._updated_ms = now_ms
        return self._tokens

    def take(self, permits: float, quota: float, now_ms: MonoMs) -> None:
        """A negative number is given back: never more than may be saved up."""
        most = quota * self._windows.full_ms / MS
        self._tokens = min(most, self.available(quota, now_ms) - permits)

    def delay_ms(self, quota: float, now_ms: MonoMs) -> int:
        """How long until no more permits are taken than there are."""
        available = self.available(quota, now_ms)
        return 0 if available >= 0 else round_half_up(-available / quota * MS)


def round_half_up(value: float) -> int:
    """As Java rounds."""
    return int(value + 0.5)
