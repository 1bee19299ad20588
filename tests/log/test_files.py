"""Promises of `ottla.log.files`, kept by the real disk and by the one that forgets alike."""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path

import pytest

from ottla.log.files import (
    CLOSED_AT_ONCE,
    Disk,
    OpenFiles,
    OutOfResources,
    RealDisk,
    copy_range,
    sync_path,
)
from tests.fakes.descriptors import no_descriptors
from tests.fakes.forgetting_disk import ForgettingDisk


@pytest.fixture(params=["real", "forgetting"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    if request.param == "real":
        return RealDisk()
    fake = ForgettingDisk()
    fake.mkdir(tmp_path)
    return fake


def test_what_is_appended_is_read_back_at_its_position(disk: Disk, tmp_path: Path) -> None:
    file = disk.open_append(tmp_path / "a")
    file.append([b"one", memoryview(b"two"), bytearray(b"three")])
    file.append([b"!"])
    assert file.size == 12
    assert file.pread(5, 3) == b"twoth"
    assert file.pread(100, 11) == b"!"
    assert file.pread(1, 12) == b""
    assert disk.open_read(tmp_path / "a").pread(3, 0) == b"one"


def test_a_file_opened_again_goes_on_where_it_ended(disk: Disk, tmp_path: Path) -> None:
    disk.open_append(tmp_path / "a").append([b"one"])
    again = disk.open_append(tmp_path / "a")
    again.append([b"two"])
    assert disk.read(tmp_path / "a") == b"onetwo"
    assert again.size == disk.file_size(tmp_path / "a") == 6


def test_after_a_cut_appends_follow_what_is_left(disk: Disk, tmp_path: Path) -> None:
    file = disk.open_append(tmp_path / "a")
    file.append([b"123456"])
    file.truncate(2)
    file.append([b"xyz"])
    assert disk.read(tmp_path / "a") == b"12xyz"


def test_a_replaced_file_holds_the_new_content_and_no_temporary_stays(
    disk: Disk, tmp_path: Path
) -> None:
    for sync in (True, False):
        disk.replace(tmp_path / "a", b"old")
        disk.replace(tmp_path / "a", b"new", sync=sync)
        assert disk.read(tmp_path / "a") == b"new"
        assert disk.list(tmp_path) == ["a"]


def test_names_come_and_go(disk: Disk, tmp_path: Path) -> None:
    disk.mkdir(tmp_path / "x" / "y")
    disk.mkdir(tmp_path / "x" / "y")
    disk.open_append(tmp_path / "x" / "b")
    disk.rename(tmp_path / "x" / "b", tmp_path / "x" / "c")
    assert disk.list(tmp_path / "x") == ["c", "y"]
    assert disk.exists(tmp_path / "x" / "c")
    assert not disk.exists(tmp_path / "x" / "b")
    assert not disk.exists(tmp_path / "nowhere" / "b")
    disk.remove(tmp_path / "x" / "c")
    disk.remove(tmp_path / "x" / "c")  # gone already, which is what was wanted
    disk.sync_dir(tmp_path / "x")
    disk.remove_tree(tmp_path / "x")
    disk.remove_tree(tmp_path / "x")
    assert disk.list(tmp_path) == []


def test_a_folder_can_be_renamed_with_all_it_holds(disk: Disk, tmp_path: Path) -> None:
    disk.mkdir(tmp_path / "t-0")
    disk.replace(tmp_path / "t-0" / "f", b"kept")
    disk.rename(tmp_path / "t-0", tmp_path / "t-0.gone-delete")
    assert disk.read(tmp_path / "t-0.gone-delete" / "f") == b"kept"


def test_a_missing_file_is_said_to_be_missing(disk: Disk, tmp_path: Path) -> None:
    for ask in (disk.read, disk.open_read, disk.file_size, disk.mtime_ms, disk.list):
        with pytest.raises(FileNotFoundError):
            ask(tmp_path / "nothing")


@pytest.mark.spec("LOG-03")
def test_a_lock_keeps_others_out_until_it_is_released(disk: Disk, tmp_path: Path) -> None:
    lock = disk.lock(tmp_path / ".lock")
    with pytest.raises(BlockingIOError):
        disk.lock(tmp_path / ".lock")
    lock.release()
    disk.lock(tmp_path / ".lock").release()


def test_a_copied_range_is_whole_and_an_older_try_is_overwritten(
    disk: Disk, tmp_path: Path
) -> None:
    source = disk.open_append(tmp_path / "a")
    source.append([bytes(range(250)) * 9_000])  # more than one piece
    disk.open_append(tmp_path / "b.tmp").append([b"left from a crash"])
    copy_range(disk, source, 1_000, tmp_path / "b")
    sync_path(disk, tmp_path / "b")
    assert disk.read(tmp_path / "b") == disk.read(tmp_path / "a")[1_000:]
    assert disk.list(tmp_path) == ["a", "b"]


def test_free_space_is_known(disk: Disk, tmp_path: Path) -> None:
    assert 0 < disk.free_bytes(tmp_path) <= disk.total_bytes(tmp_path)


# The real one alone


def test_no_more_files_are_open_than_the_limit_and_all_stay_usable(tmp_path: Path) -> None:
    disk = RealDisk(open_files_limit=3)
    files = [disk.open_append(tmp_path / str(number)) for number in range(10)]
    for turn in range(3):
        for number, file in enumerate(files):
            file.append([b"%d.%d " % (number, turn)])
            assert len(disk.open_files) <= 3
    assert files[4].pread(100, 0) == b"4.0 4.1 4.2 "


def test_a_file_in_use_is_not_the_one_that_gives_way(tmp_path: Path) -> None:
    disk = RealDisk(open_files_limit=2)
    busy = disk.open_append(tmp_path / "busy")
    held = busy.slice(0, 0)  # keeps its number: a file opened anew would have another
    for number in range(5):
        busy.append([b"."])
        disk.open_append(tmp_path / str(number))
    assert busy.slice(0, 0).fileno() == held.fileno()


@pytest.mark.spec("LOG-30")
def test_a_slice_outlives_eviction_and_deletion_of_its_file(tmp_path: Path) -> None:
    disk = RealDisk(open_files_limit=1)
    file = disk.open_append(tmp_path / "a")
    file.append([b"0123456789"])
    part = file.slice(2, 5)
    disk.open_append(tmp_path / "b")
    disk.remove(tmp_path / "a")
    file.close()
    assert os.pread(part.fileno(), part.size, part.position) == part.read() == b"23456"


def test_a_descriptor_closes_with_its_last_reference(tmp_path: Path) -> None:
    disk = RealDisk()
    file = disk.open_append(tmp_path / "a")
    part = file.slice(0, 0)
    descriptor = part.fileno()
    file.close()
    os.fstat(descriptor)
    del part
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_a_deleted_file_does_not_come_back_empty(tmp_path: Path) -> None:
    disk = RealDisk()
    file = disk.open_append(tmp_path / "a")
    file.append([b"data"])
    disk.remove(tmp_path / "a")
    file.close()
    with pytest.raises(FileNotFoundError):
        file.append([b"more"])
    assert not disk.exists(tmp_path / "a")


def test_a_write_that_does_not_fit_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    """The kernel writes what fits and then refuses, as it does when a disk is full."""
    file = RealDisk().open_append(tmp_path / "a")
    file.append([b"x" * 6_000])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8_192, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            file.append([b"head", b"y" * 6_000])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert file.size == (tmp_path / "a").stat().st_size == 6_000
    file.append([b"z"])
    assert file.pread(2, 5_999) == b"xz"


def test_a_file_that_somebody_removed_says_so_while_it_is_open(tmp_path: Path) -> None:
    disk = RealDisk()
    file = disk.open_append(tmp_path / "a")
    file.append([b"x"])
    disk.rename(tmp_path / "a", tmp_path / "b")
    assert not file.is_unlinked()
    disk.remove(tmp_path / "b")
    assert file.is_unlinked()
    file.append([b"y"])  # which the kernel takes without a word
    file.sync()


def test_a_folder_is_told_from_another_of_the_same_name(tmp_path: Path) -> None:
    disk = RealDisk()
    disk.mkdir(tmp_path / "a")
    first = disk.identity(tmp_path / "a")
    assert disk.identity(tmp_path / "a") == first
    disk.rename(tmp_path / "a", tmp_path / "b")
    disk.mkdir(tmp_path / "a")
    assert disk.identity(tmp_path / "a") != first


@pytest.mark.own_process
def test_without_a_descriptor_files_are_closed_for_it_and_stay_usable(tmp_path: Path) -> None:
    disk = RealDisk()
    disk.replace(tmp_path / "small", b"content")
    files = [disk.open_append(tmp_path / str(number)) for number in range(3 * CLOSED_AT_ONCE)]
    with no_descriptors():
        assert disk.read(tmp_path / "small") == b"content"
        assert len(disk.open_files) == 2 * CLOSED_AT_ONCE
        disk.sync_dir(tmp_path)
        disk.replace(tmp_path / "small", b"new")
        assert "small" in disk.list(tmp_path)
        disk.lock(tmp_path / ".lock").release()
        disk.mkdir(tmp_path / "a")
        disk.remove_tree(tmp_path / "a")
        for number, file in enumerate(files):
            file.append([b"%d" % number])
    assert [disk.read(tmp_path / str(number)) for number in (0, 47)] == [b"0", b"47"]
    assert disk.read(tmp_path / "small") == b"new"


@pytest.mark.own_process
def test_without_a_descriptor_and_a_file_to_close_the_limit_is_named(tmp_path: Path) -> None:
    disk = RealDisk()
    file = disk.open_append(tmp_path / "a")
    pinned = file.slice(0, 0)
    file.close()
    with no_descriptors():
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        named = f"at most {limit} file descriptors"
        for work in (
            lambda: file.append([b"x"]),
            lambda: disk.sync_dir(tmp_path),
            lambda: disk.replace(tmp_path / "b", b""),
            lambda: disk.read(tmp_path / "a"),
        ):
            with pytest.raises(OutOfResources, match=named):
                work()
    assert pinned.read() == b""
    file.append([b"y"])
    assert disk.read(tmp_path / "a") == b"y"
    assert disk.list(tmp_path) == ["a"]


@pytest.mark.parametrize("code", ["EMFILE", "ENFILE", "ENOMEM", "EINTR"])
def test_a_shortage_is_waited_out_once_and_then_told_from_a_fault_of_the_disk(code: str) -> None:
    attempts: list[int] = []

    def work() -> str:
        attempts.append(len(attempts))
        if len(attempts) != 2:
            raise OSError(getattr(errno, code), os.strerror(getattr(errno, code)), "/data/t-0")
        return "done"

    assert OpenFiles(4).opening(work) == "done"
    attempts = [0, 1]
    with pytest.raises(OutOfResources, match="/data/t-0") as shortage:
        OpenFiles(4).opening(work)
    assert shortage.value.errno == getattr(errno, code)
    assert ("ulimit -n" in str(shortage.value)) is (code == "EMFILE")


@pytest.mark.parametrize("code", [errno.EIO, errno.EROFS, errno.ENOSPC, errno.EACCES])
def test_a_fault_of_the_disk_is_not_tried_again(code: int) -> None:
    attempts: list[int] = []

    def work() -> None:
        attempts.append(code)
        raise OSError(code, os.strerror(code))

    with pytest.raises(OSError, match=os.strerror(code)) as fault:
        OpenFiles(4).opening(work)
    assert not isinstance(fault.value, OutOfResources)
    assert attempts == [code]


@pytest.mark.own_process
def test_reserved_descriptors_open_files_when_the_process_has_no_other(tmp_path: Path) -> None:
    disk = RealDisk()
    disk.open_files.reserve(4)
    with no_descriptors():
        for number in range(20):  # those opened with it are closed for the next ones
            disk.mkdir(tmp_path / f"{number}")
            disk.open_append(tmp_path / f"{number}" / "log").append([b"x"])
            disk.replace(tmp_path / f"{number}" / "metadata", b"m")
            disk.sync_dir(tmp_path)
        disk.remove_tree(tmp_path / "7")
        pinned = [disk.open_read(tmp_path / f"{number}" / "log").slice(0, 1) for number in range(4)]
        with pytest.raises(OutOfResources):
            disk.read(tmp_path / "5" / "log")
    assert [part.read() for part in pinned] == [b"x"] * 4
    disk.open_read(tmp_path / "9" / "log")
    del pinned
    with no_descriptors():
        assert disk.read(tmp_path / "5" / "log") == b"x", "it is kept again"
