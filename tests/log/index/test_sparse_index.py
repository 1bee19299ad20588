"""Promises of `ottla.log.index.sparse_index`, shown with the offset index."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.log.files import File
from ottla.log.index.sparse_index import WARM_BYTES, CorruptIndex, OffsetIndex
from tests.fakes.forgetting_disk import ForgettingDisk

PATH = Path("/d/x.index")


def on(disk: ForgettingDisk) -> OffsetIndex:
    disk.mkdir(PATH.parent)
    return OffsetIndex(disk, PATH)


def filled(count: int, step: int = 3) -> tuple[ForgettingDisk, OffsetIndex]:
    disk = ForgettingDisk()
    index = on(disk)
    for number in range(count):
        index.append(number * step, number * 100)
    return disk, index


@given(
    keys=st.lists(st.integers(0, 100_000), unique=True, max_size=60).map(sorted),
    asked=st.lists(st.integers(-5, 100_010), max_size=20),
    reopened=st.booleans(),
)
def test_the_floor_is_the_last_entry_not_above_what_was_asked(
    keys: Sequence[int], asked: Sequence[int], reopened: bool
) -> None:
    disk = ForgettingDisk()
    index = on(disk)
    for number, key in enumerate(keys):
        index.append(key, number)
    if reopened:
        index.write()
        index = on(disk)
        index.load()
    for key in asked:
        at = bisect_right(keys, key) - 1
        assert index.floor(key) == ((keys[at], at) if at >= 0 else None)


@pytest.mark.spec("LOG-89", "LOG-90")
def test_every_entry_of_a_large_index_is_found_warm_or_cold() -> None:
    _, index = filled(10_000)
    for number in [*range(0, 10_000, 37), 9_999, 0, 5_000, 5_001]:
        assert index.floor(number * 3) == (number * 3, number * 100)
        assert index.floor(number * 3 + 2) == (number * 3, number * 100)
    assert index.floor(-1) is None
    assert len(index.pairs()) == len(index) == 10_000


class Counting(ForgettingDisk):
    """Counts the reads of every file it opens."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def open_append(self, path: Path) -> File:
        return CountedFile(self, super().open_append(path))


class CountedFile:
    def __init__(self, disk: Counting, file: File) -> None:
        self._disk = disk
        self._file = file
        self.append = file.append
        self.slice = file.slice
        self.source = file.source
        self.sync = file.sync
        self.truncate = file.truncate
        self.is_unlinked = file.is_unlinked
        self.close = file.close

    @property
    def size(self) -> int:
        return self._file.size

    def pread(self, size: int, position: int) -> bytes:
        self._disk.reads += 1
        return self._file.pread(size, position)


@pytest.mark.spec("LOG-90")
def test_the_warm_section_is_searched_without_reading_the_file() -> None:
    disk = Counting()
    index = on(disk)
    for number in range(10_000):
        index.append(number, number)
    warm = WARM_BYTES // index.ENTRY.size
    for number in range(10_000 - warm, 10_000):
        index.floor(number)
    assert disk.reads == 0
    index.floor(0)
    assert 0 < disk.reads < 10


@pytest.mark.spec("LOG-90")
def test_neighbours_in_the_cold_part_cost_no_more_reads_than_the_first() -> None:
    disk = Counting()
    index = on(disk)
    for number in range(10_000):
        index.append(number, number)
    index.floor(100)
    first = disk.reads
    for number in range(101, 900):
        assert index.floor(number) == (number, number)
    assert disk.reads == first


@pytest.mark.spec("LOG-83")
def test_an_entry_that_does_not_rise_is_a_broken_invariant() -> None:
    _, index = filled(2)
    with pytest.raises(AssertionError):
        index.append(3, 500)


@pytest.mark.spec("LOG-79")
@pytest.mark.parametrize("size", [1, 7, 9, 67])
def test_a_file_of_no_whole_number_of_entries_is_refused(size: int) -> None:
    disk = ForgettingDisk()
    index = on(disk)
    disk.replace(PATH, bytes(size))
    with pytest.raises(CorruptIndex):
        index.load()


@pytest.mark.spec("LOG-93")
@pytest.mark.parametrize("entries", [[(0, -5)], [(-1, 0)], [(3, 1), (3, 2)], [(5, 1), (4, 2)]])
def test_entries_that_nobody_wrote_are_refused(entries: Sequence[tuple[int, int]]) -> None:
    """A position below zero would reach the disk as an error of the disk, and fail all of it."""
    disk = ForgettingDisk()
    index = on(disk)
    disk.replace(PATH, b"".join(OffsetIndex.ENTRY.pack(*entry) for entry in entries))
    with pytest.raises(CorruptIndex):
        index.load()


def test_an_impossible_entry_among_the_cold_ones_is_refused_when_it_is_found() -> None:
    disk, index = filled(10_000)
    index.write()
    content = bytearray(disk.read(PATH))
    content[100 * 8 : 101 * 8] = OffsetIndex.ENTRY.pack(300, -1)
    disk.replace(PATH, bytes(content))
    index = on(disk)
    index.load()
    assert index.floor(299) == (297, 9900)
    with pytest.raises(CorruptIndex):
        index.floor(301)


def test_a_missing_file_is_an_empty_index() -> None:
    index = on(ForgettingDisk())
    index.load()
    assert len(index) == 0
    assert index.last is None
    assert index.floor(5) is None


@pytest.mark.parametrize("count", [0, 1, 999, 1_500, 4_000, 9_999, 10_000, 10_001])
def test_a_cut_keeps_the_first_entries_and_appends_follow_them(count: int) -> None:
    disk, index = filled(10_000)
    index.truncate(count)
    kept = min(count, 10_000)
    assert len(index) == kept
    index.append(30_000 * 3, 7)
    index.write()
    again = on(disk)
    again.load()
    assert len(again) == kept + 1
    assert again.last == (90_000, 7)
    assert again.pairs() == index.pairs()


def test_written_twice_is_written_once() -> None:
    disk, index = filled(5)
    index.write()
    index.write()
    assert disk.file_size(PATH) == 5 * 8
    index.append(100, 1)
    index.write()
    assert disk.file_size(PATH) == 6 * 8


def test_an_index_without_entries_can_be_an_empty_file() -> None:
    disk = ForgettingDisk()
    index = on(disk)
    index.write()
    assert not disk.exists(PATH)
    index.create()
    assert disk.read(PATH) == b""
