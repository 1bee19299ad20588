"""Promises of `ottla.log.directories.log_directories`."""

from __future__ import annotations

import errno
from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from ottla.log.directories.directory import LogDirectory
from ottla.log.directories.log_directories import LogDirectories
from ottla.log.files import OutOfResources
from ottla.model.errors import KafkaError, UserError
from ottla.model.ids import BrokerId, TopicPartition
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.fakes.manual_time import ManualClock
from tests.log.memory_directories import CONFIG, ONE, A, B, C, started, values, write

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))
TOPIC_ID = UUID(int=7)


@pytest.fixture
def disk() -> ForgettingDisk:
    return ForgettingDisk()


class BrokenDisk(ForgettingDisk):
    """One of its directories cannot be written any more."""

    broken: Path | None = None

    def _check(self, path: Path) -> None:
        if self.broken is not None and path.is_relative_to(self.broken):
            raise OSError(errno.EIO, "Input/output error", str(path))

    def replace(self, path: Path, content: bytes, *, sync: bool = True) -> None:
        self._check(path)
        super().replace(path, content, sync=sync)

    def mkdir(self, path: Path) -> None:
        self._check(path)
        super().mkdir(path)

    def rename(self, old: Path, new: Path) -> None:
        self._check(old)
        super().rename(old, new)


@pytest.mark.spec("LOG-03")
def test_a_new_partition_goes_where_the_fewest_are(disk: ForgettingDisk) -> None:
    directories = started(disk, [A, B, C])
    for number in range(7):
        directories.create(TopicPartition("t", number), TOPIC_ID, CONFIG)
    assert [sum(name.startswith("t-") for name in disk.list(path)) for path in (A, B, C)] == [
        3,
        2,
        2,
    ]


@pytest.mark.spec("LOG-03")
def test_a_directory_serves_one_process_at_a_time(disk: ForgettingDisk) -> None:
    first = started(disk, [A])
    other = LogDirectories([A], disk, ManualClock(), Random(1))
    with pytest.raises(UserError, match="a: another process"):
        other.open()
    first.release()
    other.open()


@pytest.mark.spec("LOG-15", "CTL-74")
def test_every_directory_is_told_whose_it_is_and_keeps_an_id_of_its_own(
    disk: ForgettingDisk,
) -> None:
    directories = started(disk, [A, B])
    ids = {one.meta.directory_id for one in directories.all}
    assert len(ids) == 2 and None not in ids
    directories.close()
    for path in (A, B):
        assert b"broker.id=1\n" in disk.read(path / "meta.properties")
        assert b"cluster.id=cluster\n" in disk.read(path / "meta.properties")
    again = started(disk, [A, B])
    assert {one.meta.directory_id for one in again.all} == ids
    assert again.identity(None) == (ONE, "cluster")


@pytest.mark.spec("CTL-72")
def test_a_directory_of_another_broker_is_refused(disk: ForgettingDisk) -> None:
    started(disk, [A]).close()
    directories = LogDirectories([A], disk, ManualClock(), Random(1))
    directories.open()
    with pytest.raises(UserError, match="says 1"):
        directories.identity(BrokerId(2))


@pytest.mark.spec("LOG-08", "LOG-100")
def test_a_deleted_partition_is_renamed_at_once_and_removed_later(disk: ForgettingDisk) -> None:
    clock = ManualClock(1_000_000)
    directories = started(disk, [A], clock)
    write(directories.create(T0, TOPIC_ID, CONFIG), b"1")
    directories.delete(T0)
    assert directories.get(T0) is None
    [waiting] = [name for name in disk.list(A) if name.startswith("t-0")]
    assert waiting.endswith("-delete")
    assert directories.removals.due() == []
    clock.ns += CONFIG.file_delete_delay_ms * 1_000_000
    for removal in directories.removals.due():
        removal.run()
    assert not [name for name in disk.list(A) if name.startswith("t-0")]


@pytest.mark.spec("LOG-100")
def test_what_waited_for_removal_at_a_stop_is_removed_after_the_next_start(
    disk: ForgettingDisk,
) -> None:
    directories = started(disk, [A])
    directories.create(T0, TOPIC_ID, CONFIG)
    directories.delete(T0)
    directories.close()
    again = started(disk, [A])
    assert again.get(T0) is None
    for removal in again.removals.due():
        removal.run()
    assert not [name for name in disk.list(A) if name.startswith("t-0")]


@pytest.mark.spec("LOG-99", "REP-74")
def test_a_failed_directory_takes_only_its_own_partitions_with_it() -> None:
    disk = BrokenDisk()
    directories = started(disk, [A, B])
    told: list[tuple[Path, list[TopicPartition]]] = []
    directories.on_failure = lambda directory, lost: told.append((directory.path, lost))
    for partition in (T0, T1, T2):
        write(directories.create(partition, TOPIC_ID, CONFIG), b"1")
    disk.broken = A
    with pytest.raises(OSError, match="Input/output"):
        directories.delete(T0)
    assert told == [(A, [T0, T2])]
    assert directories.get(T2) is None and directories.get(T1) is not None
    assert directories.create(TopicPartition("u", 0), TOPIC_ID, CONFIG).dir == B / "u-0"
    assert [one.failure for one in directories.all] == ["Input/output error: a/t-0", None]


@pytest.mark.spec("REP-74")
def test_a_failure_is_reported_once(disk: ForgettingDisk) -> None:
    directories = started(disk, [A, B])
    directories.create(T0, TOPIC_ID, CONFIG)
    error = OSError(errno.EIO, "Input/output error")
    assert directories.failed(A, error) == [T0]
    assert directories.failed(A, error) == []


@pytest.mark.spec("REP-74")
def test_a_start_leaves_out_a_directory_that_cannot_be_used() -> None:
    disk = BrokenDisk()
    disk.broken = A
    directories = LogDirectories([A, B], disk, ManualClock(), Random(1))
    directories.open()
    assert directories.online == [directories.all[1]]
    disk.broken = Path()
    directories = LogDirectories([A, C], disk, ManualClock(), Random(1))
    with pytest.raises(UserError, match="no usable log directory: a: Input/output error; c:"):
        directories.open()


def test_when_every_directory_has_failed_nothing_can_be_made(disk: ForgettingDisk) -> None:
    directories = started(disk, [A])
    directories.failed(A, OSError(errno.EIO, "gone"))
    with pytest.raises(KafkaError, match="all log directories of this broker have failed"):
        directories.create(T0, TOPIC_ID, CONFIG)


@pytest.mark.spec("LOG-07")
def test_a_failed_directory_is_not_marked_as_stopped_cleanly() -> None:
    disk = BrokenDisk()
    directories = started(disk, [A, B])
    write(directories.create(T0, TOPIC_ID, CONFIG), b"1")
    disk.broken = A
    directories.close()
    disk.broken = None
    clean = [LogDirectory(path, disk).was_stopped_cleanly for path in (A, B)]
    assert clean == [False, True]


def test_what_was_said_of_a_deleted_partition_is_not_believed_of_its_successor(
    disk: ForgettingDisk,
) -> None:
    """A recovery point and a start offset of the old one would hide the new one's records."""
    directories = started(disk, [A])
    log = directories.create(T0, TOPIC_ID, CONFIG)
    write(log, *[b"old"] * 50)
    log.flush()
    log.raise_start_offset(40)
    checkpoints = directories.checkpoints
    for write_ in (*checkpoints.recovery_points(), *checkpoints.start_offsets()):
        write_.run()
    directories.delete(T0)
    write(directories.create(T0, UUID(int=8), CONFIG), b"new")
    disk.kill()
    again = started(disk, [A]).get(T0)
    assert again is not None and values(again) == [b"new"]


def test_want_of_descriptors_costs_no_directory_and_is_told_once_a_minute(
    disk: ForgettingDisk, caplog: pytest.LogCaptureFixture
) -> None:
    directories = started(disk, [A])
    directories.create(T0, TOPIC_ID, CONFIG)
    error = OutOfResources(errno.EMFILE, "Too many open files (at most 9 file descriptors)")
    for _ in range(3):
        assert directories.failed(A, error) == []
    with directories.guard(directories.all[0]):
        raise error
    with (
        pytest.raises(OutOfResources),
        directories.guard(directories.all[0], starting=True),
    ):
        raise error
    assert directories.online == directories.all
    assert directories.get(T0) is not None
    assert caplog.text.count("at most 9 file descriptors") == 1
