"""How fast connections may come."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.net.creation_rate import CreationRate


def on_admitted(rate: CreationRate, most: int, now_ms: int) -> int:
    count = 0
    while not rate.wait_ms(most, now_ms):
        rate.count_one()
        count += 1
    return count


@pytest.mark.spec("SEC-09")
def test_a_second_is_worth_the_rate_and_what_was_not_used_is_not_saved_up() -> None:
    rate = CreationRate()
    assert on_admitted(rate, 10, 0) == 10
    assert on_admitted(rate, 10, 100) == 1
    assert on_admitted(rate, 10, 60_000) == 10


def test_the_wait_is_as_long_as_it_takes() -> None:
    rate = CreationRate()
    assert on_admitted(rate, 4, 0) == 4
    wait_ms = rate.wait_ms(4, 0)
    assert 250 <= wait_ms <= 251
    assert rate.wait_ms(4, wait_ms) == 0


def test_another_rate_holds_at_once_and_none_at_all_lets_nobody_in_twice() -> None:
    rate = CreationRate()
    assert on_admitted(rate, 1, 0) == 1
    assert on_admitted(rate, 100, 0) == 100
    assert on_admitted(rate, 0, 0) == 1
    assert rate.wait_ms(0, 3_600_000) == 1_000


@given(most=st.integers(1, 1_000), steps=st.lists(st.integers(0, 3_000), max_size=30))
def test_never_more_than_the_rate_and_one_seconds_worth_before(most: int, steps: list[int]) -> None:
    rate, now, count = CreationRate(), 0, 0
    for step in steps:
        now += step
        count += on_admitted(rate, most, now)
    assert count <= most + now * most / 1000 + 1
