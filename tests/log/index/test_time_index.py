"""Promises of `ottla.log.index.sparse_index`."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.log.index.sparse_index import TimeIndex
from tests.fakes.forgetting_disk import ForgettingDisk

PATH = Path("/d/00000000000000000000.timeindex")


@pytest.fixture
def index() -> TimeIndex:
    disk = ForgettingDisk()
    disk.mkdir(PATH.parent)
    return TimeIndex(disk, PATH)


@pytest.mark.spec("LOG-78")
def test_an_entry_is_twelve_bytes_timestamp_then_relative_offset(index: TimeIndex) -> None:
    index.append_if_larger(1_500_000_000_000, 27)
    index.write()
    assert index.ENTRY.size == 12
    assert index._disk.read(PATH) == bytes.fromhex("0000015d3ef79800 0000001b")


@pytest.mark.spec("LOG-84")
def test_an_entry_is_added_only_when_the_largest_timestamp_has_risen(index: TimeIndex) -> None:
    for stamp, offset in [(-1, 0), (10, 1), (10, 2), (9, 3), (11, 4)]:
        index.append_if_larger(stamp, offset)
    assert index.pairs() == [(10, 1), (11, 4)]


def test_entries_of_cut_offsets_are_dropped(index: TimeIndex) -> None:
    for stamp in (10, 20, 30):
        index.append_if_larger(stamp, stamp // 10)
    index.truncate_from(2)
    assert index.pairs() == [(10, 1)]
