"""Opening every log at the start: all that can be, with a word now and then when it takes long."""

from __future__ import annotations

import errno
from pathlib import Path
from uuid import UUID

import pytest

from ottla.broker.log_tasks import CHUNK, load
from ottla.config.dynamic import DynamicConfig
from ottla.config.topic import TopicConfig
from ottla.log.directories.names import DirectoryKind, name_of
from ottla.log.files import OutOfResources
from ottla.log.log import Log
from ottla.log.recovery.startup_scan import PendingLog
from ottla.model.ids import TopicPartition
from tests.broker.log_directories import filled, loaded, opened, two_threads
from tests.fakes.data_side import TP, data_side
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.log.memory_directories import values


@pytest.mark.spec("LOG-35")
async def test_every_partition_is_open_afterwards() -> None:
    disk = await filled(2 * CHUNK + 3, ("/a", "/b"))
    directories = opened(disk, "/a", "/b")
    assert await loaded(directories) == []
    assert len(directories.logs) == 2 * CHUNK + 3
    log = directories.get(TopicPartition("t", 7))
    assert log is not None
    assert values(log) == [b"7"]


async def test_topics_are_loaded_under_their_own_settings() -> None:
    directories = opened(await filled(1))
    config = DynamicConfig({})
    config.set_topic("t", {"retention.ms": "1234"})
    await load(directories, config, two_threads())
    log = directories.get(TP)
    assert log is not None
    assert log.config.retention_ms == 1_234


async def test_a_corrupt_partition_stays_offline_and_the_rest_are_served(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = ForgettingDisk()
    async with data_side({"flush.before.ack": "all"}, disk=disk) as side:
        for index in range(2):
            key = TopicPartition("t", index)
            partition = await side.lead(key)
            for value in (b"a", b"b"):
                await side.append(value, key=key, acks=-1)
        for write in side.directories.checkpoints.recovery_points():
            write.run()
        path = partition.log.segments.first.files.path()
    content = bytearray(disk.read(path))
    content[65] ^= 1
    disk.replace(path, bytes(content))
    disk.kill()
    directories = opened(disk)
    assert await loaded(directories) == [TopicPartition("t", 1)]
    assert set(directories.logs) == {TP}
    assert set(directories.quarantined) == {TopicPartition("t", 1)}
    assert "partition t-1 stays offline" in caplog.text


async def test_a_corrupt_copy_in_the_making_costs_only_the_copy(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = await filled(1, ("/a", "/b"))
    copy = Path(f"/b/{name_of(TP, DirectoryKind.FUTURE, UUID(int=5))}")
    disk.mkdir(copy)
    disk.replace(copy / f"{0:020d}.log.quarantined", b"")
    directories = opened(disk, "/a", "/b")
    assert await loaded(directories) == []
    assert set(directories.logs) == {TP}
    for removal in directories.removals.due():
        removal.run()
    assert not disk.exists(copy)
    assert "removing the unfinished copy of t-0" in caplog.text


async def test_a_directory_that_cannot_be_read_costs_only_itself() -> None:
    disk = await filled(4, ("/a", "/b"))
    directories = opened(disk, "/a", "/b")
    lost = []
    directories.on_failure = lambda directory, _: lost.append(str(directory.path))
    folder = next(name for name in disk.list(Path("/b")) if name.startswith("t-"))
    disk.remove_tree(Path("/b") / folder)
    disk.open_append(Path("/b") / folder)  # a file where a folder should be
    assert await loaded(directories) == []
    assert lost == ["/b"]
    assert [str(one.path) for one in directories.online] == ["/a"]
    assert len(directories.logs) == 2


async def test_a_start_without_descriptors_ends_and_no_log_counts_as_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    directories = opened(await filled(2))

    def refuse(path: Path) -> list[str]:
        raise OutOfResources(errno.EMFILE, "Too many open files", str(path))

    scan_then_refuse = PendingLog.load

    def load_without(pending: PendingLog, config: TopicConfig) -> Log:
        monkeypatch.setattr(directories.all[0].disk, "list", refuse)
        return scan_then_refuse(pending, config)

    monkeypatch.setattr(PendingLog, "load", load_without)
    with pytest.raises(ExceptionGroup) as raised:
        await loaded(directories)
    assert raised.group_contains(OutOfResources)
    assert directories.online == directories.all
