"""Promises of `ottla.log.segment_deletion`."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from ottla.log.log import Log
from ottla.log.segment.segment import Segment, SegmentPosition
from ottla.log.segment_deletion import delete_old_segments, replace_segments
from ottla.log.stored_batch import walk_whole
from ottla.model.clock import WallMs
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.log.workbench import NOW_MS, Workbench, add, stored, values

HOUR = 3_600_000


def hourly(bench: Workbench, count: int = 5) -> Log:
    """One record an hour, a segment each."""
    log = bench.create()
    for number in range(count):
        add(log, b"%d" % number, timestamp=NOW_MS - (count - number) * HOUR)
    log.raise_high_watermark(count)
    return log


def bench(**settings: Any) -> Workbench:
    return Workbench(segment_bytes=100, **settings)


@pytest.mark.spec("LOG-58", "LOG-59", "LOG-65")
def test_old_segments_are_renamed_first_and_removed_when_their_delay_is_over() -> None:
    on = bench(retention_ms=3 * HOUR, file_delete_delay_ms=60_000)
    log = hourly(on)
    assert delete_old_segments(log, NOW_MS) == 2
    assert (log.start_offset, values(log)) == (2, [b"2", b"3", b"4"])
    assert "00000000000000000001.log.deleted" in on.names()
    assert log.deleted_segments.purge(WallMs(NOW_MS + 59_999)) == 0
    assert log.deleted_segments.purge(WallMs(NOW_MS + 60_000)) == 2
    assert not any(name.endswith(".deleted") for name in on.names())
    assert not any(name.startswith("00000000000000000001.") for name in on.names())


@pytest.mark.spec("LOG-62", "LOG-64")
def test_the_oldest_go_while_the_excess_covers_them() -> None:
    log = hourly(bench(retention_bytes=200, retention_ms=-1))
    size = log.segments.first.size
    assert delete_old_segments(log, NOW_MS) == (5 * size - 200) // size
    assert log.size >= 200


@pytest.mark.spec("LOG-61")
def test_when_all_are_due_an_empty_segment_remains_where_the_log_ended() -> None:
    on = bench(retention_ms=1)
    log = hourly(on)
    assert delete_old_segments(log, NOW_MS) == 5
    assert (log.start_offset, log.end_offset, len(log.segments), log.size) == (5, 5, 1, 0)
    assert add(log, b"next") == 5
    assert on.reopen(log).start_offset == 5


@pytest.mark.spec("LOG-65")
def test_nothing_above_the_high_watermark_goes() -> None:
    log = hourly(bench(retention_ms=1))
    log.set_high_watermark(3)
    assert delete_old_segments(log, NOW_MS) == 3


@pytest.mark.spec("LOG-63")
def test_what_lies_before_the_start_goes_even_when_nothing_expires() -> None:
    log = hourly(bench(cleanup_policy=("compact",), retention_ms=1))
    log.raise_start_offset(3)
    assert delete_old_segments(log, NOW_MS) == 3
    assert values(log) == [b"3", b"4"]


def cleaned(log: Log, drop: set[int]) -> tuple[Segment, list[Segment]]:
    """A replacement for all closed segments without some offsets."""
    old = log.segments[:-1]
    new = Segment(log.disk, log.dir, old[0].base_offset, suffix=".cleaned")
    for segment in old:
        for batch, content in walk_whole(segment.file(), 0, segment.size):
            if batch.base_offset not in drop:
                mark = SegmentPosition(
                    batch.base_offset, batch.last_offset, batch.max_timestamp, batch.size
                )
                new.append([content], [mark], 0)
    new.finish()
    new.file().sync()
    new.indexes().sync()
    return new, old


@pytest.mark.spec("LOG-66", "LOG-71")
def test_compacted_segments_take_the_place_of_their_originals() -> None:
    on = bench(retention_ms=-1)
    log = hourly(on)
    new, old = cleaned(log, {0, 2})
    replace_segments(log, new, old, NOW_MS)
    assert [record.offset for record in stored(log)] == [1, 3, 4]
    part = log.read(0, 10_000, end=5, min_one=True).slice
    assert part is not None
    assert part.read()[7] == 1
    assert [record.offset for record in stored(on.reopen(log))] == [1, 3, 4]


@pytest.mark.spec("LOG-38", "LOG-71")
def test_a_power_cut_leaves_the_old_segments_or_the_new_ones_never_a_mix() -> None:
    outcomes = set()
    for seed in range(80):
        disk = CrashingDisk(after=seed % 24)
        on = Workbench(disk, segment_bytes=100, retention_ms=-1)
        log = hourly(on)
        log.flush()
        new, old = cleaned(log, {0, 2})
        disk.armed = True
        with contextlib.suppress(PowerCutError):
            replace_segments(log, new, old, NOW_MS)
        disk.armed = False
        disk.crash(seed)
        again = on.load(clean=False, recovery_point=5)
        found = tuple(record.offset for record in stored(again))
        outcomes.add(found)
        assert not any(".cleaned" in name or ".swap" in name for name in on.names())
        twice = on.load(clean=False, recovery_point=5)
        assert tuple(record.offset for record in stored(twice)) == found
    assert outcomes == {(0, 1, 2, 3, 4), (1, 3, 4)}


class PowerCutError(Exception):
    pass


class CrashingDisk(ForgettingDisk):
    """Dies at the n-th change of a folder."""

    def __init__(self, after: int) -> None:
        super().__init__(lambda: NOW_MS)
        self.armed = False
        self._left = after

    def sync_dir(self, path: Path) -> None:
        self._step()
        super().sync_dir(path)

    def rename(self, old: Path, new: Path) -> None:
        self._step()
        super().rename(old, new)

    def _step(self) -> None:
        if self.armed:
            if self._left == 0:
                raise PowerCutError
            self._left -= 1
