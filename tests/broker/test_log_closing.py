"""Closing every log: after it nothing is recovered, and a disk that fails costs only itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.broker.log_tasks import close
from ottla.model.ids import TopicPartition
from tests.broker.log_directories import filled, loaded, opened, two_threads
from tests.log.memory_directories import values, write

PARTITIONS = 70


@pytest.mark.spec("LOG-76")
async def test_after_a_clean_stop_every_directory_is_called_clean_and_every_record_is_durable() -> (
    None
):
    disk = await filled(PARTITIONS, ("/a", "/b"))
    directories = opened(disk, "/a", "/b")
    await loaded(directories)
    await close(directories, two_threads())
    disk.kill()  # what was not synced is gone
    again = opened(disk, "/a", "/b")
    assert [one.was_stopped_cleanly for one in again.online] == [True, True]
    await loaded(again)
    for index in range(PARTITIONS):
        log = again.get(TopicPartition("t", index))
        assert log is not None
        assert values(log) == [b"%d" % index]
        assert log.recovery_point == log.end_offset


async def test_a_directory_whose_log_cannot_be_closed_is_not_called_clean() -> None:
    disk = await filled(4, ("/a", "/b"))
    directories = opened(disk, "/a", "/b")
    await loaded(directories)
    last = next(one for one in directories.logs.values() if one.directory.path == Path("/b"))
    write(last.log, b"more")
    disk.remove_tree(last.log.dir)
    await close(directories, two_threads())
    again = opened(disk, "/a", "/b")
    assert {str(one.path): one.was_stopped_cleanly for one in again.online} == {
        "/a": True,
        "/b": False,
    }
