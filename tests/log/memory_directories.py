"""Log directories in memory, for the tests of what lives in them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

from ottla.config.broker import BrokerConfig
from ottla.config.topic import TopicConfig
from ottla.log.directories.log_directories import LogDirectories
from ottla.log.log import Log
from ottla.log.recovery.startup_scan import StartupScan
from ottla.model.clock import WallMs
from ottla.model.ids import BrokerId
from ottla.protocol.records.batch import build
from ottla.protocol.records.record import NewRecord, read_records
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.fakes.manual_time import ManualClock

CONFIG = TopicConfig.of(BrokerConfig.parse({}, source="test"), {})
A, B, C = Path("a"), Path("b"), Path("c")
ONE = BrokerId(1)


def started(
    disk: ForgettingDisk, paths: Sequence[Path] = (A, B), clock: ManualClock | None = None
) -> LogDirectories:
    """Directories as a broker has them after its start."""
    clock = clock or ManualClock(1_000_000)
    directories = LogDirectories(paths, disk, clock, Random(len(disk.list(Path()))))
    directories.open()
    directories.claim(ONE, "cluster")
    loading = StartupScan(directories)
    for pending in loading.pending():
        loading.admit(pending, pending.load(CONFIG))
    loading.ready()
    return directories


def write(log: Log, *values: bytes, leader_epoch: int = 0) -> None:
    for value in values:
        batch = build([NewRecord(b"k", value, (), 5)])
        log.append(batch, leader_epoch=leader_epoch, now_ms=WallMs(1_000_000))
    log.raise_high_watermark(log.end_offset)


def values(log: Log) -> list[bytes | None]:
    """Everything a reader of the whole log gets."""
    found: list[bytes | None] = []
    offset = log.start_offset
    while offset < log.end_offset:
        read = log.read(offset, 1 << 20, end=log.end_offset, min_one=True)
        if read.slice is None:
            break
        view, at = memoryview(read.slice.read()), 0
        while at < len(view):
            size = int.from_bytes(view[at + 8 : at + 12], "big") + 12
            if at + size > len(view):  # cut by the size of the read
                break
            for record in read_records(view[at : at + size]):
                found += [record.value] if record.offset >= offset else []
                last = record.offset
            at += size
        offset = last + 1
    return found
