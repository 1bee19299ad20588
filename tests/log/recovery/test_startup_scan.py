"""Promises of `ottla.log.recovery.startup_scan`."""

from __future__ import annotations

import json
from random import Random
from uuid import UUID

import pytest

from ottla.log.directories.checkpoint_file import (
    HIGH_WATERMARKS,
    RECOVERY_POINTS,
    START_OFFSETS,
)
from ottla.log.directories.directory import CLEAN_SHUTDOWN, LogDirectory
from ottla.log.directories.log_directories import LogDirectories, rename_log_dir
from ottla.log.directories.names import DirectoryKind
from ottla.log.recovery.startup_scan import StartupScan
from ottla.model.ids import TopicPartition
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.fakes.manual_time import ManualClock
from tests.log.memory_directories import CONFIG, A, B, started, values, write

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
TOPIC_ID = UUID(int=7)


@pytest.fixture
def disk() -> ForgettingDisk:
    return ForgettingDisk()


@pytest.mark.spec("LOG-01", "LOG-02", "LOG-09")
def test_partitions_are_found_again_with_all_they_had(disk: ForgettingDisk) -> None:
    directories = started(disk)
    for partition, value in ((T0, b"zero"), (T1, b"one")):
        write(directories.create(partition, TOPIC_ID, CONFIG), value, value)
    directories.close()
    again = started(disk)
    for partition, value in ((T0, b"zero"), (T1, b"one")):
        log = again.get(partition)
        assert log is not None
        assert values(log) == [value, value]
        assert (log.topic_id, log.high_watermark, log.end_offset) == (TOPIC_ID, 2, 2)


@pytest.mark.spec("LOG-07")
def test_a_clean_stop_is_marked_and_the_mark_is_gone_after_the_start(disk: ForgettingDisk) -> None:
    started(disk, [A]).close(broker_epoch=42)
    content = disk.read(A / CLEAN_SHUTDOWN)
    assert json.loads(content) == {"version": 0, "brokerEpoch": 42}
    started(disk, [A])
    assert not disk.exists(A / CLEAN_SHUTDOWN)


@pytest.mark.spec("LOG-07")
@pytest.mark.parametrize("seed", range(20))
def test_no_power_cut_makes_an_unclean_stop_look_clean(disk: ForgettingDisk, seed: int) -> None:
    directories = started(disk, [A])
    write(directories.create(T0, TOPIC_ID, CONFIG), b"flushed")
    directories.close()
    disk.sync_everything()
    again = started(disk, [A])
    log = again.get(T0)
    assert log is not None
    write(log, *[b"not flushed" * 100] * 5)
    disk.crash(seed)
    assert not disk.exists(A / CLEAN_SHUTDOWN)
    third = started(disk, [A]).get(T0)
    assert third is not None and values(third)[:1] == [b"flushed"]


@pytest.mark.spec("LOG-12")
def test_the_high_watermark_is_the_one_that_was_written_down(disk: ForgettingDisk) -> None:
    directories = started(disk, [A])
    write(directories.create(T0, TOPIC_ID, CONFIG), b"1", b"2", b"3")
    directories.close()
    LogDirectory(A, disk).checkpoint(HIGH_WATERMARKS, {T0: 2}).run()
    log = started(disk, [A]).get(T0)
    assert log is not None and log.high_watermark == 2


@pytest.mark.spec("LOG-09")
def test_a_log_that_ends_below_its_high_watermark_is_reported_once(
    disk: ForgettingDisk, caplog: pytest.LogCaptureFixture
) -> None:
    """Scenario 7: all replicas lost power before the disk had what was acknowledged."""
    directories = started(disk)
    log = directories.create(T0, TOPIC_ID, CONFIG)
    write(log, b"flushed")
    log.flush()
    write(log, b"lost")
    log.set_high_watermark(2)
    whole = directories.create(T1, TOPIC_ID, CONFIG)
    write(whole, b"flushed")
    whole.flush()
    whole.set_high_watermark(1)
    for checkpoint in (
        *directories.checkpoints.high_watermarks(),
        *directories.checkpoints.recovery_points(),
    ):
        checkpoint.run()
    path = log.segments.active.files.path()
    content = disk.read(path)
    disk.kill()
    disk.replace(path, content[:-1])
    again = started(disk).get(T0)
    assert again is not None and again.end_offset == again.high_watermark == 1
    reports = [text for text in caplog.messages if "checkpointed high watermark" in text]
    assert len(reports) == 1
    assert reports[0].startswith("t-0: the log ends at offset 1, below its checkpointed high")


@pytest.mark.parametrize("name", ["lost+found", "__cluster_metadata-0", "t-9.ab-stray", "notes"])
def test_what_is_no_partition_of_ours_is_left_alone(disk: ForgettingDisk, name: str) -> None:
    disk.mkdir(A / name)
    disk.replace(A / name / "file", b"content")
    directories = started(disk, [A])
    assert directories.logs == {}
    directories.close()
    assert disk.read(A / name / "file") == b"content"


def test_a_partition_in_two_directories_is_served_from_the_longer_one(
    disk: ForgettingDisk,
) -> None:
    for path, count in ((A, 2), (B, 3)):
        alone = started(disk, [path])
        write(alone.create(T0, TOPIC_ID, CONFIG), *[b"v"] * count)
        alone.close()
    directories = started(disk, [A, B])
    log = directories.get(T0)
    assert log is not None and log.dir == B / "t-0"
    [aside] = [name for name in disk.list(A) if name.startswith("t-0")]
    assert aside.endswith("-stray")
    directories.close()
    assert started(disk, [A, B]).get(T0) is not None


def test_of_two_equally_long_ones_the_first_is_served(disk: ForgettingDisk) -> None:
    for path in (A, B):
        alone = started(disk, [path])
        write(alone.create(T0, TOPIC_ID, CONFIG), b"v")
        alone.close()
    log = started(disk, [A, B]).get(T0)
    assert log is not None and log.dir == A / "t-0"


@pytest.mark.parametrize("name", [HIGH_WATERMARKS, RECOVERY_POINTS])
def test_a_log_that_had_records_and_is_gone_is_known_to_be_lost(
    disk: ForgettingDisk, name: str
) -> None:
    """By either checkpoint, at each start until it is created again; an empty one is not missed."""
    directories = started(disk)
    for partition in (T0, T1):
        directories.create(partition, TOPIC_ID, CONFIG)
    directories.close()
    for path, partition in ((A, T0), (B, T1)):
        disk.remove_tree(path / str(partition))
        for each in (HIGH_WATERMARKS, RECOVERY_POINTS):
            LogDirectory(path, disk).checkpoint(each, {}).run()
    LogDirectory(A, disk).checkpoint(name, {T0: 1}).run()
    LogDirectory(B, disk).checkpoint(name, {T1: 0}).run()
    again = started(disk)
    assert (again.has_lost(T0), again.has_lost(T1)) == (True, False)
    assert [directory.lost_logs for directory in again.all] == [{T0: 1}, {}]
    again.create(T0, TOPIC_ID, CONFIG)
    assert not again.has_lost(T0)


def test_the_later_of_two_checkpoints_says_what_was_lost(disk: ForgettingDisk) -> None:
    started(disk, [A]).close()
    LogDirectory(A, disk).checkpoint(HIGH_WATERMARKS, {T0: 3, T1: 5}).run()
    LogDirectory(A, disk).checkpoint(RECOVERY_POINTS, {T0: 4, T1: 2}).run()
    [directory] = started(disk, [A]).all
    assert directory.lost_logs == {T0: 4, T1: 5}


def test_a_log_that_is_in_another_directory_is_not_lost(disk: ForgettingDisk) -> None:
    for path in (A, B):
        directories = started(disk, [path])
        if path == B:
            write(directories.create(T0, TOPIC_ID, CONFIG), b"v")
        directories.close()
    LogDirectory(A, disk).checkpoint(HIGH_WATERMARKS, {T0: 1}).run()
    assert not started(disk, [A, B]).has_lost(T0)


def test_what_was_marked_for_deletion_is_removed_at_once_and_not_loaded(
    disk: ForgettingDisk,
) -> None:
    directories = started(disk, [A])
    write(directories.create(T0, TOPIC_ID, CONFIG), b"v")
    rename_log_dir(directories.logs[T0], DirectoryKind.DELETED, UUID(int=1))
    [marked] = [name for name in disk.list(A) if name.startswith("t-0")]
    disk.kill()
    again = started(disk, [A])
    assert again.get(T0) is None
    assert [removal.path for removal in again.removals.due()] == [A / marked]


def test_a_copy_in_the_making_is_not_taken_for_the_partition(disk: ForgettingDisk) -> None:
    directories = started(disk, [A, B])
    write(directories.create(T0, TOPIC_ID, CONFIG), b"1")
    rename_log_dir(directories.logs.pop(T0), DirectoryKind.FUTURE, UUID(int=1))
    for path in (A, B):  # which is of the log that is copied
        LogDirectory(path, disk).checkpoint(START_OFFSETS, {T0: 1}).run()
    again = LogDirectories([A, B], disk, ManualClock(), Random(1))
    disk.kill()
    again.open()
    loading = StartupScan(again)
    [pending] = loading.pending()
    loading.admit(pending, pending.load(CONFIG))
    assert again.get(T0) is None
    assert values(again.futures[T0].log) == [b"1"]


@pytest.mark.spec("LOG-09")
def test_a_log_begins_where_it_was_cut(disk: ForgettingDisk) -> None:
    directories = started(disk, [A])
    write(directories.create(T0, TOPIC_ID, CONFIG), b"1", b"2", b"3")
    directories.close()
    LogDirectory(A, disk).checkpoint(START_OFFSETS, {T0: 2}).run()
    log = started(disk, [A]).get(T0)
    assert log is not None
    assert (log.start_offset, values(log)) == (2, [b"3"])


@pytest.mark.spec("LOG-10")
def test_a_damaged_checkpoint_is_passed_over(disk: ForgettingDisk) -> None:
    directories = started(disk, [A])
    write(directories.create(T0, TOPIC_ID, CONFIG), b"1", b"2")
    directories.close()
    for name in ("recovery-point-offset-checkpoint", HIGH_WATERMARKS):
        disk.replace(A / name, b"0\n7\nt 0 99\n")
    disk.remove(A / CLEAN_SHUTDOWN)
    log = started(disk, [A]).get(T0)
    assert log is not None and values(log) == [b"1", b"2"]
