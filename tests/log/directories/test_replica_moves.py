"""Promises of `ottla.log.directories.replica_moves`."""

from __future__ import annotations

from uuid import UUID

import pytest

from ottla.config.topic import TopicConfig
from ottla.log.directories.log_directories import LogDirectories
from ottla.log.directories.replica_moves import ReplicaMoves
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicPartition
from ottla.protocol.records.batch import build
from ottla.protocol.records.header import CorruptBatch
from ottla.protocol.records.record import NewRecord
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.log.memory_directories import CONFIG, A, B, C, started, values, write

pytestmark = pytest.mark.spec("REP-75")

T0 = TopicPartition("t", 0)
TOPIC_ID = UUID(int=7)


@pytest.fixture
def disk() -> ForgettingDisk:
    return ForgettingDisk()


@pytest.fixture
def directories(disk: ForgettingDisk) -> LogDirectories:
    held = started(disk, [A, B, C])
    write(held.create(T0, TOPIC_ID, CONFIG), *[b"%d" % n for n in range(20)])
    return held


def names(disk: ForgettingDisk) -> list[str]:
    """Every partition directory, without the random part of its name."""
    found = (f"{path}/{name}" for path in (A, B, C) for name in disk.list(path))
    return [
        name.split(".")[0] + name[-7:] if "." in name else name for name in found if "/t-0" in name
    ]


def test_a_partition_is_copied_and_then_changes_places(
    disk: ForgettingDisk, directories: LogDirectories
) -> None:
    moves = ReplicaMoves(directories)
    moves.begin(T0, B)
    assert names(disk) == ["a/t-0", "b/t-0-future"]
    assert moves.copy(T0) is True
    source = directories.get(T0)
    assert source is not None
    write(source, b"late")  # the partition is served and written meanwhile
    log = moves.finish(T0)
    assert directories.get(T0) is log and log.dir == B / "t-0"
    assert values(log) == [b"%d" % n for n in range(20)] + [b"late"]
    assert (log.high_watermark, log.topic_id) == (21, TOPIC_ID)
    assert names(disk) == ["a/t-0-delete", "b/t-0"]
    assert directories.futures == {}


def test_a_moved_partition_is_where_it_was_moved_to_after_a_power_cut(
    disk: ForgettingDisk, directories: LogDirectories
) -> None:
    disk.sync_everything()
    moves = ReplicaMoves(directories)
    moves.begin(T0, B)
    moves.finish(T0)
    disk.crash(3)
    log = started(disk, [A, B, C]).get(T0)
    assert log is not None and log.dir == B / "t-0"
    assert values(log) == [b"%d" % n for n in range(20)]


def test_what_was_deleted_before_a_move_stays_deleted(directories: LogDirectories) -> None:
    source = directories.get(T0)
    assert source is not None
    source.raise_start_offset(5)
    moves = ReplicaMoves(directories)
    moves.begin(T0, B)
    moves.copy(T0)
    source.raise_start_offset(8)
    log = moves.finish(T0)
    assert log.start_offset == 8
    assert values(log) == [b"%d" % n for n in range(8, 20)]


def test_a_log_that_begins_inside_of_a_batch_is_copied_with_that_batch(
    directories: LogDirectories,
) -> None:
    source = directories.get(T0)
    assert source is not None
    batch = build([NewRecord(b"k", value, (), 5) for value in (b"x", b"y", b"z")])
    source.append(batch, leader_epoch=0, now_ms=WallMs(1_000_000))
    source.raise_high_watermark(source.end_offset)
    source.raise_start_offset(21)  # in the middle of it
    moves = ReplicaMoves(directories)
    moves.begin(T0, B)
    log = moves.finish(T0)
    assert (log.start_offset, log.end_offset) == (21, 23)
    assert values(log) == [b"y", b"z"]


def test_a_source_that_is_cut_cuts_its_copy(directories: LogDirectories) -> None:
    moves = ReplicaMoves(directories)
    moves.begin(T0, B)
    moves.copy(T0)
    source = directories.get(T0)
    assert source is not None
    source.truncate_to(15)
    write(source, *[b"other"] * 9, leader_epoch=3)
    log = moves.finish(T0)
    assert values(log) == [b"%d" % n for n in range(15)] + [b"other"] * 9
    assert log.epochs.entries == [(0, 0), (3, 15)]


def test_another_target_gives_up_the_first_copy(
    disk: ForgettingDisk, directories: LogDirectories
) -> None:
    moves = ReplicaMoves(directories)
    moves.begin(T0, B)
    moves.begin(T0, B)
    moves.begin(T0, C)
    assert names(disk) == ["a/t-0", "b/t-0-delete", "c/t-0-future"]
    moves.begin(T0, A)  # back to where it is: nothing to do any more
    assert names(disk) == ["a/t-0", "b/t-0-delete", "c/t-0-delete"]
    with pytest.raises(KafkaError, match="replica is not being moved"):
        moves.copy(T0)


def test_a_partition_that_is_not_there_yet_is_made_where_it_was_asked_for(
    directories: LogDirectories,
) -> None:
    other = TopicPartition("u", 0)
    with pytest.raises(KafkaError) as refusal:
        ReplicaMoves(directories).begin(other, C)
    assert refusal.value.code is ErrorCode.replica_not_available
    assert directories.create(other, TOPIC_ID, CONFIG).dir == C / "u-0"


def test_a_directory_that_is_none_of_ours_is_refused(directories: LogDirectories) -> None:
    with pytest.raises(KafkaError) as refusal:
        ReplicaMoves(directories).begin(T0, A / "elsewhere")
    assert refusal.value.code is ErrorCode.log_dir_not_found


def test_a_deleted_partition_takes_its_copy_with_it(
    disk: ForgettingDisk, directories: LogDirectories
) -> None:
    ReplicaMoves(directories).begin(T0, B)
    directories.delete(T0)
    assert names(disk) == ["a/t-0-delete", "b/t-0-delete"]


def test_a_copy_grows_in_steps(directories: LogDirectories) -> None:
    source = directories.get(T0)
    assert source is not None
    write(source, *[b"x" * 400_000] * 6)
    moves = ReplicaMoves(directories)
    moves.begin(T0, B)
    steps = 1
    while not moves.copy(T0):
        steps += 1
    assert steps >= 3
    assert values(directories.futures[T0].log) == values(source)


def test_a_disk_that_cannot_be_read_fails_its_own_directory_and_not_the_target(
    disk: ForgettingDisk, directories: LogDirectories
) -> None:
    moves = ReplicaMoves(directories)
    moves.begin(T0, B)
    disk.kill()  # open files are gone, as with a disk that was pulled
    with pytest.raises(KafkaError) as refusal:
        moves.copy(T0)
    assert refusal.value.code is ErrorCode.kafka_storage_error
    assert [one.path for one in directories.online] == [B, C]


def test_rot_is_not_copied(disk: ForgettingDisk, directories: LogDirectories) -> None:
    source = directories.get(T0)
    assert source is not None
    path = source.segments.first.files.path()
    rotten = bytearray(disk.read(path))
    rotten[70] ^= 1
    moves = ReplicaMoves(directories)
    moves.begin(T0, B)
    disk.replace(path, bytes(rotten))
    source.segments.first.release()
    with pytest.raises(CorruptBatch):
        moves.copy(T0)
    moves.cancel(T0)
    assert directories.futures == {}
    assert len(directories.online) == 3
    moves.cancel(T0)


def test_settings_that_changed_during_the_move_hold_for_the_moved_log(
    directories: LogDirectories,
) -> None:
    moves = ReplicaMoves(directories)
    moves.begin(T0, B)
    source = directories.get(T0)
    assert source is not None
    source.config = TopicConfig(retention_ms=5)
    assert moves.finish(T0).config.retention_ms == 5
