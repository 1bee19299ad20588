"""Promises of `ottla.log.directories.directory`."""

from __future__ import annotations

import errno
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import pytest

from ottla.log.directories.checkpoint_file import HIGH_WATERMARKS
from ottla.log.directories.directory import (
    CLEAN_SHUTDOWN,
    LOCK_FILE,
    WRITE_CHECK_BYTES,
    LogDirectory,
)
from ottla.log.directories.meta_properties import MetaProperties
from ottla.log.directories.names import DirectoryKind, DirectoryName
from ottla.log.files import RealDisk
from ottla.model.errors import UserError
from ottla.model.ids import BrokerId, TopicPartition
from tests.fakes.forgetting_disk import ForgettingDisk

A = Path("data/a")
T0 = TopicPartition("t", 0)
META = MetaProperties(BrokerId(3), "cluster", UUID(int=9))


@pytest.fixture
def disk() -> ForgettingDisk:
    disk = ForgettingDisk()
    disk.mkdir(A)
    return disk


@pytest.mark.spec("LOG-03")
def test_a_directory_is_made_for_good_and_locked() -> None:
    disk = ForgettingDisk()
    directory = LogDirectory(A, disk)
    directory.open()
    with pytest.raises(UserError, match="another process"):
        LogDirectory(A, disk).open()
    directory.release()
    disk.crash(0)
    assert disk.exists(A)


def test_a_directory_that_takes_no_bytes_is_not_opened_and_nothing_is_left_of_the_attempt(
    disk: ForgettingDisk,
) -> None:
    disk.capacity_bytes = disk.written_bytes + WRITE_CHECK_BYTES - 1
    with pytest.raises(OSError, match="No space left"):
        LogDirectory(A, disk).open()
    disk.kill()
    disk.capacity_bytes = None
    disk.sync_error = OSError(errno.EIO, "Input/output error")
    with pytest.raises(OSError, match="Input/output error"):
        LogDirectory(A, disk).open()
    assert disk.list(A) == [LOCK_FILE]


def test_a_directory_that_was_removed_or_replaced_is_not_in_its_place(
    disk: ForgettingDisk,
) -> None:
    directory = LogDirectory(A, disk)
    directory.open()
    directory.check_in_place()
    disk.rename(A, Path("data/away"))
    with pytest.raises(FileNotFoundError):
        directory.check_in_place()
    disk.mkdir(A)
    with pytest.raises(FileNotFoundError, match="replaced while the broker was running"):
        directory.check_in_place()
    directory.claim(META)  # as where the same directory has another number by now
    directory.check_in_place()


@pytest.mark.spec("LOG-15", "CTL-74")
def test_whose_it_is_survives_a_power_cut(disk: ForgettingDisk) -> None:
    disk.sync_everything()
    LogDirectory(A, disk).claim(META)
    disk.crash(1)
    again = LogDirectory(A, disk)
    again.open()
    assert again.meta == META


def test_an_unchanged_identity_is_not_written_again(disk: ForgettingDisk) -> None:
    LogDirectory(A, disk).claim(META)
    again = LogDirectory(A, disk)
    again.open()
    written = disk.written_bytes
    again.claim(META)
    assert disk.written_bytes == written


@pytest.mark.spec("LOG-07")
@pytest.mark.parametrize("content", [b"", b"true", b'{"version":0,"brokerEpoch":5}'])
def test_the_mark_of_a_clean_stop_counts_whatever_it_says(
    disk: ForgettingDisk, content: bytes
) -> None:
    directory = LogDirectory(A, disk)
    assert not directory.was_stopped_cleanly
    disk.replace(A / CLEAN_SHUTDOWN, content)
    assert directory.was_stopped_cleanly


@pytest.mark.spec("LOG-07")
def test_the_mark_is_gone_for_good_once_it_is_taken_away(disk: ForgettingDisk) -> None:
    directory = LogDirectory(A, disk)
    directory.mark_clean(5)
    disk.sync_everything()
    directory.unmark_clean()
    disk.crash(0)
    assert not directory.was_stopped_cleanly


@pytest.mark.spec("LOG-08")
def test_partitions_are_known_by_their_names_and_nothing_else_is(disk: ForgettingDisk) -> None:
    for name in ("t-0", "t-1.ab-delete", "t-2.ab-stray", "__cluster_metadata-0", "lost+found"):
        disk.mkdir(A / name)
    assert LogDirectory(A, disk).partitions() == {
        "t-0": DirectoryName(T0, DirectoryKind.CURRENT),
        "t-1.ab-delete": DirectoryName(TopicPartition("t", 1), DirectoryKind.DELETED),
    }


@pytest.mark.spec("LOG-10")
def test_what_was_taken_is_what_is_known_though_it_is_not_written_yet(
    disk: ForgettingDisk,
) -> None:
    directory = LogDirectory(A, disk)
    assert directory.offsets(HIGH_WATERMARKS) == {}
    write = directory.checkpoint(HIGH_WATERMARKS, {T0: 7})
    assert directory.offsets(HIGH_WATERMARKS) == {T0: 7}
    assert not disk.exists(A / HIGH_WATERMARKS)
    write.run()
    assert LogDirectory(A, disk).offsets(HIGH_WATERMARKS) == {T0: 7}


def test_a_checkpoint_that_was_overtaken_is_written_all_the_same(disk: ForgettingDisk) -> None:
    """Who truncated a log may append once `run` returns: no older numbers may be on the disk."""
    directory = LogDirectory(A, disk)
    older = directory.checkpoint(HIGH_WATERMARKS, {T0: 7})
    newer = directory.checkpoint(HIGH_WATERMARKS, {T0: 9})
    older.run()
    assert LogDirectory(A, disk).offsets(HIGH_WATERMARKS) == {T0: 9}
    disk.remove(A / HIGH_WATERMARKS)
    newer.run()
    assert not disk.exists(A / HIGH_WATERMARKS), "it was written with the older one"


def test_checkpoints_of_several_threads_do_not_disturb_each_other(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path, RealDisk())
    with ThreadPoolExecutor(4) as threads:
        writes = [
            threads.submit(directory.checkpoint(HIGH_WATERMARKS, {T0: offset}).run)
            for offset in range(400)
        ]
    for write in writes:
        write.result()
    assert LogDirectory(tmp_path, RealDisk()).offsets(HIGH_WATERMARKS) == {T0: 399}
