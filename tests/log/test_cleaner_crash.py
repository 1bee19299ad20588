"""A crash in the middle of compaction leaves the old segments or the new one, never a mix."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from pathlib import Path
from random import Random

import pytest

from ottla.log.compaction.cleaner import SegmentSwap
from ottla.log.log import Log
from ottla.log.recovery.log_loader import CheckpointedState, LogLocation, load
from ottla.log.stored_batch import walk_whole
from tests.fakes.power_cut_disk import FusedDisk, PowerCut
from tests.log.compacted_log import Compacted

pytestmark = pytest.mark.spec("LOG-36", "LOG-38", "LOG-66", "LOG-71")

FOLDER = Path("data/t-0")
SEEDS = 4


def a_log(disk: FusedDisk) -> Compacted:
    """Closed segments that become two; of the first two only the start of one is left."""
    disk.mkdir(FOLDER)
    compacted = Compacted(FOLDER, disk, internal_segment_bytes="200")
    compacted.put((b"kept", b"1"), (b"a", b"0"))
    compacted.roll()
    compacted.put((b"a", b"1"))
    compacted.roll()
    compacted.put((b"a", b"2"))
    compacted.roll()
    compacted.put((b"a", None))
    compacted.roll()
    compacted.put((b"active", b"1"))
    compacted.log.flush()
    disk.sync_everything()
    return compacted


def disk_of(compacted: Compacted) -> FusedDisk:
    disk = compacted.log.disk
    assert isinstance(disk, FusedDisk)
    return disk


def contents(log: Log) -> list[bytes]:
    """Every batch that has records: a crash may leave one without them at the end of a segment."""
    return [
        bytes(content)
        for segment in log.segments
        for batch, content in walk_whole(segment.file(), 0, segment.size)
        if batch.header is None or batch.header.count
    ]


def loaded(compacted: Compacted) -> Log:
    log = compacted.log
    known = CheckpointedState(clean=False, recovery_point=log.recovery_point)
    place = LogLocation(log.disk, Random(1), compacted.now_ms)
    return load(log.partition, FOLDER, log.config, place, known)


def compact(compacted: Compacted) -> list[list[bytes]]:
    """Every content that the log has on the way from the old set to the new."""
    states = [contents(compacted.log)]
    for step in compacted.cleaning().steps():
        if isinstance(step, SegmentSwap):
            step.perform(compacted.now_ms)
            states.append(contents(compacted.log))
    return states


def interrupted(fuse: int) -> Compacted:
    """A compaction that was cut short after that many changes to the disk."""
    disk = FusedDisk()
    compacted = a_log(disk)
    disk.fuse = fuse
    with suppress(PowerCut):
        compact(compacted)
    disk.fuse = None
    return compacted


@pytest.fixture(scope="module")
def states() -> list[list[bytes]]:
    found = compact(a_log(FusedDisk()))
    assert len(found) == 3
    return found


@pytest.fixture(scope="module")
def changes() -> int:
    """How many changes to the disk a compaction makes when nothing goes wrong."""
    disk = FusedDisk()
    compacted = a_log(disk)
    disk.fuse = 1_000_000
    compact(compacted)
    return 1_000_000 - disk.fuse


def test_a_power_cut_at_every_step_leaves_the_old_set_or_the_new(
    states: list[list[bytes]], changes: int
) -> None:
    seen = []
    for fuse in range(changes + 1):
        for seed in range(SEEDS):
            compacted = interrupted(fuse)
            disk_of(compacted).crash(seed)
            found = contents(loaded(compacted))
            assert found in states, (fuse, seed)
            seen.append(found)
    assert all(state in seen for state in states)


def test_a_second_power_cut_at_every_step_of_the_start_that_follows_changes_nothing(
    states: list[list[bytes]], changes: int
) -> None:
    for first in range(changes + 1):
        for second in count():
            compacted = interrupted(first)
            disk = disk_of(compacted)
            disk.crash(first)
            disk.fuse = second
            with suppress(PowerCut):
                loaded(compacted)
                break  # it ran through: there are no more steps to cut at
            disk.fuse = None
            disk.crash(second)
            assert contents(loaded(compacted)) in states, (first, second)


def test_a_process_that_dies_at_every_step_leaves_the_old_set_or_the_new(
    states: list[list[bytes]], changes: int
) -> None:
    for fuse in range(changes + 1):
        compacted = interrupted(fuse)
        disk_of(compacted).kill()
        assert contents(loaded(compacted)) in states, fuse
