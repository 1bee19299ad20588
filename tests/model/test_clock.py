from __future__ import annotations

from datetime import UTC, datetime

from ottla.model.clock import SystemClock


def test_time_for_waiting_never_goes_back_and_has_one_origin() -> None:
    clock = SystemClock()
    readings = [clock.mono_ns() for _ in range(1_000)]
    assert readings == sorted(readings)
    before_ms, between_ms, after_ms = clock.mono_ms(), clock.mono_ns() // 10**6, clock.mono_ms()
    assert before_ms <= between_ms <= after_ms


def test_time_for_stamping_counts_milliseconds_since_1970() -> None:
    said = datetime.fromtimestamp(SystemClock().wall_ms() / 1_000, UTC)
    assert abs((datetime.now(UTC) - said).total_seconds()) < 60
