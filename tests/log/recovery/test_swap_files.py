"""Promises of `ottla.log.recovery.swap_files`."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest

from ottla.log.recovery.swap_files import base_offset_of, complete_interrupted_operations
from ottla.log.segment.segment import Segment, SegmentPosition
from ottla.log.stored_batch import parse
from ottla.protocol.records.batch import build
from ottla.protocol.records.record import NewRecord
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.log.workbench import Workbench

A, B, C = (f"{base:020d}" for base in (0, 10, 20))


def write(bench: Workbench, base: int, offsets: range, suffix: str = "") -> None:
    segment = Segment(bench.disk, bench.dir, base, suffix=suffix)
    for offset in offsets:
        content = build([NewRecord(b"k", b"v", timestamp=offset)], base_offset=offset)
        found = parse(content, 0, 0)
        segment.append([content], [SegmentPosition(offset, offset, offset, found.size)], 0)
    segment.finish()


@pytest.fixture
def bench() -> Workbench:
    made = Workbench()
    made.disk.mkdir(made.dir)
    return made


def names_with(bench: Workbench, *suffixes: str) -> list[str]:
    return [name for name in bench.names() if name.endswith(suffixes)]


@pytest.mark.parametrize(
    ("name", "base"),
    [
        (f"{B}.log", 10),
        (f"{B}.log.swap", 10),
        ("leader-epoch-checkpoint", None),
        ("partition.metadata", None),
        (B, None),
        (f"{B}.", None),
        ("10.log", None),
    ],
)
def test_a_segments_files_are_known_by_their_twenty_digits(name: str, base: int | None) -> None:
    assert base_offset_of(name) == base


def test_a_folder_without_leftovers_is_left_alone(bench: Workbench) -> None:
    write(bench, 0, range(3))
    before = bench.names()
    assert complete_interrupted_operations(bench.disk, bench.dir) == before == bench.names()


@pytest.mark.spec("LOG-06", "LOG-36")
def test_what_waited_for_deletion_and_unfinished_compaction_go(bench: Workbench) -> None:
    write(bench, 0, range(3))
    write(bench, 10, range(10, 12), suffix=".deleted")
    write(bench, 20, range(20, 22), suffix=".cleaned")
    bench.disk.replace(bench.dir / "partition.metadata.tmp", b"half")
    assert complete_interrupted_operations(bench.disk, bench.dir) == [
        f"{A}.index",
        f"{A}.log",
        f"{A}.timeindex",
    ]


@pytest.mark.spec("LOG-36")
def test_a_swap_that_had_not_begun_everywhere_is_undone(bench: Workbench) -> None:
    write(bench, 0, range(5))
    write(bench, 10, range(10, 15))
    write(bench, 10, range(12, 13), suffix=".swap")  # the second of two went first
    write(bench, 0, range(2, 3), suffix=".cleaned")
    originals = names_with(bench, ".log", ".index", ".timeindex")
    assert complete_interrupted_operations(bench.disk, bench.dir) == originals
    assert bench.disk.file_size(bench.dir / f"{B}.log") > 100


@pytest.mark.spec("LOG-36")
def test_a_segment_of_which_only_some_files_were_renamed_is_undone(bench: Workbench) -> None:
    write(bench, 0, range(5))
    write(bench, 0, range(2, 3), suffix=".cleaned")
    path = bench.dir / f"{A}.log.cleaned"
    bench.disk.rename(path, path.with_suffix(".swap"))
    size = bench.disk.file_size(bench.dir / f"{A}.log")
    originals = [f"{A}.index", f"{A}.log", f"{A}.timeindex"]
    assert complete_interrupted_operations(bench.disk, bench.dir) == originals
    assert bench.disk.file_size(bench.dir / f"{A}.log") == size


class NotingDisk(ForgettingDisk):
    """Notes in which order names go for good: disks reorder what is not synced."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []

    def remove(self, path: Path) -> None:
        self.notes.append(path.suffix)
        super().remove(path)

    def rename(self, old: Path, new: Path) -> None:
        self.notes.append("renamed")
        super().rename(old, new)

    def sync_dir(self, path: Path) -> None:
        self.notes.append("sync")
        super().sync_dir(path)


def test_whatever_power_cut_leaves_the_next_start_undoes_the_same_swap() -> None:
    disk = NotingDisk()
    bench = Workbench(disk)
    disk.mkdir(bench.dir)
    write(bench, 10, range(12, 13), suffix=".swap")
    write(bench, 0, range(2, 3), suffix=".cleaned")
    disk.notes.clear()
    complete_interrupted_operations(disk, bench.dir)
    steps = [note for note, _ in groupby(disk.notes)]
    assert steps == [".swap", "sync", ".cleaned", "sync"]


@pytest.mark.spec("LOG-36", "LOG-38")
def test_a_swap_that_had_begun_is_completed(bench: Workbench) -> None:
    write(bench, 0, range(5))
    write(bench, 10, range(10, 15))
    write(bench, 20, range(20, 25))
    write(bench, 0, range(0, 15, 7), suffix=".swap")  # stands for the first two
    assert complete_interrupted_operations(bench.disk, bench.dir) == [
        f"{A}.index",
        f"{A}.log",
        f"{A}.timeindex",
        f"{C}.index",
        f"{C}.log",
        f"{C}.timeindex",
    ]
    segment = Segment(bench.disk, bench.dir, 0, size=bench.disk.file_size(bench.dir / f"{A}.log"))
    assert [found.base_offset for found in segment.headers()] == [0, 7, 14]


@pytest.mark.spec("LOG-38")
@pytest.mark.parametrize("renamed", [[".log"], [".index"], [".log", ".index"], [".timeindex"]])
def test_a_swap_caught_between_its_renames_is_completed(
    bench: Workbench, renamed: list[str]
) -> None:
    write(bench, 0, range(0, 15, 7), suffix=".swap")
    for kind in renamed:
        path = bench.dir / f"{A}{kind}"
        bench.disk.rename(path.with_name(path.name + ".swap"), path)
    names = complete_interrupted_operations(bench.disk, bench.dir)
    assert f"{A}.log" in names
    assert not names_with(bench, ".swap")


def test_only_what_a_swap_stands_for_is_replaced_and_no_old_index_is_kept(
    bench: Workbench,
) -> None:
    write(bench, 0, range(9))
    write(bench, 9, range(9, 10))
    write(bench, 10, range(10, 15))
    write(bench, 0, range(0, 10, 9), suffix=".swap")  # up to offset 9
    for kind in (".index", ".timeindex"):
        bench.disk.remove(bench.dir / f"{A}{kind}.swap")
    names = complete_interrupted_operations(bench.disk, bench.dir)
    assert names == [f"{A}.log", f"{B}.index", f"{B}.log", f"{B}.timeindex"]


def test_an_empty_swap_stands_for_its_base_offset_alone(bench: Workbench) -> None:
    for base in (0, 1):
        write(bench, base, range(base, base + 1))
    bench.disk.open_append(bench.dir / f"{A}.log.swap")
    names = complete_interrupted_operations(bench.disk, bench.dir)
    assert [name for name in names if name.startswith(A)] == [f"{A}.log"]
    assert len(names) == 4, "all files of the next segment stay"


def test_what_a_swap_replaces_is_gone_for_good_before_the_swap_is_renamed() -> None:
    disk = NotingDisk()
    bench = Workbench(disk)
    disk.mkdir(bench.dir)
    write(bench, 0, range(5))
    write(bench, 0, range(0, 5, 2), suffix=".swap")
    disk.notes.clear()
    complete_interrupted_operations(disk, bench.dir)
    steps = [note for note, _ in groupby(disk.notes)]
    assert steps == ["sync", ".index", ".log", ".timeindex", "sync", "renamed", "sync"]


def test_an_empty_segment_can_be_what_is_left_of_others(bench: Workbench) -> None:
    write(bench, 0, range(5))
    write(bench, 0, range(0), suffix=".swap")
    bench.disk.open_append(bench.dir / f"{A}.log.swap")
    assert f"{A}.log" in complete_interrupted_operations(bench.disk, bench.dir)
    assert bench.disk.file_size(bench.dir / f"{A}.log") == 0
