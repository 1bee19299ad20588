"""Promises of `ottla.log.segment.indexes`."""

from __future__ import annotations

from pathlib import Path

from ottla.log.segment.indexes import SegmentIndexes
from tests.fakes.forgetting_disk import ForgettingDisk

PATHS = Path("/d/0.index"), Path("/d/0.timeindex")


def test_both_grow_are_cut_and_come_back_together() -> None:
    disk = ForgettingDisk()
    disk.mkdir(Path("/d"))
    indexes = SegmentIndexes(disk, *PATHS)
    indexes.load()
    indexes.add(5, 100, (1_000, 5))
    indexes.add(9, 200, (1_000, 5))  # nothing newer: no second time entry
    indexes.add(12, 300, (1_500, 12))
    assert indexes.largest_bytes == 36
    indexes.write()
    indexes.sync()
    indexes.close()
    again = SegmentIndexes(disk, *PATHS)
    again.load()
    assert again.offsets.pairs() == [(5, 100), (9, 200), (12, 300)]
    assert again.times.pairs() == [(1_000, 5), (1_500, 12)]
    again.truncate_from(9)
    assert again.offsets.pairs() == [(5, 100)]
    assert again.times.pairs() == [(1_000, 5)]
