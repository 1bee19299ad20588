"""Promises of `ottla.log.directories.directory_checkpoints`."""

from __future__ import annotations

from uuid import UUID

import pytest

from ottla.log.directories.checkpoint_file import (
    CLEANED_OFFSETS,
    HIGH_WATERMARKS,
    RECOVERY_POINTS,
    START_OFFSETS,
)
from ottla.model.ids import TopicPartition
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.log.memory_directories import CONFIG, A, B, started, write

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
TOPIC_ID = UUID(int=7)


@pytest.fixture
def disk() -> ForgettingDisk:
    return ForgettingDisk()


@pytest.mark.spec("LOG-09", "LOG-10", "LOG-11", "LOG-12", "LOG-13")
def test_each_directory_gets_the_numbers_of_its_own_partitions(disk: ForgettingDisk) -> None:
    directories = started(disk, [A, B])
    for partition, count in ((T0, 3), (T1, 5)):
        log = directories.create(partition, TOPIC_ID, CONFIG)
        write(log, *[b"v"] * count)
        log.flush()
        write(log, b"not flushed")
        log.raise_start_offset(2)
    checkpoints = directories.checkpoints
    for writes in (
        checkpoints.recovery_points(),
        checkpoints.high_watermarks(),
        checkpoints.start_offsets(),
    ):
        for one in writes:
            one.run()
    assert disk.read(A / RECOVERY_POINTS) == b"0\n1\nt 0 3\n"
    assert disk.read(A / HIGH_WATERMARKS) == b"0\n1\nt 0 4\n"
    assert disk.read(A / START_OFFSETS) == b"0\n1\nt 0 2\n"
    assert disk.read(B / RECOVERY_POINTS) == b"0\n1\nt 1 5\n"


@pytest.mark.spec("LOG-13")
def test_a_start_that_a_segments_name_tells_is_not_written(disk: ForgettingDisk) -> None:
    directories = started(disk, [A])
    write(directories.create(T0, TOPIC_ID, CONFIG), b"v")
    for one in directories.checkpoints.start_offsets():
        one.run()
    assert disk.read(A / START_OFFSETS) == b"0\n0\n"


@pytest.mark.spec("LOG-14")
def test_how_far_a_log_is_compacted_survives_a_restart(disk: ForgettingDisk) -> None:
    directories = started(disk, [A])
    for partition in (T0, T1):
        directories.create(partition, TOPIC_ID, CONFIG)
    assert directories.checkpoints.cleaned_offset(T0) is None
    for partition, offset in ((T0, 10), (T1, 20)):
        for one in directories.checkpoints.cleaned(partition, offset):
            one.run()
    assert disk.read(A / CLEANED_OFFSETS) == b"0\n2\nt 0 10\nt 1 20\n"
    directories.close()
    again = started(disk, [A])
    assert again.checkpoints.cleaned_offset(T1) == 20
    again.delete(T1)
    assert again.checkpoints.cleaned_offset(T1) is None
    assert again.checkpoints.cleaned(T1, 30) == []
    [one] = again.checkpoints.cleaned(T0, 11)
    assert one.offsets == {T0: 11}


def test_numbers_taken_earlier_never_overwrite_later_ones(disk: ForgettingDisk) -> None:
    directories = started(disk, [A])
    log = directories.create(T0, TOPIC_ID, CONFIG)
    [early] = directories.checkpoints.high_watermarks()
    write(log, b"v")
    [late] = directories.checkpoints.high_watermarks()
    late.run()
    early.run()
    assert disk.read(A / HIGH_WATERMARKS) == b"0\n1\nt 0 1\n"


@pytest.mark.spec("LOG-10")
@pytest.mark.parametrize("seed", range(10))
def test_a_checkpoint_that_was_written_survives_a_power_cut(
    disk: ForgettingDisk, seed: int
) -> None:
    directories = started(disk, [A])
    write(directories.create(T0, TOPIC_ID, CONFIG), b"v")
    for one in directories.checkpoints.high_watermarks():
        one.run()
    disk.crash(seed)
    assert disk.read(A / HIGH_WATERMARKS) == b"0\n1\nt 0 1\n"
