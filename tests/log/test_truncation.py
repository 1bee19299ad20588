"""Promises of truncation and of the start offset of `ottla.log.log`."""

from __future__ import annotations

import pytest

from ottla.log.flush import begin_flush, truncation_steps
from ottla.log.log import Log
from ottla.log.timestamp_lookup import offset_for_timestamp
from ottla.model.errors import ErrorCode, KafkaError
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.log.workbench import NOW_MS, Workbench, add, values

LETTERS = [bytes([letter]) for letter in b"abcdefghij"]


def ten(bench: Workbench) -> Log:
    """One record a batch, three batches a segment, an epoch every four records."""
    log = bench.create()
    for number, letter in enumerate(LETTERS):
        add(
            log,
            letter,
            epoch=number // 4,
            producer_id=1,
            producer_epoch=0,
            base_sequence=number,
        )
    log.flush()
    log.raise_high_watermark(10)
    return log


def small() -> Workbench:
    return Workbench(segment_bytes=3 * 70)


@pytest.mark.spec("LOG-53", "LOG-96")
@pytest.mark.parametrize("offset", range(11))
def test_everything_from_an_offset_on_is_gone_and_can_be_written_anew(offset: int) -> None:
    bench = small()
    log = ten(bench)
    assert log.truncate_to(offset) is (offset < 10)
    assert log.end_offset == offset
    assert values(log) == LETTERS[:offset]
    assert log.high_watermark == min(10, offset)
    assert log.recovery_point == offset
    assert log.epochs.latest == ((offset - 1) // 4 if offset else -1)
    state = log.producers.get(1)
    assert (state.last_sequence if state else -1) == offset - 1
    add(log, b"new", epoch=9, producer_id=1, producer_epoch=0, base_sequence=offset)
    assert values(bench.reopen(log)) == [*LETTERS[:offset], b"new"]


def test_a_cut_inside_a_batch_takes_all_of_it() -> None:
    log = Workbench().create()
    add(log, b"a")
    add(log, b"b", b"c", b"d")
    log.truncate_to(3)
    assert log.end_offset == 1
    assert values(log) == [b"a"]


def test_a_cut_past_the_end_drops_only_an_epoch_that_wrote_nothing() -> None:
    log = small().create()
    add(log, b"a")
    log.epochs.assign(5, 1)
    assert not log.truncate_to(1)
    assert log.epochs.latest == 0
    assert values(log) == [b"a"]


def test_a_flush_begun_before_a_cut_says_nothing_about_what_comes_after() -> None:
    log = small().create()
    add(log, b"a", b"b")
    flush = begin_flush(log)
    log.truncate_to(0)
    add(log, b"c")
    flush.run()
    log.flush_done(flush)
    assert log.recovery_point == 0


def test_what_was_cut_never_comes_back_after_what_is_written_next() -> None:
    for seed in range(60):
        disk = ForgettingDisk()
        bench = Workbench(disk, segment_bytes=3 * 70)
        log = ten(bench)
        log.truncate_to(4)
        add(log, b"X", epoch=9)
        log.roll(NOW_MS)
        add(log, b"Y", epoch=9)
        disk.crash(seed)
        again = bench.load(clean=False, recovery_point=4)
        assert values(again) in (LETTERS[:4], [*LETTERS[:4], b"X"], [*LETTERS[:4], b"X", b"Y"])


@pytest.mark.spec("LOG-53")
def test_times_are_found_after_a_cut_to_what_was_flushed_and_a_clean_stop() -> None:
    bench = Workbench()
    log = bench.create()
    for number in range(3):
        add(log, b"kept", timestamp=NOW_MS + number)
    log.flush()
    add(log, b"cut", timestamp=NOW_MS + 3)
    log.roll(NOW_MS)
    log.truncate_to(3)
    log = bench.reopen(log)
    found = offset_for_timestamp(log, NOW_MS + 2)
    assert found is not None
    assert found.offset == 2
    assert log.snapshots.newest == 3


@pytest.mark.spec("LOG-54")
def test_a_log_can_begin_anew_anywhere() -> None:
    bench = small()
    log = ten(bench)
    log.truncate_fully_and_start_at(500)
    assert (log.start_offset, log.end_offset, log.high_watermark) == (500, 500, 500)
    assert log.epochs.entries == []
    assert len(log.producers) == 0
    assert bench.names() == [
        "00000000000000000500.log",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]
    assert add(log, b"first") == 500
    again = bench.reopen(log)
    assert (again.start_offset, again.end_offset) == (500, 501)


def test_a_cut_below_the_first_segment_begins_anew_there() -> None:
    log = small().create()
    log.truncate_fully_and_start_at(100)
    add(log, b"a")
    log.truncate_to(60)
    assert (log.start_offset, log.end_offset) == (60, 60)


@pytest.mark.spec("LOG-54")
def test_the_start_moves_only_forward_and_never_past_the_high_watermark() -> None:
    log = ten(small())
    log.set_high_watermark(6)
    assert log.raise_start_offset(4)
    assert not log.raise_start_offset(3)
    assert log.start_offset == 4
    with pytest.raises(KafkaError) as error:
        log.raise_start_offset(7)
    assert error.value.code is ErrorCode.offset_out_of_range
    assert log.raise_start_offset(6)
    assert log.epochs.entries[0] == (1, 6)


@pytest.mark.parametrize(("offset", "ends"), [(4, [6, 4]), (9, [9]), (10, [])])
def test_each_step_of_a_truncation_is_synced_before_the_next(offset: int, ends: list[int]) -> None:
    log = ten(small())
    seen = []
    for sync in truncation_steps(log, offset):
        seen.append(log.end_offset)
        assert values(log) == LETTERS[: log.end_offset], "it is whole between steps"
        sync()
    assert seen == ends
