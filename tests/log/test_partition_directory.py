"""Promises of `ottla.log.partition_directory`."""

from __future__ import annotations

from pathlib import Path

from ottla.log.partition_directory import PartitionDirectory
from tests.fakes.forgetting_disk import ForgettingDisk

DIR = Path("/d/t-0")


def folder() -> PartitionDirectory:
    disk = ForgettingDisk()
    disk.mkdir(DIR)
    return PartitionDirectory(disk, DIR)


def sync(one: PartitionDirectory) -> int:
    """Do what a flush does; how many files there were."""
    sources, folders = one.begin_sync(9)
    for source in sources:
        source.sync()
    for path in folders:
        one.disk.sync_dir(path)
    return len(sources)


def test_what_was_written_is_synced_once() -> None:
    one = folder()
    one.write("a", b"1")
    one.write("b", b"2")
    assert sync(one) == 2
    assert one.begin_sync(9) == ([], [])


def test_what_was_synced_survives_a_power_cut() -> None:
    for seed in range(20):
        one = folder()
        disk = one.disk
        assert isinstance(disk, ForgettingDisk)
        disk.sync_dir(Path("/"))
        one.write("a", b"content")
        sync(one)
        disk.crash(seed)
        assert disk.read(DIR / "a") == b"content"


def test_a_file_that_went_meanwhile_is_not_missed() -> None:
    one = folder()
    one.write("a", b"1")
    one.disk.remove(DIR / "a")
    assert sync(one) == 0


def test_a_changed_folder_is_synced_with_the_one_that_names_it() -> None:
    one = folder()
    one.changed()
    assert one.begin_sync(9) == ([], [DIR, DIR.parent])


def test_what_was_not_synced_before_a_move_is_synced_after_it() -> None:
    one = folder()
    one.write("a", b"1")
    one.rename(DIR.with_name("t-0.x-delete"))
    assert one.path.name == "t-0.x-delete"
    assert sync(one) == 1


def test_of_many_files_the_rest_is_left_to_the_next_flush() -> None:
    one = folder()
    for name in ("a", "b", "c"):
        one.write(name, b"1")
    assert [len(sources) for sources, _ in (one.begin_sync(2), one.begin_sync(2))] == [2, 1]
    assert one.unsynced == 0
    assert one.begin_sync(2) == ([], [])
