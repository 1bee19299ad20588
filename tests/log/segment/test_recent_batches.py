"""Promises of `ottla.log.segment.indexes`."""

from __future__ import annotations

import pytest

from ottla.log.segment.indexes import RECENT_BATCHES, RecentBatches


def test_the_last_batch_at_or_below_an_offset_is_found() -> None:
    recent = RecentBatches()
    for number in range(10):
        recent.add(100 + number * 5, number * 70)
    assert recent.floor(99) is None
    assert recent.floor(100) == (100, 0)
    assert recent.floor(104) == (100, 0)
    assert recent.floor(112) == (110, 140)
    assert recent.floor(9_999) == (145, 630)


@pytest.mark.parametrize("count", [RECENT_BATCHES, RECENT_BATCHES + 1, 10 * RECENT_BATCHES])
def test_only_the_newest_are_kept(count: int) -> None:
    recent = RecentBatches()
    for number in range(count):
        recent.add(number, number * 10)
        assert recent.floor(number) == (number, number * 10)
    assert recent.floor(count - RECENT_BATCHES // 2) is not None
    if count > 2 * RECENT_BATCHES:
        assert recent.floor(count - 2 * RECENT_BATCHES) is None
