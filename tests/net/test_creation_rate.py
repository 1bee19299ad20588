"""How fast connections may come."""

from __future__ import annotations

import pytest

from ottla.delay.rates import Windows
from ottla.model.clock import MonoMs
from ottla.net.waiting_connections import CreationRate


def counted(rate: CreationRate, most: float, now_ms: int) -> int:
    """How many come at once before one is too early; that one is not accepted."""
    count = 0
    while not rate.count_one(most, MonoMs(now_ms)):
        count += 1
    rate.take_back(MonoMs(now_ms))
    return count


@pytest.mark.spec("SEC-09")
def test_ten_windows_are_worth_the_rate_and_what_was_not_used_is_not_saved_up() -> None:
    rate = CreationRate(Windows())
    assert counted(rate, 10, 0) == 100
    assert counted(rate, 10, 500) == 5
    assert counted(rate, 10, 60_000) == 100


def test_nobody_waits_longer_than_a_window() -> None:
    rate = CreationRate(Windows(11, 2_000))
    delays = [rate.count_one(1, MonoMs(0)) for _ in range(30)]
    assert delays == [0] * 20 + [1_000] + [2_000] * 9
    assert rate.count_one(0, MonoMs(100_000)) == 2_000


def test_another_rate_holds_at_once() -> None:
    rate = CreationRate(Windows())
    assert counted(rate, 1, 0) == 10
    assert counted(rate, 10, 0) == 90
