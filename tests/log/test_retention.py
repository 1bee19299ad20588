"""Promises of `ottla.log.retention`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.log.retention import (
    Candidate,
    RetentionBounds,
    RetentionLimits,
    expired_count,
)
from ottla.model.clock import WallMs

FOREVER = RetentionLimits(retention_ms=-1, retention_bytes=-1, deletes=True)


def log_of(*segments: tuple[int, int], each: int = 10) -> list[Candidate]:
    """Segments of (size, largest timestamp), `each` offsets apart."""
    return [Candidate(i * each, size, stamp) for i, (size, stamp) in enumerate(segments)]


def committed(segments: list[Candidate], *, start: int = 0) -> RetentionBounds:
    end = segments[-1].base_offset + 10
    return RetentionBounds(start, high_watermark=end, end_offset=end)


@pytest.mark.spec("LOG-59")
def test_a_segment_goes_when_its_largest_timestamp_is_older_than_the_limit() -> None:
    segments = log_of((100, 1_000), (100, 2_000), (100, 3_000))
    limits = FOREVER._replace(retention_ms=500)
    assert expired_count(segments, committed(segments), limits, now_ms=WallMs(1_500)) == 0
    assert expired_count(segments, committed(segments), limits, now_ms=WallMs(1_501)) == 1
    assert expired_count(segments, committed(segments), limits, now_ms=WallMs(2_501)) == 2


@pytest.mark.spec("LOG-58", "LOG-59")
def test_a_young_segment_shields_the_older_ones_behind_it() -> None:
    segments = log_of((100, 9_000), (100, 10), (100, 20))
    limits = FOREVER._replace(retention_ms=500)
    assert expired_count(segments, committed(segments), limits, now_ms=WallMs(5_000)) == 0


@pytest.mark.spec("LOG-61")
def test_when_every_segment_is_due_the_active_one_goes_too() -> None:
    segments = log_of((100, 1), (100, 2))
    limits = FOREVER._replace(retention_ms=10)
    assert expired_count(segments, committed(segments), limits, now_ms=WallMs(1_000)) == 2


@pytest.mark.spec("LOG-61")
def test_an_empty_active_segment_is_never_due() -> None:
    segments = log_of((100, 1), (0, 2))
    limits = RetentionLimits(retention_ms=0, retention_bytes=0, deletes=True)
    bounds = RetentionBounds(0, high_watermark=10, end_offset=10)
    assert expired_count(segments, bounds, limits, now_ms=WallMs(1_000)) == 1


@pytest.mark.spec("LOG-62")
def test_size_removes_segments_only_while_the_excess_covers_a_whole_one() -> None:
    segments = log_of((100, 1), (100, 1), (100, 1))
    for limit, due in [(300, 0), (201, 0), (200, 1), (101, 1), (100, 2), (0, 3)]:
        limits = FOREVER._replace(retention_bytes=limit)
        assert expired_count(segments, committed(segments), limits, now_ms=WallMs(2)) == due, limit


@pytest.mark.spec("LOG-63")
def test_what_lies_before_the_start_offset_goes_under_any_policy() -> None:
    segments = log_of((100, 1), (100, 1), (100, 1))
    compacted = RetentionLimits(retention_ms=0, retention_bytes=0, deletes=False)
    assert expired_count(segments, committed(segments, start=19), compacted, now_ms=WallMs(9)) == 1
    assert expired_count(segments, committed(segments, start=20), compacted, now_ms=WallMs(9)) == 2


@pytest.mark.spec("LOG-63")
def test_the_active_segment_outlives_a_start_offset_at_the_log_end() -> None:
    segments = log_of((100, 1), (100, 1))
    kept = RetentionLimits(retention_ms=-1, retention_bytes=-1, deletes=False)
    assert expired_count(segments, committed(segments, start=20), kept, now_ms=WallMs(9)) == 1


@pytest.mark.spec("LOG-64")
def test_either_limit_alone_is_enough() -> None:
    segments = log_of((100, 1), (100, 2_000), (100, 2_000))
    by_both = RetentionLimits(retention_ms=1_000, retention_bytes=100, deletes=True)
    assert expired_count(segments, committed(segments), by_both, now_ms=WallMs(2_500)) == 2
    by_time = by_both._replace(retention_bytes=1_000)
    assert expired_count(segments, committed(segments), by_time, now_ms=WallMs(2_500)) == 1


@pytest.mark.spec("LOG-64")
def test_size_counts_only_what_the_start_offset_leaves() -> None:
    segments = log_of((100, 1), (100, 1), (100, 1))
    limits = FOREVER._replace(retention_bytes=200)
    assert expired_count(segments, committed(segments, start=10), limits, now_ms=WallMs(1)) == 1


@pytest.mark.spec("LOG-65")
def test_nothing_at_or_above_the_high_watermark_goes() -> None:
    segments = log_of((100, 1), (100, 1), (100, 1))
    limits = FOREVER._replace(retention_ms=0)
    for watermark, due in [(0, 0), (9, 0), (10, 1), (19, 1), (20, 2), (29, 2), (30, 3)]:
        bounds = RetentionBounds(0, watermark, end_offset=30)
        assert expired_count(segments, bounds, limits, now_ms=WallMs(100)) == due, watermark


@given(
    shape=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=8),
    watermark=st.integers(0, 80),
    start=st.integers(0, 80),
    limits=st.builds(RetentionLimits, st.integers(-1, 60), st.integers(-1, 300), st.booleans()),
)
@pytest.mark.spec("LOG-59", "LOG-62", "LOG-65")
def test_retention_takes_the_oldest_end_and_stays_below_the_high_watermark(
    shape: list[tuple[int, int]], watermark: int, start: int, limits: RetentionLimits
) -> None:
    segments = log_of(*shape)
    end = 10 * len(segments)
    bounds = RetentionBounds(min(start, watermark, end), min(watermark, end), end)
    due = expired_count(segments, bounds, limits, now_ms=WallMs(55))
    ends = [segment.base_offset + 10 for segment in segments]
    assert 0 <= due <= len(segments)
    assert all(ends[i] <= bounds.high_watermark for i in range(due))
    rest = segments[due:]
    if limits.deletes and rest and ends[due] <= bounds.high_watermark:
        emptied = len(rest) == 1 and rest[0].size == 0
        too_old = limits.retention_ms >= 0 and 55 - rest[0].largest_timestamp > limits.retention_ms
        too_much = limits.retention_bytes >= 0 and (
            sum(segment.size for segment in rest[1:]) >= limits.retention_bytes
        )
        assert emptied or not too_old
        assert emptied or not too_much
