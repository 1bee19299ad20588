"""Rates and delays are Kafka's: tables of usage, computed by its formulas."""

from __future__ import annotations

import pytest

from ottla.delay.rates import SampledRate, TokenBucket, Windows, round_half_up
from ottla.model.clock import MonoMs

WINDOWS = Windows()


def used(*events: tuple[int, float], windows: Windows = WINDOWS) -> SampledRate:
    rate = SampledRate(windows)
    for at_ms, value in events:
        rate.record(value, MonoMs(at_ms))
    return rate


@pytest.mark.spec("SEC-07")
@pytest.mark.parametrize(
    ("events", "now_ms", "measured_ms", "rate"),
    [
        ([(0, 1000)], 0, 10_000, 100.0),  # ten empty windows are assumed
        ([(0, 1000)], 500, 10_500, 1000 / 10.5),
        ([(0, 1000), (500, 1000)], 1_000, 10_000, 200.0),  # one full window replaces one of them
        ([(s * 1000, 100) for s in range(11)], 10_500, 10_500, 1100 / 10.5),
        ([(s * 1000, 100) for s in range(12)], 11_000, 10_000, 110.0),  # the first is too long ago
        ([(0, 1000)], 10_999, 10_999, 1000 / 10.999),
        ([(0, 1000)], 11_000, 10_000, 0.0),  # too long ago
    ],
)
def test_a_rate_is_measured_over_ten_full_windows_and_the_current_one(
    events: list[tuple[int, float]], now_ms: int, measured_ms: int, rate: float
) -> None:
    measured = used(*events)
    assert measured.measured_ms(MonoMs(now_ms)) == measured_ms
    assert measured.rate(MonoMs(now_ms)) == pytest.approx(rate)


@pytest.mark.spec("SEC-07", "WIRE-14")
@pytest.mark.parametrize(
    ("bytes_used", "quota", "delay_ms"),
    [
        (10_000, 1_000, 0),  # exactly the quota of ten windows
        (10_001, 1_000, 1),
        (20_000, 1_000, 10_000),
        (1_500_000, 100_000, 5_000),
        (1_000_000, 100_000, 0),
    ],
)
def test_the_delay_brings_the_rate_back_to_the_quota(
    bytes_used: int, quota: int, delay_ms: int
) -> None:
    assert used((0, bytes_used)).delay_ms(quota, MonoMs(0)) == delay_ms


def test_usage_that_is_taken_back_does_not_count() -> None:
    rate = used((0, 5_000), (10, -5_000))
    assert rate.rate(MonoMs(10)) == 0


def test_a_steady_client_gets_its_quota() -> None:
    """A client that sends as fast as it may gets the quota, within five percent."""
    rate, now_ms, sent, quota = SampledRate(WINDOWS), 0, 0, 50_000
    begun_ms, ended_ms = 33_000, 143_000  # ten times all windows
    while now_ms < ended_ms:
        rate.record(10_000, MonoMs(now_ms))
        sent += 10_000 if now_ms >= begun_ms else 0
        now_ms += max(rate.delay_ms(quota, MonoMs(now_ms)), 1)
    assert sent * 1000 / (ended_ms - begun_ms) == pytest.approx(quota, rel=0.05)


def test_permits_are_saved_up_for_all_windows_and_no_longer() -> None:
    bucket = TokenBucket(WINDOWS)
    assert bucket.available(2, MonoMs(0)) == 22
    bucket.take(30, 2, MonoMs(0))
    assert bucket.available(2, MonoMs(0)) == -8
    assert bucket.delay_ms(2, MonoMs(0)) == 4_000
    assert bucket.delay_ms(2, MonoMs(4_000)) == 0
    assert bucket.available(2, MonoMs(1_000_000)) == 22


def test_half_a_millisecond_is_rounded_up_as_java_does() -> None:
    assert [round_half_up(value) for value in (0.4, 0.5, 1.5, 2.5)] == [0, 1, 2, 3]
