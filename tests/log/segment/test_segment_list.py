"""Promises of `ottla.log.segment.segment_list`."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.log.segment.segment import Segment
from ottla.log.segment.segment_list import SegmentList
from tests.fakes.forgetting_disk import ForgettingDisk


def at(base: int, size: int = 10) -> Segment:
    return Segment(ForgettingDisk(), Path("/d"), base, size=size)


@pytest.mark.spec("LOG-42", "LOG-85")
def test_an_offset_is_in_the_last_segment_that_begins_at_or_below_it() -> None:
    segments = SegmentList([at(250), at(0), at(100)])
    assert [segment.base_offset for segment in segments] == [0, 100, 250]
    for offset, base in [(0, 0), (99, 0), (100, 100), (249, 100), (277, 250), (9_999, 250)]:
        assert segments.floor(offset).base_offset == base
    assert [s.base_offset for s in segments.starting_from(120)] == [100, 250]
    assert [segments.end_of(place, 300) for place in range(3)] == [100, 250, 300]


@pytest.mark.spec("LOG-18")
def test_the_last_one_is_active() -> None:
    segments = SegmentList([at(0), at(100)])
    newest = at(200)
    segments.add(newest)
    assert segments.active is newest
    assert segments.first.base_offset == 0
    assert [s.base_offset for s in segments[:-1]] == [0, 100]
    segments.remove(newest)
    assert segments.active.base_offset == 100
    assert segments.total_size() == 20
    assert len(segments) == 2


def test_two_segments_cannot_begin_at_one_offset() -> None:
    segments = SegmentList([at(0)])
    with pytest.raises(AssertionError):
        segments.add(at(0))


def test_going_through_them_is_not_disturbed_by_one_that_goes() -> None:
    segments = SegmentList([at(0), at(100), at(200)])
    for segment in segments:
        segments.remove(segment)
    assert len(segments) == 0
