"""Promises of `ottla.log.segment.rollover`."""

from __future__ import annotations

import pytest

from tests.fakes.forgetting_disk import ForgettingDisk
from tests.log.workbench import NOW_MS, Workbench, add, values


@pytest.mark.spec("LOG-05", "LOG-57", "LOG-92")
def test_closing_a_segment_writes_its_indexes_and_the_producers_so_far() -> None:
    bench = Workbench()
    log = bench.create()
    add(log, b"a", producer_id=3, producer_epoch=0, base_sequence=0)
    assert log.roll(NOW_MS)
    assert bench.names() == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "00000000000000000001.log",
        "00000000000000000001.snapshot",
        "partition.metadata",
    ]
    assert bench.disk.file_size(bench.dir / "00000000000000000000.timeindex") == 12


def test_an_empty_segment_is_not_closed() -> None:
    log = Workbench().create()
    assert not log.roll(NOW_MS)
    assert len(log.segments) == 1


def test_an_empty_segment_gives_way_to_one_further_on() -> None:
    bench = Workbench()
    log = bench.create()
    assert log.roll(NOW_MS, base_offset=70)
    assert [segment.base_offset for segment in log.segments] == [70]
    assert "00000000000000000000.log" not in bench.names()


@pytest.mark.spec("LOG-07", "LOG-35")
def test_a_log_stopped_cleanly_comes_back_as_it_was() -> None:
    bench = Workbench(segment_bytes=250, index_interval_bytes=50)
    log = bench.create()
    for number in range(20):
        add(log, b"%d" % number, epoch=number // 7)
    log.raise_high_watermark(15)
    again = bench.reopen(log)
    assert again.end_offset == again.recovery_point == 20
    assert again.topic_id == log.topic_id
    assert again.epochs.entries == log.epochs.entries
    assert values(again) == values(log)
    assert [s.base_offset for s in again.segments] == [s.base_offset for s in log.segments]
    assert add(again, b"next") == 20


def test_an_idle_log_is_closed_without_touching_the_disk() -> None:
    disk = ForgettingDisk()
    bench = Workbench(disk)
    log = bench.create()
    add(log, b"a")
    again = bench.reopen(log)
    again.epochs.assign(5, again.end_offset)  # it led again, and nothing came
    syncs, written = disk.syncs, disk.written_bytes
    again.close()
    assert (disk.syncs, disk.written_bytes) == (syncs, written)
