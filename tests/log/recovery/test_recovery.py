"""Promises of `ottla.log.recovery.recovery`."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from ottla.log.files import File
from ottla.log.follower_append import append_as_follower
from ottla.log.log import CorruptLog, Log, Origin
from ottla.log.timestamp_lookup import offset_for_timestamp
from ottla.protocol.records import legacy
from ottla.protocol.records.control import ControlType, EndTxnMarker, build_marker
from ottla.protocol.records.record import NewRecord
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.log.workbench import NOW_MS, PARTITION, Workbench, add, values

DIGITS = [b"%d" % digit for digit in range(10)]
FIRST, SECOND = "00000000000000000000.log", "00000000000000000006.log"


def two_segments(bench: Workbench) -> Log:
    """Six records in the first segment, four in the second, none of it flushed."""
    log = bench.create()
    for number, digit in enumerate(DIGITS):
        if number == 6:
            log.roll(NOW_MS)
        add(log, digit, producer_id=1, producer_epoch=0, base_sequence=number, epoch=number // 4)
    return log


def damaged(name: str, at: int) -> Workbench:
    bench = Workbench()
    two_segments(bench)
    bench.flip(name, at)
    return bench


@pytest.mark.spec("LOG-32", "LOG-33", "LOG-39")
def test_after_a_kill_everything_is_there_and_derived_again() -> None:
    bench = Workbench(index_interval_bytes=0)
    log = two_segments(bench)
    again = bench.load(clean=False)
    assert values(again) == DIGITS
    assert again.end_offset == again.recovery_point == 10
    assert again.epochs.entries == log.epochs.entries
    assert again.producers.entries() == log.producers.entries()
    for segment in again.segments:
        assert len(segment.indexes().offsets) == len(list(segment.headers())) - 1


@pytest.mark.spec("LOG-34")
@pytest.mark.parametrize("cut", [1, 30, 70])
def test_a_torn_tail_is_cut_and_kept_beside_the_segment(
    cut: int, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Workbench()
    two_segments(bench)
    whole = bench.disk.read(bench.dir / SECOND)
    size = len(whole) // 4
    bench.disk.open_append(bench.dir / SECOND).truncate(len(whole) - cut)
    with caplog.at_level(logging.WARNING):
        again = bench.load(clean=False, recovery_point=6)
    assert values(again) == DIGITS[:9]
    kept = bench.disk.read(bench.dir / f"{SECOND}.{3 * size}.cut")
    assert kept == whole[3 * size : -cut]
    assert [r.levelname for r in caplog.records if r.name == "ottla.log.recovery.recovery"] == [
        "WARNING"
    ]
    assert str(PARTITION) in caplog.text
    assert add(again, b"next") == 9


def test_a_zeroed_tail_is_cut() -> None:
    bench = Workbench()
    two_segments(bench)
    bench.disk.open_append(bench.dir / SECOND).append([b"\0" * 500])
    assert values(bench.load(clean=False)) == DIGITS
    assert values(bench.load(clean=False)) == DIGITS


@pytest.mark.spec("LOG-34")
def test_above_the_recovery_point_the_log_ends_before_the_first_bad_batch() -> None:
    bench = damaged(FIRST, 70 * 2 + 65)
    again = bench.load(clean=False, recovery_point=0)
    end = again.end_offset
    assert 0 < end < 6
    assert values(again) == DIGITS[:end]
    assert len(again.segments) == 1
    assert f"{SECOND}.cut" in bench.names()
    assert again.epochs.latest == (end - 1) // 4
    state = again.producers.get(1)
    assert state is not None
    assert state.last_sequence == end - 1


def test_below_the_recovery_point_a_bad_batch_takes_the_partition_offline() -> None:
    bench = damaged(FIRST, 100)
    with pytest.raises(CorruptLog, match="recovery point is 5"):
        bench.load(clean=False, recovery_point=5)
    assert f"{FIRST}.quarantined" in bench.names()
    assert FIRST not in bench.names()
    for clean in (True, False):
        with pytest.raises(CorruptLog, match="quarantined since an earlier start"):
            bench.load(clean=clean, recovery_point=5)


def test_flushed_bytes_that_are_missing_are_corruption_too() -> None:
    bench = Workbench()
    two_segments(bench)
    bench.disk.open_append(bench.dir / SECOND).truncate(100)
    with pytest.raises(CorruptLog):
        bench.load(clean=False, recovery_point=10)


@pytest.mark.spec("LOG-34")
@pytest.mark.parametrize("again_from", [0, 3])
def test_offsets_that_run_backwards_end_the_log(again_from: int) -> None:
    """Old pages of the file came back behind its end: sound batches, but of offsets before."""
    bench = Workbench()
    two_segments(bench)
    whole = bench.disk.read(bench.dir / SECOND)
    size = len(whole) // 4
    old = whole[again_from * size : (again_from + 1) * size]
    bench.disk.open_append(bench.dir / SECOND).append([old])
    again = bench.load(clean=False, recovery_point=6)
    assert values(again) == DIGITS
    assert again.end_offset == 10
    assert bench.disk.read(bench.dir / f"{SECOND}.{len(whole)}.cut") == old
    state = again.producers.get(1)
    assert state is not None
    assert state.last_sequence == 9


def test_a_lost_tail_in_the_middle_ends_the_log_there() -> None:
    """Two segments were unflushed; of the first the last pages were lost, whole batches long."""
    bench = Workbench()
    two_segments(bench)
    size = bench.disk.file_size(bench.dir / FIRST)
    bench.disk.open_append(bench.dir / FIRST).truncate(size * 4 // 6)
    again = bench.load(clean=False)
    assert values(again) == DIGITS[:4]
    assert add(again, b"next") == 4


@pytest.mark.spec("LOG-74")
def test_gaps_that_compaction_left_are_no_holes() -> None:
    bench = Workbench(cleanup_policy=("compact",))
    two_segments(bench)
    size = bench.disk.file_size(bench.dir / FIRST)
    bench.disk.open_append(bench.dir / FIRST).truncate(size * 4 // 6)
    again = bench.load(clean=False)
    assert values(again) == DIGITS[:4] + DIGITS[6:]


def test_what_is_recovered_is_durable_before_it_is_served() -> None:
    for seed in range(60):
        disk = ForgettingDisk()
        bench = Workbench(disk, segment_bytes=200)
        log = bench.create()
        log.flush()
        for digit in DIGITS:
            add(log, digit)
        disk.crash(seed)
        served = values(bench.load(clean=False))
        disk.crash(seed + 1_000)
        assert values(bench.load(clean=False)) == served


def test_killed_during_recovery_it_recovers_again() -> None:
    for steps in range(40):
        disk = DyingDisk()
        bench = Workbench(disk)
        two_segments(bench)
        bench.flip(FIRST, bench.disk.file_size(bench.dir / FIRST) // 6 * 3 + 40)
        disk.left = steps
        try:
            bench.load(clean=False)
        except DiedError:
            disk.kill()
        disk.left = None
        again = bench.load(clean=False)
        assert values(again) == DIGITS[: again.end_offset]
        assert again.end_offset == 3


class DiedError(Exception):
    pass


class DyingDisk(ForgettingDisk):
    """The process dies at the n-th thing it asks of the disk from some moment on."""

    left: int | None = None

    def kill_in_time(self) -> None:
        if self.left is not None:
            if self.left == 0:
                raise DiedError
            self.left -= 1

    def rename(self, old: Path, new: Path) -> None:
        self.kill_in_time()
        super().rename(old, new)

    def remove(self, path: Path) -> None:
        self.kill_in_time()
        super().remove(path)

    def open_append(self, path: Path) -> File:
        self.kill_in_time()
        return super().open_append(path)

    def sync_dir(self, path: Path) -> None:
        self.kill_in_time()
        super().sync_dir(path)


@pytest.mark.spec("REC-01", "REC-07")
def test_old_formats_are_recovered_and_cut_like_new_ones() -> None:
    bench = Workbench()
    log = bench.create()
    for offset in range(6):
        message = [NewRecord(b"k", b"v%d" % offset, timestamp=offset)]
        append_as_follower(log, legacy.build(message, magic=offset % 2, base_offset=offset), NOW_MS)
    assert bench.load(clean=False).end_offset == 6
    size = bench.disk.file_size(bench.dir / FIRST)
    bench.flip(FIRST, size - 1)
    again = bench.load(clean=False)
    assert again.end_offset == 5
    assert offset_for_timestamp(again, 3) == (3, 3, -1)


def test_a_snapshot_does_not_outlive_the_batches_it_was_learnt_from() -> None:
    """Of a closed segment nothing came to the disk, of the snapshot behind it all."""
    bench = Workbench(cleanup_policy=("compact",))
    log = bench.create()
    add(log, b"a", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    log.roll(NOW_MS)
    bench.disk.open_append(bench.dir / FIRST).truncate(0)
    for recovery_point in (0, 1):
        again = bench.load(clean=False, recovery_point=recovery_point)
        assert len(again.producers) == 0
        assert again.last_stable_offset == again.high_watermark


def test_a_transaction_index_without_entries_tells_that_none_was_lost() -> None:
    bench = Workbench()
    log = bench.create()
    producer = {"producer_id": 1, "producer_epoch": 0}
    add(log, b"v", base_sequence=0, transactional=True, **producer)
    marker = build_marker(EndTxnMarker(ControlType.COMMIT, 0), timestamp=NOW_MS, **producer)
    log.append(marker, leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR)
    bench.load(clean=False)
    assert bench.disk.read(bench.dir / FIRST.replace(".log", ".txnindex")) == b""


def test_a_damaged_snapshot_or_index_does_not_matter_to_recovery() -> None:
    bench = Workbench()
    two_segments(bench)
    bench.flip("00000000000000000006.snapshot", 12)
    bench.flip("00000000000000000000.timeindex", 5)
    again = bench.load(clean=False, recovery_point=6)
    state = again.producers.get(1)
    assert state is not None
    assert state.last_sequence == 9
    assert again.segments.first.max_timestamp == NOW_MS
