"""A partition's log in a test: on a disk that forgets, with small segments and a clock by hand."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from ottla.config.topic import TopicConfig
from ottla.log.files import Disk
from ottla.log.log import Log
from ottla.log.recovery.log_loader import CheckpointedState, LogLocation, create, load
from ottla.log.stored_batch import walk_whole
from ottla.model.clock import WallMs
from ottla.model.ids import TopicPartition
from ottla.protocol.records.batch import build
from ottla.protocol.records.record import NewRecord, Record, read_records
from tests.fakes.forgetting_disk import ForgettingDisk

PARTITION = TopicPartition("orders", 3)
TOPIC_ID = UUID("5b9a2f4e-7c11-4d2a-9b67-1f0e2d3c4b5a")
ROOT = Path("/data")
DIR = ROOT / "orders-3"
NOW_MS = WallMs(1_700_000_000_000)


class Workbench:
    """Opens, closes and breaks one log."""

    def __init__(self, disk: Disk | None = None, dir: Path = DIR, **settings: Any) -> None:
        self.disk = disk or ForgettingDisk(lambda: NOW_MS)
        self.dir = dir
        self.config = TopicConfig(**settings)
        self.disk.mkdir(dir.parent)
        for folder in dir.parents:
            self.disk.sync_dir(folder)

    @property
    def place(self) -> LogLocation:
        return LogLocation(self.disk, Random(7), NOW_MS)

    def create(self) -> Log:
        return create(PARTITION, self.dir, self.config, self.place, TOPIC_ID)

    def load(self, *, clean: bool, recovery_point: int = 0, start_offset: int = 0) -> Log:
        known = CheckpointedState(clean, recovery_point, start_offset)
        return load(PARTITION, self.dir, self.config, self.place, known)

    def reopen(self, log: Log) -> Log:
        """Stop cleanly and start again."""
        log.close()
        return self.load(clean=True, start_offset=log.start_offset)

    def names(self) -> list[str]:
        return self.disk.list(self.dir)

    def flip(self, name: str, at: int, bit: int = 0) -> None:
        """Turn one bit of a file, as a bad disk would."""
        content = bytearray(self.disk.read(self.dir / name))
        content[at] ^= 1 << bit
        self.disk.replace(self.dir / name, bytes(content))


def batch(*values: bytes, timestamp: int = NOW_MS, **fields: int | bool) -> bytes:
    """A batch of these values as a client sends it."""
    records = [NewRecord(b"key", value, timestamp=timestamp) for value in values]
    return build(records, **fields)  # type: ignore[arg-type]


def add(log: Log, *values: bytes, timestamp: int = NOW_MS, epoch: int = 0, **fields: int) -> int:
    """Append one batch as leader; its first offset."""
    content = batch(*values, timestamp=timestamp, **fields)
    return log.append(memoryview(content), leader_epoch=epoch, now_ms=NOW_MS).first_offset


def stored(log: Log) -> list[Record]:
    """Every record of a log, read from its files; each batch is checked on the way."""
    found: list[Record] = []
    for segment in log.segments:
        for _, content in walk_whole(segment.file(), 0, segment.size):
            found += read_records(content)
    return found


def values(log: Log) -> list[bytes | None]:
    return [record.value for record in stored(log)]
