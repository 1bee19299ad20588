"""Promises of `ottla.log.flush`."""

from __future__ import annotations

import errno

import pytest

from ottla.log.aborted_transactions import find_aborted
from ottla.log.flush import begin_flush
from ottla.log.log import Origin
from ottla.protocol.records.control import ControlType, EndTxnMarker, build_marker
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.log.workbench import NOW_MS, Workbench, add, values


@pytest.mark.spec("LOG-11")
def test_what_was_flushed_survives_every_power_cut() -> None:
    for seed in range(100):
        disk = ForgettingDisk()
        bench = Workbench(disk, segment_bytes=200, index_interval_bytes=0)
        log = bench.create()
        for number in range(8):
            add(log, b"%d" % number, epoch=number // 3)
        assert log.flush() == 8
        add(log, b"unflushed")
        disk.crash(seed)
        again = bench.load(clean=False, recovery_point=8)
        assert values(again)[:8] == [b"%d" % number for number in range(8)]
        assert again.topic_id == log.topic_id
        assert again.epochs.entries[:3] == [(0, 0), (1, 3), (2, 6)]


def test_a_flush_covers_what_there_was_when_it_began() -> None:
    log = Workbench().create()
    add(log, b"a")
    flush = begin_flush(log)
    add(log, b"b")
    assert flush.upto == 1
    flush.run()
    assert log.recovery_point == 0
    log.flush_done(flush)
    assert log.recovery_point == 1


def test_an_older_flush_does_not_lower_what_a_newer_one_reached() -> None:
    log = Workbench().create()
    add(log, b"a")
    older = begin_flush(log)
    add(log, b"b")
    log.flush()
    older.run()
    log.flush_done(older)
    assert log.recovery_point == 2


def test_an_append_costs_one_sync_once_the_segment_is_there() -> None:
    disk = ForgettingDisk()
    log = Workbench(disk).create()
    add(log, b"a")
    log.flush()
    before = disk.syncs
    add(log, b"b")
    log.flush()
    assert disk.syncs == before + 1
    log.flush()
    assert disk.syncs == before + 1


def test_segments_that_change_hands_meanwhile_do_not_disturb_it() -> None:
    bench = Workbench()
    log = bench.create()
    add(log, b"a")
    log.roll(NOW_MS)
    add(log, b"b")
    flush = begin_flush(log)
    log.rename_dir(bench.dir.with_name("orders-3.x-delete"))
    log.release()
    bench.disk.remove_tree(log.dir)
    flush.run()


def test_a_failed_sync_is_told_and_the_recovery_point_stays() -> None:
    disk = ForgettingDisk()
    log = Workbench(disk).create()
    add(log, b"a")
    disk.sync_error = OSError(errno.EIO, "bad disk")
    flush = begin_flush(log)
    with pytest.raises(OSError, match="bad disk"):
        flush.run()
    assert log.recovery_point == 0


def test_a_closed_segments_indexes_are_durable_before_the_recovery_point_passes() -> None:
    for seed in range(50):
        disk = ForgettingDisk()
        bench = Workbench(disk, index_interval_bytes=0)
        log = bench.create()
        for number in range(5):
            add(log, b"%d" % number, producer_id=1, producer_epoch=0, base_sequence=number)
        log.roll(NOW_MS)
        add(log, b"x")
        log.flush()
        disk.crash(seed)
        stem = bench.dir / "00000000000000000000"
        assert disk.file_size(stem.with_suffix(".index")) == 4 * 8
        assert disk.file_size(stem.with_suffix(".timeindex")) == 12
        assert disk.exists(bench.dir / "00000000000000000005.snapshot")


def test_an_abort_is_durable_with_its_marker() -> None:
    for seed in range(40):
        disk = ForgettingDisk()
        bench = Workbench(disk)
        log = bench.create()
        add(log, b"t", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
        marker = build_marker(
            EndTxnMarker(ControlType.ABORT, 0), producer_id=1, producer_epoch=0, timestamp=NOW_MS
        )
        log.append(marker, leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR)
        assert log.flush() == 2
        log.roll(NOW_MS)
        disk.crash(seed)
        again = bench.load(clean=False, recovery_point=2)
        assert [txn.producer_id for txn in find_aborted(again, 0, 2)] == [1]
