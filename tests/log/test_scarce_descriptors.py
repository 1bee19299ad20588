"""A log whose files cannot always be opened: it keeps what it takes, and nothing it refuses."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest

from ottla.log.aborted_transactions import find_aborted
from ottla.log.files import OutOfResources
from ottla.log.flush import FILES_AT_ONCE, begin_flush
from ottla.log.leader_epochs import FILE_NAME, decode
from ottla.log.log import Log, Origin
from ottla.log.segment.search import position_of
from ottla.protocol.records.control import ControlType, EndTxnMarker, build_marker, encode_marker
from tests.fakes.scarce_disk import ScarceDisk
from tests.log.workbench import NOW_MS, Workbench, add, values

ABORT = EndTxnMarker(ControlType.ABORT, 0)


def end_transaction(log: Log, producer_id: int) -> int:
    marker = build_marker(
        ABORT,
        producer_id=producer_id,
        producer_epoch=0,
        timestamp=NOW_MS,
    )
    done = log.append(marker, leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR)
    return done.first_offset


@pytest.mark.parametrize("seed", range(40))
def test_refused_appends_leave_nothing_and_the_others_stay(seed: int) -> None:
    dice, disk = Random(seed), ScarceDisk(lambda: NOW_MS)
    bench = Workbench(disk, segment_bytes=400, index_interval_bytes=0)
    log = bench.create()
    disk.refuses = lambda _: dice.random() < 0.3
    expected: list[bytes | None] = []
    aborted: list[tuple[int, int, int]] = []
    for number in range(60):
        with suppress(OutOfResources):
            if dice.random() < 0.3:
                log.release()
            if dice.random() < 0.2:
                flush = begin_flush(log)
                flush.run()
                log.flush_done(flush)
        with suppress(OutOfResources):
            name = b"%d" % number
            if dice.random() < 0.7:
                add(log, name, epoch=number // 9)
                expected.append(name)
                continue
            first = add(
                log, name, producer_id=number, producer_epoch=0, base_sequence=0, transactional=True
            )
            expected.append(name)
            last = None
            while last is None:
                with suppress(OutOfResources):
                    last = end_transaction(log, number)
            expected.append(encode_marker(ABORT)[1])
            aborted.append((number, first, last))
    disk.refuses = lambda _: False
    assert disk.refused > 20
    check(log, expected, aborted)
    recovery_point = log.flush()
    assert decode(disk.read(bench.dir / FILE_NAME)).entries == log.epochs.entries
    disk.crash(seed)
    check(bench.load(clean=False, recovery_point=recovery_point), expected, aborted)


def check(log: Log, expected: list[bytes | None], aborted: list[tuple[int, int, int]]) -> None:
    assert values(log) == expected
    assert log.end_offset == len(expected)
    assert [txn[:3] for txn in find_aborted(log, 0, log.end_offset)] == aborted
    for segment in log.segments:
        for offset in range(segment.base_offset, segment.base_offset + 2):
            position_of(segment, offset)


def test_index_entries_that_cannot_be_written_yet_are_kept() -> None:
    disk = ScarceDisk(lambda: NOW_MS)
    bench = Workbench(disk, index_interval_bytes=0)
    log = bench.create()
    disk.refuses = lambda path: path.suffix == ".index"
    count = 3_000  # entries are written when there are 2,048
    for number in range(count):
        add(log, b"%d" % number)
    assert disk.refused > 0
    disk.refuses = lambda _: False
    log.roll(NOW_MS)
    assert disk.file_size(bench.dir / "00000000000000000000.index") == (count - 1) * 8
    assert len(values(bench.reopen(log))) == count


def test_many_unflushed_segments_are_flushed_in_parts_and_each_part_survives() -> None:
    count = 2 * FILES_AT_ONCE + 5
    parts = 0
    for stop in range(40):
        disk = ScarceDisk(lambda: NOW_MS)
        bench = Workbench(disk, segment_bytes=200, index_interval_bytes=0)
        log = bench.create()
        for number in range(count):
            add(log, b"%060d" % number)
        assert len(log.segments) == count
        parts = 0
        whole = False
        while not whole and parts < stop:
            flush = begin_flush(log)
            assert flush.files <= 2 * FILES_AT_ONCE
            flush.run()
            log.flush_done(flush)
            whole, parts = flush.whole, parts + 1
        disk.crash(stop)
        reached = log.recovery_point
        again = bench.load(clean=False, recovery_point=reached)
        assert values(again)[:reached] == [b"%060d" % number for number in range(reached)]
        if whole:
            assert reached == count
            break
    assert parts > 3
