"""A data directory as a stopped Kafka leaves it."""

from __future__ import annotations

from pathlib import Path
from random import Random
from uuid import UUID

from ottla.log.directories.log_directories import LogDirectories
from ottla.log.files import RealDisk
from ottla.log.recovery.startup_scan import StartupScan
from ottla.model.ids import BrokerId, TopicPartition
from tests.fakes.manual_time import ManualClock
from tests.log.memory_directories import CONFIG, write

TOPIC_ID = UUID(int=77)

META = (
    "cluster.id=MkU3OEVBNTcwNTJENDM2Qg\ndirectory.id=tpx8pd1IQDqJwMfGzXj6GA\nnode.id=1\nversion=1\n"
)


def write_kafka_data(folder: Path) -> Path:
    """The data directory, in `folder`."""
    path = folder / "kafka"
    directories = LogDirectories([path], RealDisk(), ManualClock(1_000), Random(1))
    directories.open()
    directories.claim(BrokerId(1), "unused")
    StartupScan(directories).ready()
    for number in range(2):
        write(directories.create(TopicPartition("orders", number), TOPIC_ID, CONFIG), b"a", b"b")
    directories.close()
    (path / "meta.properties").write_text(META)
    (path / "__cluster_metadata-0").mkdir()
    return path
