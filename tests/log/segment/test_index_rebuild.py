"""Promises of `ottla.log.segment.index_rebuild`."""

from __future__ import annotations

import pytest

from ottla.log.segment.index_rebuild import rebuild_indexes
from ottla.log.segment.search import position_of
from ottla.log.segment.segment import INDEX, TIME_INDEX, Segment
from ottla.log.segment.segment_end import load_end
from ottla.protocol.records import legacy
from ottla.protocol.records.batch import CorruptBatch
from ottla.protocol.records.record import NewRecord
from tests.log.small_segments import DIR, batch, disk, filled, put


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
    assert load_end(again) == (108, -1)


@pytest.mark.spec("LOG-60")
def test_without_timestamps_its_age_is_the_files() -> None:
    segment = Segment(disk(), DIR, 0)
    put(segment, legacy.build([NewRecord(b"k", b"v")], magic=0))
    assert segment.max_timestamp == -1
    assert segment.retention_timestamp == 555
    put(segment, batch(1, stamp=900))
    assert segment.retention_timestamp == 900


@pytest.mark.spec("LOG-34", "LOG-53")
def test_after_a_cut_it_is_as_if_the_rest_had_never_been() -> None:
    for offset in range(100, 125):
        on = disk()
        segment = filled(on, [1, 3, 2, 4, 1, 2])
        segment.truncate_to(offset)
        kept = [found for found in segment.headers()]
        assert all(found.last_offset < offset for found in kept)
        assert segment.size == on.file_size(segment.files.path())
        put(segment, batch(200, stamp=5))
        assert position_of(segment, 200) == sum(found.size for found in kept)
        assert segment.max_timestamp == max([5, *(found.max_timestamp for found in kept)])
        for found in kept:
            assert position_of(segment, found.base_offset) == found.position


@pytest.mark.spec("LOG-37", "LOG-93")
def test_rebuilt_indexes_are_those_that_appending_wrote() -> None:
    on = disk()
    segment = filled(on, [2, 1, 3, 1, 1, 2], interval=150)
    segment.finish()
    before = {kind: on.read(segment.files.path(kind)) for kind in (INDEX, TIME_INDEX)}
    rebuild_indexes(segment, "a test wants it", 150)
    assert {kind: on.read(segment.files.path(kind)) for kind in (INDEX, TIME_INDEX)} == before
    assert load_end(segment) == (115, -1)


def test_rot_stops_a_rebuild_and_the_segment_keeps_its_size() -> None:
    on = disk()
    segment = filled(on, [1, 1, 1])
    size = segment.size
    content = bytearray(on.read(segment.files.path()))
    content[size // 3 + 16] = 9
    on.replace(segment.files.path(), bytes(content))
    segment.release()
    with pytest.raises(CorruptBatch):
        rebuild_indexes(segment, "a test wants it")
    assert segment.size == size
