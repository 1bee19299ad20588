"""Promises of `ottla.log.directories.inspection`."""

from __future__ import annotations

from pathlib import Path
from struct import pack
from uuid import UUID

import pytest

from ottla.log.directories.inspection import inspect
from ottla.log.files import RealDisk
from ottla.model.clock import WallMs
from ottla.model.errors import UserError
from ottla.model.ids import TRANSACTION_STATE, TopicPartition
from ottla.protocol.records.batch import build
from ottla.protocol.records.record import NewRecord
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.log.memory_directories import CONFIG, A, started, write

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
TOPIC_ID = UUID(int=7)


@pytest.fixture
def disk() -> ForgettingDisk:
    """A data directory of two partitions, stopped cleanly."""
    disk = ForgettingDisk()
    directories = started(disk, [A])
    first = directories.create(T0, TOPIC_ID, CONFIG)
    write(first, *[b"v" * 5_000] * 10, leader_epoch=4)
    first.raise_start_offset(3)
    write(directories.create(T1, TOPIC_ID, CONFIG), b"v")
    directories.close()
    return disk


def contents(disk: ForgettingDisk) -> dict[str, bytes]:
    return {
        f"{folder}/{name}": disk.read(folder / name)
        for folder in (A, A / "t-0", A / "t-1")
        for name in disk.list(folder)
        if "-" not in name or name.endswith("checkpoint")
    }


def test_a_directory_tells_its_partitions_their_ids_and_offsets(disk: ForgettingDisk) -> None:
    found = inspect(A, disk)
    assert (found.meta.broker_id, found.meta.cluster_id) == (1, "cluster")
    assert found.stopped_cleanly
    first, second = found.partitions
    assert (first.partition, first.topic_id, first.leader_epoch) == (T0, TOPIC_ID, 4)
    assert (first.start_offset, first.end_offset) == (3, 10)
    assert (second.partition, second.start_offset, second.end_offset) == (T1, 0, 1)
    assert first.size > 50_000


def test_looking_changes_nothing(disk: ForgettingDisk) -> None:
    before = contents(disk)
    written = disk.written_bytes
    inspect(A, disk)
    assert contents(disk) == before
    assert disk.written_bytes == written


def test_an_index_that_kafka_preallocated_does_not_mislead(disk: ForgettingDisk) -> None:
    index = A / "t-0" / "00000000000000000000.index"
    disk.replace(index, disk.read(index) + bytes(4_096))
    assert inspect(A, disk).partitions[0].end_offset == 10
    disk.replace(index, b"\0\0\0\1\7\7\7\7")
    assert inspect(A, disk).partitions[0].end_offset == 10


def test_a_torn_tail_ends_at_the_last_whole_batch(disk: ForgettingDisk) -> None:
    log = A / "t-0" / "00000000000000000000.log"
    disk.replace(log, disk.read(log)[:-7])
    assert inspect(A, disk).partitions[0].end_offset == 9


def test_what_no_topic_owns_is_listed(disk: ForgettingDisk) -> None:
    for name in ("__cluster_metadata-0", "gone-3.abc-delete", "lost-1.abc-stray", "lost+found"):
        disk.mkdir(A / name)
    assert set(inspect(A, disk).leftovers) == {
        "__cluster_metadata-0", "gone-3.abc-delete", "lost-1.abc-stray",
    }  # fmt: skip


def test_the_largest_producer_id_in_use_is_found(disk: ForgettingDisk) -> None:
    assert inspect(A, disk).largest_producer_id == -1
    directories = started(disk, [A])
    log = directories.get(T1)
    assert log is not None
    batch = build([NewRecord(b"k", b"v")], producer_id=70, producer_epoch=0, base_sequence=0)
    log.append(batch, leader_epoch=0, now_ms=WallMs(0))
    remembered = directories.create(TopicPartition(TRANSACTION_STATE, 0), TOPIC_ID, CONFIG)
    value = pack(">hqh", 0, 900, 3) + bytes(10)
    remembered.append(build([NewRecord(b"txn", value)]), leader_epoch=0, now_ms=WallMs(0))
    directories.close()
    assert inspect(A, disk).largest_producer_id == 900


def test_topics_that_were_compacted_are_known(disk: ForgettingDisk) -> None:
    disk.replace(A / "cleaner-offset-checkpoint", b"0\n1\nt 0 5\n")
    assert inspect(A, disk).compacted == {"t"}


def test_a_directory_without_meta_properties_is_no_data_directory(disk: ForgettingDisk) -> None:
    disk.remove(A / "meta.properties")
    with pytest.raises(UserError, match=r"no meta\.properties"):
        inspect(A, disk)


def test_a_partition_without_a_file_of_epochs_is_found(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=0\ncluster.id=x\n")
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / "00000000000000000000.log").touch()
    [found] = inspect(tmp_path, RealDisk()).partitions
    assert (found.end_offset, found.leader_epoch) == (0, -1)
