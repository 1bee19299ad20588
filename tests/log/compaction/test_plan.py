"""Promises of `ottla.log.compaction.plan`."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.log.compaction.plan import (
    MAX_OFFSETS_PER_SEGMENT,
    CleanableRange,
    DirtyLog,
    Lags,
    SegmentRange,
    dirtiest_log,
    dirty_log_of,
    group_segments,
)
from ottla.model.clock import WallMs
from ottla.model.ids import TopicPartition

EAGER = Lags(
    min_compaction_lag_ms=0, max_compaction_lag_ms=2**63 - 1, min_cleanable_dirty_ratio=0.5
)


def extent(*stamps: int, stable: int | None = None, start: int = 0) -> CleanableRange:
    """One piece of 10 offsets and 100 bytes per stamp; the last is the active segment."""
    pieces = [SegmentRange(i * 10, 100, stamp, stamp) for i, stamp in enumerate(stamps)]
    end = 10 * len(stamps)
    return CleanableRange(start, end if stable is None else stable, end, pieces)


@pytest.mark.spec("LOG-68", "LOG-14")
def test_the_checkpoint_divides_clean_from_dirty_and_the_active_segment_is_neither() -> None:
    assert dirty_log_of(extent(1, 2, 3, 4), 10, EAGER, now_ms=WallMs(100)) == DirtyLog(
        10, 30, 100, 200, False
    )


@pytest.mark.spec("LOG-68")
def test_a_log_never_cleaned_is_dirty_from_its_start() -> None:
    assert dirty_log_of(extent(1, 2, 3, start=4), None, EAGER, now_ms=WallMs(100)) == DirtyLog(
        4, 20, 0, 200, False
    )


@pytest.mark.parametrize("checkpoint", [3, 31])
def test_a_checkpoint_outside_the_log_counts_for_nothing(checkpoint: int) -> None:
    assert (
        dirty_log_of(extent(1, 2, 3, start=5), checkpoint, EAGER, now_ms=WallMs(100)).first_dirty
        == 5
    )


@pytest.mark.spec("LOG-74")
@pytest.mark.parametrize(("stable", "end"), [(30, 20), (20, 20), (19, 10), (10, 10), (9, 0)])
def test_nothing_past_the_last_stable_offset_is_cleaned(stable: int, end: int) -> None:
    assert dirty_log_of(extent(1, 2, 3, stable=stable), None, EAGER, now_ms=WallMs(100)).end == end


def test_records_younger_than_the_minimum_lag_rest() -> None:
    lags = EAGER._replace(min_compaction_lag_ms=10)
    log = extent(1, 95, 3, 4)
    assert dirty_log_of(log, None, lags, now_ms=WallMs(100)).end == 10
    assert dirty_log_of(log, None, lags, now_ms=WallMs(105)).end == 30


def test_records_older_than_the_maximum_lag_are_overdue_however_clean_the_log_is() -> None:
    lags = EAGER._replace(max_compaction_lag_ms=10)
    log = extent(1, 2, 3, 90, 4)
    for now_ms, overdue in [(100, False), (101, True)]:
        dirt = dirty_log_of(log, 30, lags, WallMs(now_ms))
        assert dirt.ratio == 0.25
        assert dirt.wants_cleaning(lags.min_cleanable_dirty_ratio) is overdue


@pytest.mark.spec("LOG-73")
def test_the_dirtiest_log_goes_first_and_only_from_its_ratio_on() -> None:
    def dirt(clean: int, dirty: int) -> tuple[DirtyLog, Lags]:
        return DirtyLog(0, 10, clean, dirty, False), EAGER

    a, b, c = (TopicPartition(name, 0) for name in "abc")
    assert dirtiest_log({a: dirt(51, 49)}) is None
    assert dirtiest_log({a: dirt(50, 50)}) == a
    assert dirtiest_log({a: dirt(50, 50), b: dirt(10, 90), c: dirt(30, 70)}) == b


@pytest.mark.spec("LOG-73")
def test_a_log_without_dirt_is_left_alone_even_at_ratio_zero() -> None:
    lags = EAGER._replace(min_cleanable_dirty_ratio=0.0)
    assert dirtiest_log({TopicPartition("a", 0): (DirtyLog(9, 9, 100, 0, True), lags)}) is None


class Part(NamedTuple):
    base_offset: int
    size: int


@pytest.mark.spec("LOG-71")
def test_small_neighbours_become_one_segment() -> None:
    parts = [Part(0, 40), Part(10, 40), Part(20, 40), Part(30, 200), Part(40, 1)]
    bases = [[part.base_offset for part in group] for group in group_segments(parts, 50, 100)]
    assert bases == [[0, 10], [20], [30], [40]]


@pytest.mark.spec("LOG-71", "LOG-22")
def test_segments_whose_offsets_would_not_fit_an_index_stay_apart() -> None:
    parts = [Part(0, 1), Part(5, 1), Part(MAX_OFFSETS_PER_SEGMENT + 1, 1)]
    assert group_segments(parts, parts[-1].base_offset + 3, 100) == [parts[:2], parts[2:]]


@given(st.lists(st.integers(0, 60), max_size=12), st.integers(1, 100))
def test_grouping_keeps_every_segment_in_order(sizes: list[int], max_bytes: int) -> None:
    parts = [Part(i * 10, size) for i, size in enumerate(sizes)]
    groups = group_segments(parts, 10 * len(parts), max_bytes)
    assert [part for group in groups for part in group] == parts
    for group in groups:
        assert len(group) == 1 or sum(part.size for part in group) <= max_bytes
