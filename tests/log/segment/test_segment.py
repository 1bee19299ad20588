"""Promises of `ottla.log.segment.segment`."""

from __future__ import annotations

import pytest

from ottla.log.segment.search import position_of
from ottla.log.segment.segment import Segment
from tests.log.small_segments import DIR, batch, disk, filled, put


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
    assert position_of(segment, 104) == before[0]
