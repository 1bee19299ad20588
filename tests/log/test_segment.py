"""Promises of `ottla.log.segment`."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.log.segment import INDEX, LOG, TIME_INDEX, TXN_INDEX, Mark, Segment, file_name
from ottla.log.stored import parse
from ottla.protocol.records import legacy
from ottla.protocol.records.batch import build
from ottla.protocol.records.record import NewRecord
from tests.fakes.forgetting_disk import ForgettingDisk

DIR = Path("/d")


def disk() -> ForgettingDisk:
    made = ForgettingDisk(lambda: 555)
    made.mkdir(DIR)
    return made


def put(segment: Segment, content: bytes, interval: int = 0) -> None:
    batch = parse(content, 0, 0)
    mark = Mark(batch.base_offset, batch.last_offset, batch.max_timestamp, batch.size)
    segment.append([content], [mark], interval)


def batch(base: int, count: int = 1, *, stamp: int = 1_000, size: int = 20) -> bytes:
    records = [NewRecord(b"k", b"v" * size, timestamp=stamp) for _ in range(count)]
    return build(records, base_offset=base)


def filled(on: ForgettingDisk, counts: list[int], interval: int = 0, base: int = 100) -> Segment:
    """Batches of so many records each, a millisecond apart, after a gap of one offset each."""
    segment = Segment(on, DIR, base)
    offset = base
    for number, count in enumerate(counts):
        put(segment, batch(offset, count, stamp=1_000 + number), interval)
        offset += count + 1
    return segment


@pytest.mark.spec("LOG-04", "LOG-06")
def test_files_are_named_by_the_base_offset_in_twenty_digits() -> None:
    assert file_name(0, LOG) == "00000000000000000000.log"
    assert file_name(368769, TIME_INDEX) == "00000000000000368769.timeindex"
    segment = Segment(disk(), DIR, 7, suffix=".cleaned")
    assert segment.path(TXN_INDEX) == DIR / "00000000000000000007.txnindex.cleaned"


@pytest.mark.spec("LOG-25", "LOG-26", "LOG-76")
def test_one_entry_in_each_index_for_every_interval_of_bytes() -> None:
    on = disk()
    segment = Segment(on, DIR, 100)
    size = len(batch(100))
    for number in range(10):
        put(segment, batch(100 + number, stamp=1_000 + number), interval=3 * size - 1)
    # An entry is added before the batch that finds more than the interval behind it.
    assert segment.indexes().offsets.pairs() == [(3, 3 * size), (6, 6 * size), (9, 9 * size)]
    assert segment.indexes().times.pairs() == [(1_003, 3), (1_006, 6), (1_009, 9)]


@pytest.mark.spec("LOG-21", "LOG-24")
def test_it_knows_its_first_and_its_largest_timestamp_and_where_that_is() -> None:
    segment = Segment(disk(), DIR, 0)
    for base, stamp in enumerate([50, 90, 70, 90]):
        put(segment, batch(base, stamp=stamp))
    assert segment.first_timestamp == 50
    assert segment.max_timestamp == 90
    assert segment.max_timestamp_offset == 1


@pytest.mark.spec("LOG-20", "LOG-84")
def test_opened_again_it_knows_the_same_from_its_files() -> None:
    on = disk()
    segment = filled(on, [1, 2, 3], interval=99_999)
    segment.finish()
    segment.release()
    again = Segment(on, DIR, 100, size=segment.size)
    assert again.max_timestamp == 1_002
    assert again.max_timestamp_offset == segment.max_timestamp_offset == 107
    assert again.first_timestamp == 1_000
    assert again.load_end() == (108, -1)


@pytest.mark.spec("LOG-60")
def test_without_timestamps_its_age_is_the_files() -> None:
    segment = Segment(disk(), DIR, 0)
    put(segment, legacy.build([NewRecord(b"k", b"v")], magic=0))
    assert segment.max_timestamp == -1
    assert segment.largest_timestamp() == 555
    put(segment, batch(1, stamp=900))
    assert segment.largest_timestamp() == 900


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
    assert {offset: segment.position_of(offset) for offset in expected} == expected
    assert segment.position_of(end) == segment.size
    assert segment.position_of(end + 50) == segment.size


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
        assert again.batch_at(again.position_of(offset)).base_offset == offset
    assert again.load_end() == (40, -1)
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
    content = bytearray(on.read(segment.path(kind)))
    content[at % len(content)] ^= 1 << bit
    on.replace(segment.path(kind), bytes(content))
    again = Segment(on, DIR, 0, size=segment.size)
    for offset in asked:
        assert again.batch_at(again.position_of(offset)).base_offset == offset
        start = again.position_for_timestamp(1_000 + offset)
        assert start < again.size
        assert again.batch_at(start).base_offset <= offset
    assert again.max_timestamp == 1_059
    assert again.load_end() == (60, -1)


@pytest.mark.spec("LOG-88")
def test_no_batch_before_the_place_for_a_time_is_as_new() -> None:
    segment = Segment(disk(), DIR, 0)
    stamps = [10, 40, 20, 30, 60, 50, 60, 90]
    for base, stamp in enumerate(stamps):
        put(segment, batch(base, stamp=stamp))
    for asked in range(5, 100, 5):
        position = segment.position_for_timestamp(asked)
        before = [found.max_timestamp for found in segment.headers(0, position)]
        assert all(stamp < asked for stamp in before)


@pytest.mark.spec("LOG-34", "LOG-53")
def test_after_a_cut_it_is_as_if_the_rest_had_never_been() -> None:
    for offset in range(100, 125):
        on = disk()
        segment = filled(on, [1, 3, 2, 4, 1, 2])
        segment.truncate_to(offset)
        kept = [found for found in segment.headers()]
        assert all(found.last_offset < offset for found in kept)
        assert segment.size == on.file_size(segment.path())
        put(segment, batch(200, stamp=5))
        assert segment.position_of(200) == sum(found.size for found in kept)
        assert segment.max_timestamp == max([5, *(found.max_timestamp for found in kept)])
        for found in kept:
            assert segment.position_of(found.base_offset) == found.position


def test_a_write_that_fails_changes_nothing() -> None:
    on = disk()
    segment = filled(on, [1, 1])
    before = segment.size, segment.max_timestamp
    on.capacity_bytes = on.written_bytes
    with pytest.raises(OSError, match="No space"):
        put(segment, batch(104, stamp=9_999))
    assert (segment.size, segment.max_timestamp) == before
    on.capacity_bytes = None
    put(segment, batch(104))
    assert segment.position_of(104) == before[0]


@pytest.mark.spec("LOG-71")
def test_renaming_and_deleting_take_all_of_its_files() -> None:
    on = disk()
    segment = filled(on, [1, 1])
    segment.finish()
    on.replace(segment.path(TXN_INDEX), b"")
    segment.rename(".deleted")
    stem = "00000000000000000100"
    kinds = (INDEX, LOG, TIME_INDEX, TXN_INDEX)
    assert on.list(DIR) == [f"{stem}{kind}.deleted" for kind in kinds]
    assert segment.position_of(102) > 0  # still readable under its new name
    segment.delete()
    assert on.list(DIR) == []
