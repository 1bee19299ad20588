"""Promises of `ottla.log.segment.search`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.log.segment.search import position_for_timestamp, position_of
from ottla.log.segment.segment import INDEX, TIME_INDEX, Segment
from ottla.log.segment.segment_end import load_end
from ottla.protocol.records import legacy
from ottla.protocol.records.record import NewRecord
from tests.log.small_segments import DIR, batch, disk, filled, put


@pytest.mark.spec("LOG-28", "LOG-85", "LOG-87")
@given(
    counts=st.lists(st.integers(1, 4), min_size=1, max_size=30),
    interval=st.sampled_from([0, 100, 500, 10_000]),
    reopened=st.booleans(),
)
def test_every_offset_is_found_through_the_index_or_without(
    counts: list[int], interval: int, reopened: bool
) -> None:
    on = disk()
    segment = filled(on, counts, interval)
    if reopened:  # nothing is remembered of the newest batches
        segment.finish()
        segment.release()
        segment = Segment(on, DIR, 100, size=segment.size)
    expected: dict[int, int] = {}
    end = 100
    for found in segment.headers():
        for offset in range(end, found.last_offset + 1):  # the gap before it leads here too
            expected[offset] = found.position
        end = found.last_offset + 1
    assert {offset: position_of(segment, offset) for offset in expected} == expected
    assert position_of(segment, end) == segment.size
    assert position_of(segment, end + 50) == segment.size


def test_old_formats_are_found_too() -> None:
    on = disk()
    segment = Segment(on, DIR, 0)
    for offset in range(40):
        content = legacy.build(
            [NewRecord(b"k", b"v" * 30, timestamp=offset)], magic=offset % 2, base_offset=offset
        )
        put(segment, content, interval=200)
    segment.finish()
    segment.release()
    again = Segment(on, DIR, 0, size=segment.size)
    for offset in range(40):
        assert again.batch_at(position_of(again, offset)).base_offset == offset
    assert load_end(again) == (40, -1)
    assert again.max_timestamp == 39


@pytest.mark.spec("LOG-93", "LOG-37")
@given(
    kind=st.sampled_from([INDEX, TIME_INDEX]),
    at=st.integers(0, 10_000),
    bit=st.integers(0, 7),
    asked=st.lists(st.integers(0, 59), min_size=1, max_size=10),
)
def test_a_turned_bit_in_an_index_never_misleads(
    kind: str, at: int, bit: int, asked: list[int]
) -> None:
    on = disk()
    segment = Segment(on, DIR, 0)
    for number in range(60):
        put(segment, batch(number, stamp=1_000 + number), interval=150)
    segment.finish()
    segment.release()
    content = bytearray(on.read(segment.files.path(kind)))
    content[at % len(content)] ^= 1 << bit
    on.replace(segment.files.path(kind), bytes(content))
    again = Segment(on, DIR, 0, size=segment.size)
    for offset in asked:
        assert again.batch_at(position_of(again, offset)).base_offset == offset
        start = position_for_timestamp(again, 1_000 + offset)
        assert start < again.size
        assert again.batch_at(start).base_offset <= offset
    assert again.max_timestamp == 1_059
    assert load_end(again) == (60, -1)


@pytest.mark.spec("LOG-88")
def test_no_batch_before_the_place_for_a_time_is_as_new() -> None:
    segment = Segment(disk(), DIR, 0)
    stamps = [10, 40, 20, 30, 60, 50, 60, 90]
    for base, stamp in enumerate(stamps):
        put(segment, batch(base, stamp=stamp))
    for asked in range(5, 100, 5):
        position = position_for_timestamp(segment, asked)
        before = [found.max_timestamp for found in segment.headers(0, position)]
        assert all(stamp < asked for stamp in before)
