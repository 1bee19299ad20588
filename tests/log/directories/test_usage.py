"""Promises of `ottla.log.directories.log_directories`."""

from __future__ import annotations

import errno
from uuid import UUID

from ottla.log.directories.log_directories import UNKNOWN, ReplicaReport, describe
from ottla.log.directories.replica_moves import ReplicaMoves
from ottla.model.ids import TopicPartition
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.log.memory_directories import CONFIG, A, B, started, write

T0 = TopicPartition("t", 0)


def test_each_directory_tells_its_room_and_what_its_partitions_take() -> None:
    disk = ForgettingDisk()
    disk.capacity_bytes = 1_000_000
    directories = started(disk, [A, B])
    log = directories.create(T0, UUID(int=1), CONFIG)
    write(log, b"1", b"2")
    first, second = describe(directories)
    assert (first.path, first.failure, second.path) == (A, None, B)
    assert 0 < first.usable_bytes < first.total_bytes == 1_000_000
    assert list(first.replicas) == [ReplicaReport(T0, log.size, 0, is_future=False)]
    assert list(second.replicas) == []


def test_a_copy_in_the_making_tells_what_it_lacks() -> None:
    directories = started(ForgettingDisk(), [A, B])
    write(directories.create(T0, UUID(int=1), CONFIG), b"1", b"2", b"3")
    ReplicaMoves(directories).begin(T0, B)
    [copy] = describe(directories)[1].replicas
    assert (copy.offset_lag, copy.is_future) == (3, True)
    directories.failed(A, OSError(errno.EIO, "gone"))
    failed, left = describe(directories)
    assert (failed.failure, failed.usable_bytes, list(failed.replicas)) == ("gone", UNKNOWN, [])
    assert failed.total_bytes == UNKNOWN
    assert list(left.replicas) == [copy._replace(offset_lag=0)]
