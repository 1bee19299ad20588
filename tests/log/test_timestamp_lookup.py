"""Promises of `ottla.log.timestamp_lookup`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.log.aborted_transactions import find_aborted
from ottla.log.follower_append import append_as_follower
from ottla.log.index.txn_index import AbortedTxn
from ottla.log.log import Log, Origin
from ottla.log.timestamp_lookup import max_timestamp_offset, offset_for_timestamp
from ottla.model.clock import WallMs
from ottla.protocol.records import legacy
from ottla.protocol.records.batch import CorruptBatch, build
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.control import ControlType, EndTxnMarker, build_marker
from ottla.protocol.records.header import OVERHEAD
from ottla.protocol.records.record import NewRecord
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.log.workbench import NOW_MS, Workbench, add, batch

stamps = st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=4), min_size=1, max_size=15)


def log_of(batches: list[list[int]]) -> Log:
    """Batches of records with these timestamps."""
    log = Workbench(segment_bytes=350, index_interval_bytes=100).create()
    for number, times in enumerate(batches):
        records = [NewRecord(b"k", b"v", timestamp=time) for time in times]
        content = build(records, codec=Codec(number % 5))
        log.append(content, leader_epoch=number // 5, now_ms=NOW_MS)
    return log


@pytest.mark.spec("LOG-88", "REC-12")
@given(stamps, st.integers(0, 15))
def test_the_first_record_that_is_new_enough_is_found(batches: list[list[int]], cut: int) -> None:
    log = log_of(batches)
    log.raise_high_watermark(log.end_offset)
    log.raise_start_offset(min(cut, log.end_offset))
    flat = [time for times in batches for time in times]
    for asked in range(42):
        expected = next(
            (at for at, time in enumerate(flat) if time >= asked and at >= log.start_offset), None
        )
        found = offset_for_timestamp(log, asked)
        assert (None if found is None else found.offset) == expected
        if found is not None:
            assert found.timestamp == flat[found.offset]
            assert found.leader_epoch == log.epochs.epoch_of(found.offset)


@given(stamps)
def test_the_newest_record_is_found(batches: list[list[int]]) -> None:
    flat = [time for times in batches for time in times]
    found = max_timestamp_offset(log_of(batches))
    assert found is not None
    assert (found.timestamp, found.offset) == (max(flat), flat.index(max(flat)))


def test_an_empty_log_has_no_times() -> None:
    log = Workbench().create()
    assert max_timestamp_offset(log) is None
    assert offset_for_timestamp(log, 0) is None


@pytest.mark.spec("REC-31", "REC-32")
def test_append_time_is_the_time_of_every_record() -> None:
    log = Workbench(message_timestamp_type="LogAppendTime").create()
    log.append(batch(b"a", b"b", timestamp=3), leader_epoch=0, now_ms=WallMs(100))
    log.append(batch(b"c", timestamp=9_000), leader_epoch=0, now_ms=WallMs(200))
    assert offset_for_timestamp(log, 101) == (200, 2, 0)
    assert offset_for_timestamp(log, 50) == (100, 0, 0)
    assert max_timestamp_offset(log) == (200, 2, 0)


@pytest.mark.spec("REC-28", "REC-29", "REC-30")
def test_times_inside_an_old_compressed_set_are_found() -> None:
    log = Workbench().create()
    messages = [NewRecord(b"k", b"v", timestamp=time) for time in (5, 30, 10)]
    old = legacy.build(messages, magic=1, codec=Codec.GZIP)
    append_as_follower(log, old, NOW_MS)
    assert log.end_offset == 3
    assert offset_for_timestamp(log, 6) == (30, 1, -1)
    assert max_timestamp_offset(log) == (30, 1, -1)


# Aborted transactions


def write(log: Log, producer: int, sequence: int) -> None:
    add(
        log,
        b"t",
        producer_id=producer,
        producer_epoch=0,
        base_sequence=sequence,
        transactional=True,
    )


def end(log: Log, producer: int, kind: ControlType = ControlType.ABORT) -> None:
    content = build_marker(
        EndTxnMarker(kind, 0), producer_id=producer, producer_epoch=0, timestamp=NOW_MS
    )
    log.append(content, leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR)


def transactional(bench: Workbench) -> Log:
    """Aborts at 2 and 9 in closed segments, 13 in the active one; a commit at 8."""
    log = bench.create()
    write(log, 1, 0)  # 0
    write(log, 2, 0)  # 1
    end(log, 1)  # 2
    add(log, b"plain")  # 3
    log.roll(NOW_MS)
    write(log, 3, 0)  # 4
    write(log, 2, 1)  # 5
    write(log, 1, 1)  # 6
    write(log, 3, 1)  # 7
    end(log, 3, ControlType.COMMIT)  # 8
    end(log, 2)  # 9
    log.roll(NOW_MS)
    add(log, b"plain")  # 10
    log.roll(NOW_MS)
    write(log, 4, 0)  # 11
    add(log, b"plain")  # 12
    end(log, 4)  # 13
    return log


EXPECTED = [AbortedTxn(1, 0, 2, 1), AbortedTxn(2, 1, 9, 6), AbortedTxn(4, 11, 13, 6)]


@pytest.mark.spec("LOG-91")
def test_aborted_transactions_that_touch_a_range_are_found() -> None:
    log = transactional(Workbench())
    assert find_aborted(log, 0, 14) == EXPECTED
    assert find_aborted(log, 3, 10) == EXPECTED[1:2]
    assert find_aborted(log, 10, 11) == []
    assert find_aborted(log, 12, 14) == EXPECTED[2:]


@pytest.mark.parametrize("clean", [True, False])
def test_they_are_found_after_a_restart(clean: bool) -> None:
    bench = Workbench()
    log = transactional(bench)
    again = bench.reopen(log) if clean else bench.load(clean=False)
    again.raise_high_watermark(14)
    assert find_aborted(again, 0, 14) == EXPECTED
    assert again.producers.first_unstable_offset == 6


@pytest.mark.parametrize("base", [0, 4, 11])
@pytest.mark.parametrize("with_snapshots", [True, False])
def test_a_lost_transaction_index_is_rebuilt(base: int, with_snapshots: bool) -> None:
    """Of the segment that is still written, too; the producers that are known tell."""
    bench = Workbench()
    transactional(bench).close()
    bench.disk.remove(bench.dir / f"{base:020d}.txnindex")
    for name in () if with_snapshots else bench.names():
        if name.endswith(".snapshot"):
            bench.disk.remove(bench.dir / name)
    assert find_aborted(bench.load(clean=True), 0, 14) == EXPECTED


@pytest.mark.parametrize("how", ["roll", "abort", "close"])
def test_a_transaction_index_that_was_lost_unread_is_missed_before_it_is_written_to(
    how: str,
) -> None:
    bench = Workbench()
    transactional(bench).close()
    bench.disk.remove(bench.dir / "00000000000000000011.txnindex")
    log = bench.load(clean=True)
    expected = EXPECTED
    if how == "abort":
        write(log, 5, 0)  # 14
        end(log, 5)  # 15
        expected = [*EXPECTED, AbortedTxn(5, 14, 15, 6)]
    else:
        add(log, b"plain")  # 14
        if how == "roll":
            log.roll(NOW_MS)
        else:
            log = bench.reopen(log)
    assert find_aborted(log, 0, 16) == expected
    assert find_aborted(bench.reopen(log), 0, 16) == expected


def test_a_lost_transaction_index_of_a_rotten_segment_holds_up_no_append() -> None:
    """It stays lost: whoever reads that segment hears of the rot."""
    bench = Workbench()
    transactional(bench).close()
    bench.disk.remove(bench.dir / "00000000000000000011.txnindex")
    log = bench.load(clean=True)
    name = "00000000000000000011.log"
    second = OVERHEAD + int.from_bytes(bench.disk.read(bench.dir / name)[8:OVERHEAD], "big")
    bench.flip(name, second + 8, 6)  # its length
    write(log, 5, 0)
    end(log, 5)
    log.roll(NOW_MS)
    assert log.end_offset == 16
    with pytest.raises(CorruptBatch):
        find_aborted(log, 11, 16)


@pytest.mark.parametrize("clean", [True, False])
def test_a_segment_whose_transactions_were_all_committed_is_not_searched_again(
    clean: bool,
) -> None:
    bench = Workbench()
    log = bench.create()
    write(log, 1, 0)
    end(log, 1, ControlType.COMMIT)
    log.close() if clean else log.flush()
    again = bench.load(clean=clean)
    index = bench.dir / "00000000000000000000.txnindex"
    assert bench.disk.read(index) == b""
    assert find_aborted(again, 0, 2) == []


@pytest.mark.parametrize("seed", range(20))
def test_a_rebuilt_transaction_index_outlives_a_power_cut(seed: int) -> None:
    disk = ForgettingDisk(lambda: NOW_MS)
    bench = Workbench(disk)
    transactional(bench).close()
    disk.remove(bench.dir / "00000000000000000004.txnindex")
    disk.sync_dir(bench.dir)
    assert find_aborted(bench.load(clean=True), 0, 14) == EXPECTED
    disk.crash(seed)
    assert find_aborted(bench.load(clean=True), 0, 10) == EXPECTED[:2]


@pytest.mark.parametrize("base", [0, 4])
@pytest.mark.parametrize("field", [0, 2, 10, 18], ids=["version", "producer", "first", "last"])
def test_a_damaged_transaction_index_is_rebuilt(base: int, field: int) -> None:
    for at, bit in [(field, 3), (field + (1 if field == 0 else 7), 1)]:
        bench = Workbench()
        transactional(bench).close()
        bench.flip(f"{base:020d}.txnindex", at, bit)
        assert find_aborted(bench.load(clean=True), 0, 14) == EXPECTED


def test_a_cut_transaction_index_is_rebuilt() -> None:
    bench = Workbench()
    transactional(bench).close()
    path = bench.dir / "00000000000000000004.txnindex"
    bench.disk.replace(path, bench.disk.read(path)[:20])
    assert find_aborted(bench.load(clean=True), 0, 14) == EXPECTED


def test_a_segment_that_never_had_aborts_is_not_searched_for_them() -> None:
    bench = Workbench()
    log = bench.create()
    add(log, b"a", producer_id=1, producer_epoch=0, base_sequence=0)
    log.roll(NOW_MS)
    add(log, b"b")
    again = bench.reopen(log)
    assert find_aborted(again, 0, 2) == []
    assert not any(name.endswith(".txnindex") for name in bench.names())


def test_a_new_segment_without_aborts_needs_no_index() -> None:
    bench = Workbench()
    log = bench.create()
    write(log, 1, 0)
    end(log, 1, ControlType.COMMIT)
    assert find_aborted(log, 0, 2) == []
    assert not any(name.endswith(".txnindex") for name in bench.names())
    write(log, 1, 1)
    end(log, 1)
    assert find_aborted(log, 0, 4) == [AbortedTxn(1, 2, 3, 4)]


def test_nothing_is_said_of_an_index_in_which_nothing_would_stand(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Workbench()
    log = bench.create()
    write(log, 1, 0)
    end(log, 1, ControlType.COMMIT)
    assert find_aborted(bench.reopen(log), 0, 2) == []
    assert caplog.messages == []
