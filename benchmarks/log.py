"""What one partition's log costs: an append, a read, a start, and memory for ten thousand.

Prints, asserts nothing: run it before and after touching a line that says "Hot".

    python benchmarks/log.py [partitions]
"""

from __future__ import annotations

import gc
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from time import perf_counter
from uuid import UUID

from ottla.config.topic import TopicConfig
from ottla.log.files import RealDisk
from ottla.log.log import Log
from ottla.log.recovery.log_loader import CheckpointedState, LogLocation, create, load
from ottla.log.validate import analyse
from ottla.model.clock import WallMs
from ottla.model.ids import TopicPartition
from ottla.protocol.records.batch import build
from ottla.protocol.records.record import NewRecord

NOW_MS = WallMs(1_700_000_000_000)
TOPIC_ID = UUID(int=7)
CONFIG = TopicConfig(record_validation="header")


def main() -> None:
    partitions = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    folder = Path(tempfile.mkdtemp(prefix="ottla-log-"))
    try:
        appends_and_reads(folder)
        many_partitions(folder, partitions)
    finally:
        shutil.rmtree(folder)


def appends_and_reads(folder: Path) -> None:
    place = LogLocation(RealDisk(), Random(1), NOW_MS)
    log = create(TopicPartition("one", 0), folder / "one-0", CONFIG, place, TOPIC_ID)
    small = memoryview(batch(1, 100))
    timed("analyse a batch of 100 B", 50_000, lambda: analyse(small, CONFIG, now_ms=NOW_MS))
    timed("append a batch of 100 B", 50_000, lambda: append(log, small))
    large = memoryview(batch(16, 1_000))
    timed("append a batch of 16 KB", 5_000, lambda: append(log, large))
    end = log.end_offset
    timed("read the last batch", 50_000, lambda: log.read(end - 16, 1 << 20, end=end, min_one=True))
    dice = Random(2)
    timed(
        "read anywhere",
        20_000,
        lambda: log.read(dice.randrange(end), 1 << 20, end=end, min_one=True),
    )
    log.close()
    started = perf_counter()
    load(log.partition, log.dir, CONFIG, place, CheckpointedState(clean=False))
    print(f"{'recover':32} {log.size / (perf_counter() - started) / 1e6:10.0f} MB/s")


def many_partitions(folder: Path, count: int) -> None:
    disk = RealDisk()
    place = LogLocation(disk, Random(1), NOW_MS)
    names = [TopicPartition("many", number) for number in range(count)]
    small = batch(1, 100)
    started = perf_counter()
    for name in names:
        log = create(name, folder / str(name), CONFIG, place, TOPIC_ID)
        log.append(small, leader_epoch=0, now_ms=NOW_MS)
        log.snapshots.write(log.producers, log.end_offset)
        log.segments.active.finish()
        content = log.epochs.to_save(log.end_offset)
        assert content is not None
        log.directory.write("leader-epoch-checkpoint", content)
        log.segments.active.release()
    print(f"{f'create and append, {count}':32} {perf_counter() - started:10.2f} s")
    del log
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = perf_counter()
    logs = [
        load(name, folder / str(name), CONFIG, place, CheckpointedState(clean=True))
        for name in names
    ]
    print(f"{f'clean start, {count}':32} {perf_counter() - started:10.2f} s")
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{'memory of each':32} {(after - before) / count:10.2f} KB")
    for log in logs:
        log.append(small, leader_epoch=0, now_ms=NOW_MS)
    active = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{'memory of each, appended to':32} {(active - before) / count:10.2f} KB")


def batch(records: int, size: int) -> bytes:
    return build([NewRecord(b"key", b"v" * size, timestamp=NOW_MS) for _ in range(records)])


def append(log: Log, records: memoryview) -> None:
    log.append(records, leader_epoch=0, now_ms=NOW_MS)


def timed(name: str, count: int, act: Callable[[], object]) -> None:
    """The best of three rounds: this machine is shared."""
    best = float("inf")
    for _ in range(3):
        started = perf_counter()
        for _ in range(count):
            act()
        best = min(best, perf_counter() - started)
    print(f"{name:32} {best / count * 1e6:10.2f} us")


if __name__ == "__main__":
    main()
