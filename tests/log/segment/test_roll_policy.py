"""Promises of `ottla.log.segment.rollover`."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from ottla.config.topic import TopicConfig
from ottla.log.segment.rollover import jitter_ms, must_roll
from ottla.log.segment.segment import Segment, SegmentPosition
from ottla.model.clock import WallMs
from tests.fakes.forgetting_disk import ForgettingDisk

CONFIG = TopicConfig(segment_bytes=1_000, segment_ms=100, segment_index_bytes=1_000)


def segment(size: int = 500, *, first: int = 50, created: int = 0) -> Segment:
    made = Segment(ForgettingDisk(), Path("/d"), 0, size=size)
    made.known_first_timestamp = first
    made.created_ms = WallMs(created)
    return made


def coming(size: int = 10, last: int = 5, stamp: int = 60) -> SegmentPosition:
    return SegmentPosition(last, last, stamp, size)


@pytest.mark.spec("LOG-55", "LOG-101")
def test_a_segment_is_full_when_the_batch_would_exceed_it() -> None:
    assert not must_roll(segment(), CONFIG, coming(size=500), now_ms=WallMs(0))
    assert must_roll(segment(), CONFIG, coming(size=501), now_ms=WallMs(0))


@pytest.mark.spec("LOG-55")
def test_an_empty_segment_takes_anything() -> None:
    assert not must_roll(
        segment(size=0), CONFIG, coming(size=5_000, stamp=9_999), now_ms=WallMs(9_999)
    )


@pytest.mark.spec("LOG-55")
def test_age_counts_in_the_records_own_time() -> None:
    assert not must_roll(segment(), CONFIG, coming(stamp=150), now_ms=WallMs(10**9))
    assert must_roll(segment(), CONFIG, coming(stamp=151), now_ms=WallMs(0))


@pytest.mark.spec("LOG-55")
def test_without_timestamps_age_counts_from_creation() -> None:
    assert not must_roll(
        segment(first=-1, created=40), CONFIG, coming(stamp=-1), now_ms=WallMs(140)
    )
    assert must_roll(segment(first=-1, created=40), CONFIG, coming(stamp=-1), now_ms=WallMs(141))


@pytest.mark.spec("LOG-55", "LOG-80")
def test_a_full_index_fills_its_segment() -> None:
    full = segment()
    full.index_bytes = 988
    assert not must_roll(full, CONFIG, coming(), now_ms=WallMs(0))
    full.index_bytes = 989
    assert must_roll(full, CONFIG, coming(), now_ms=WallMs(0))


@pytest.mark.spec("LOG-22", "LOG-55")
def test_an_offset_too_far_from_the_base_needs_a_new_segment() -> None:
    assert not must_roll(segment(), CONFIG, coming(last=2**31 - 1), now_ms=WallMs(0))
    assert must_roll(segment(), CONFIG, coming(last=2**31), now_ms=WallMs(0))


@pytest.mark.spec("LOG-56")
def test_jitter_makes_segments_of_one_age_roll_at_different_times() -> None:
    config = CONFIG.changed(segment_jitter_ms=50)
    drawn = {jitter_ms(config, Random(seed)) for seed in range(200)}
    assert len(drawn) > 20
    assert min(drawn) >= 0
    assert max(drawn) < 50
    assert jitter_ms(CONFIG, Random(0)) == 0
    early = segment()
    early.jitter_ms = 30
    assert must_roll(early, CONFIG, coming(stamp=121), now_ms=WallMs(0))
    assert jitter_ms(CONFIG.changed(segment_jitter_ms=10**9), Random(1)) < 100
