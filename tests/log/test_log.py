"""Promises of `ottla.log.log`: appending, reading, watermarks, closing."""

from __future__ import annotations

import errno

import pytest

from ottla.log.aborted_transactions import find_aborted
from ottla.log.flush import begin_flush
from ottla.log.log import Origin
from ottla.log.segment.segment import TXN_INDEX
from ottla.log.segment_deletion import delete_old_segments
from ottla.log.stored_batch import walk_whole
from ottla.log.validate import analyse
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.protocol.records.batch import crc_ok, read_header, walk
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.control import ControlType, EndTxnMarker, build_marker
from ottla.protocol.records.record import read_records
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.log.workbench import NOW_MS, Workbench, add, batch, stored, values

A, B, C = b"a", b"b", b"c"


@pytest.mark.spec("LOG-46", "LOG-53", "REC-17", "REC-18")
def test_batches_get_the_next_offsets_and_the_leaders_epoch() -> None:
    log = Workbench().create()
    first = log.append(batch(A, B), leader_epoch=4, now_ms=NOW_MS)
    second = log.append(batch(C), leader_epoch=4, now_ms=NOW_MS)
    assert (first.first_offset, first.last_offset, first.count) == (0, 1, 2)
    assert (second.first_offset, second.last_offset) == (2, 2)
    assert log.end_offset == 3
    assert [record.offset for record in stored(log)] == [0, 1, 2]
    headers = [found.header for found in log.segments.active.headers()]
    assert [header.leader_epoch for header in headers if header] == [4, 4]


@pytest.mark.spec("REC-16", "REC-34")
def test_a_client_batch_is_stored_byte_for_byte_but_for_its_place() -> None:
    log = Workbench().create()
    add(log, A)
    sent = batch(B, C, codec=Codec.ZSTD)
    log.append(memoryview(sent), leader_epoch=2, now_ms=NOW_MS)
    (_, first), (_, second) = walk_whole(log.segments.active.file(), 0, log.segments.active.size)
    assert bytes(second[16:]) == sent[16:]
    assert crc_ok(second)
    assert bytes(first[:16]) == bytes.fromhex("0000000000000000 0000003c 00000000")


@pytest.mark.spec("REC-10", "REC-31")
def test_append_time_is_told_and_stored() -> None:
    log = Workbench(message_timestamp_type="LogAppendTime").create()
    appended = log.append(batch(A, timestamp=5), leader_epoch=0, now_ms=WallMs(NOW_MS + 3))
    assert appended.append_time_ms == NOW_MS + 3
    assert [record.timestamp for record in stored(log)] == [NOW_MS + 3]
    assert log.segments.active.max_timestamp == NOW_MS + 3
    plain = Workbench().create()
    assert plain.append(batch(A), leader_epoch=0, now_ms=NOW_MS).append_time_ms == -1


@pytest.mark.spec("REC-27")
def test_a_topics_own_codec_is_what_is_stored() -> None:
    log = Workbench(compression_type="lz4").create()
    log.append(batch(A * 500, B * 500, codec=Codec.GZIP), leader_epoch=0, now_ms=NOW_MS)
    (_, content), *_ = walk_whole(log.segments.active.file(), 0, log.segments.active.size)
    assert read_header(content).codec is Codec.LZ4
    assert crc_ok(content)
    assert values(log) == [A * 500, B * 500]


def test_an_analysed_batch_is_appended_as_it_was_analysed() -> None:
    bench = Workbench()
    log = bench.create()
    analysis = analyse(batch(A), bench.config, now_ms=NOW_MS)
    assert log.append(analysis, leader_epoch=0, now_ms=NOW_MS).first_offset == 0


@pytest.mark.spec("LOG-48")
def test_a_batch_larger_than_a_segment_is_refused_and_leaves_no_trace() -> None:
    log = Workbench(segment_bytes=200).create()
    with pytest.raises(KafkaError) as error:
        add(log, b"x" * 300)
    assert error.value.code is ErrorCode.record_list_too_large
    assert (log.end_offset, log.size) == (0, 0)


@pytest.mark.spec("LOG-50", "TXN-08")
def test_a_repeated_batch_is_answered_with_its_first_place_and_not_written() -> None:
    log = Workbench().create()
    sent = batch(A, B, producer_id=3, producer_epoch=0, base_sequence=0)
    first = log.append(sent, leader_epoch=0, now_ms=NOW_MS)
    size = log.size
    again = log.append(sent, leader_epoch=0, now_ms=WallMs(NOW_MS + 50))
    assert again.duplicate
    assert not first.duplicate
    assert (again.first_offset, again.last_offset) == (0, 1)
    assert (log.size, log.end_offset) == (size, 2)


def test_a_repeat_keeps_the_append_time_of_the_first() -> None:
    log = Workbench(message_timestamp_type="LogAppendTime").create()
    sent = batch(A, producer_id=3, producer_epoch=0, base_sequence=0)
    log.append(sent, leader_epoch=0, now_ms=NOW_MS)
    assert log.append(sent, leader_epoch=0, now_ms=WallMs(NOW_MS + 50)).append_time_ms == NOW_MS


@pytest.mark.parametrize(
    ("sequence", "epoch", "code"),
    [
        (5, 2, ErrorCode.out_of_order_sequence_number),
        (0, 1, ErrorCode.invalid_producer_epoch),
        (3, 3, ErrorCode.out_of_order_sequence_number),
    ],
)
def test_a_producer_out_of_order_is_refused_and_nothing_changes(
    sequence: int, epoch: int, code: ErrorCode
) -> None:
    log = Workbench().create()
    add(log, A, B, producer_id=3, producer_epoch=2, base_sequence=0)
    with pytest.raises(KafkaError) as error:
        add(log, C, producer_id=3, producer_epoch=epoch, base_sequence=sequence)
    assert error.value.code is code
    assert log.end_offset == 2
    add(log, C, producer_id=3, producer_epoch=2, base_sequence=2)


@pytest.mark.spec("LOG-23")
def test_an_append_is_in_the_page_cache_and_on_the_disk_only_once_flushed() -> None:
    disk = ForgettingDisk()
    log = Workbench(disk).create()
    disk.sync_everything()
    before = disk.syncs
    for number in range(10):
        add(log, b"%d" % number)
    assert disk.syncs == before
    assert values(log) == [b"%d" % number for number in range(10)]  # readers need no flush
    assert log.recovery_point == 0
    flush = begin_flush(log)
    flush.run()
    log.flush_done(flush)
    assert disk.syncs > before
    assert log.recovery_point == 10


@pytest.mark.parametrize("producer", [-1, 3])
def test_a_full_disk_fails_the_append_and_no_offset_is_used_up(producer: int) -> None:
    disk = ForgettingDisk()
    log = Workbench(disk).create()
    fields = {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0}
    sent = batch(A, **(fields if producer >= 0 else {}))
    disk.capacity_bytes = disk.written_bytes + 20
    with pytest.raises(OSError, match="No space") as error:
        log.append(sent, leader_epoch=7, now_ms=NOW_MS)
    assert error.value.errno == errno.ENOSPC
    assert (log.end_offset, log.size, log.epochs.latest) == (0, 0, -1)
    disk.capacity_bytes = None
    assert log.append(sent, leader_epoch=7, now_ms=NOW_MS).first_offset == 0
    assert values(log) == [A]


def test_the_offset_of_a_marker_whose_index_entry_fails_is_not_given_again() -> None:
    disk = ForgettingDisk()
    bench = Workbench(disk)
    log = bench.create()
    add(log, A, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    marker = build_marker(
        EndTxnMarker(ControlType.ABORT, 0), producer_id=1, producer_epoch=0, timestamp=NOW_MS
    )
    disk.failed_directory = log.segments.active.files.path(TXN_INDEX)
    with pytest.raises(OSError, match="nput/output error"):
        log.append(marker, leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR)
    disk.mend()
    assert log.end_offset == 2, "the marker is in the log"
    assert add(log, B) == 2
    assert [record.offset for record in stored(log)] == [0, 1, 2]
    disk.kill()
    again = bench.load(clean=False)
    assert again.end_offset == 3
    assert [txn.producer_id for txn in find_aborted(again, 0, 3)] == [1]


@pytest.mark.spec("LOG-05", "LOG-18", "LOG-49", "LOG-55")
def test_a_full_segment_is_closed_and_the_next_begins_at_the_next_offset() -> None:
    bench = Workbench(segment_bytes=250)
    log = bench.create()
    results = [
        log.append(batch(b"%d" % number, b"x"), leader_epoch=0, now_ms=NOW_MS)
        for number in range(6)
    ]
    assert [segment.base_offset for segment in log.segments] == [0, 6]
    assert [appended.rolled for appended in results] == [False] * 3 + [True] + [False] * 2
    assert [record.offset for record in stored(log)] == list(range(12))


def test_every_new_segment_has_a_jitter_of_its_own() -> None:
    log = Workbench(segment_bytes=250, segment_jitter_ms=1_000_000).create()
    for number in range(12):
        log.append(batch(b"%d" % number, b"x"), leader_epoch=0, now_ms=NOW_MS)
    jitters = [segment.jitter_ms for segment in log.segments]
    assert len(jitters) > 2
    assert len(set(jitters)) == len(jitters), jitters
    assert min(jitters) >= 0 and max(jitters) < 1_000_000


@pytest.mark.spec("LOG-51")
def test_a_flush_comes_with_the_message_limit() -> None:
    log = Workbench(flush_messages=3).create()
    add(log, A, B)
    assert log.recovery_point == 0
    add(log, C)
    assert log.recovery_point == 3


# Reading


def read_values(content: bytes | None) -> list[bytes | None]:
    if content is None:
        return []
    found: list[bytes | None] = []
    for at, header in walk(content):
        found += [record.value for record in read_records(content[at : at + header.size])]
    return found


@pytest.mark.spec("LOG-27", "LOG-29", "LOG-30", "LOG-52")
def test_a_read_gives_whole_batches_up_to_the_bytes_asked_for() -> None:
    log = Workbench().create()
    for value in (A, B, C):
        add(log, value)
    size = log.size // 3
    read = log.read(1, 10_000, end=3, min_one=False)
    assert read.slice is not None
    assert (read.offset, read.segment_base, read.position) == (1, 0, size)
    assert read_values(read.slice.read()) == [B, C]
    cut = log.read(0, size + 10, end=3, min_one=False)
    assert cut.slice is not None
    assert cut.slice.size == size + 10
    assert read_values(cut.slice.read()) == [A]


@pytest.mark.spec("LOG-52")
@pytest.mark.parametrize("end", [0, 1, 2, 3])
def test_nothing_at_or_beyond_the_bound_is_given(end: int) -> None:
    log = Workbench(segment_bytes=100).create()
    for value in (A, B, C):
        add(log, value)
    assert len(log.segments) == 3
    found: list[bytes | None] = []
    offset = 0
    while (part := log.read(offset, 10_000, end=end, min_one=True).slice) is not None:
        found += read_values(part.read())
        offset = len(found)
    assert found == [A, B, C][:end]


def test_a_bound_inside_a_batch_leaves_that_batch_out() -> None:
    log = Workbench().create()
    add(log, A)
    add(log, B, C)
    part = log.read(0, 10_000, end=2, min_one=True).slice
    assert part is not None
    assert read_values(part.read()) == [A]
    assert log.read(1, 10_000, end=2, min_one=True).slice is None


@pytest.mark.spec("LOG-31")
def test_a_first_batch_that_is_too_large_comes_whole_or_not_at_all() -> None:
    log = Workbench().create()
    add(log, b"x" * 1_000)
    add(log, A)
    part = log.read(0, 10, end=2, min_one=True).slice
    assert part is not None
    assert read_values(part.read()) == [b"x" * 1_000]
    assert log.read(0, 10, end=2, min_one=False).slice is None


def test_an_offset_outside_the_log_is_out_of_range() -> None:
    log = Workbench().create()
    add(log, A, B)
    log.raise_high_watermark(2)
    log.raise_start_offset(1)
    for offset in (-1, 0, 3):
        with pytest.raises(KafkaError) as error:
            log.read(offset, 100, end=2, min_one=True)
        assert error.value.code is ErrorCode.offset_out_of_range
    assert log.read(2, 100, end=2, min_one=True).slice is None


def test_a_slice_still_reads_after_its_segment_has_gone() -> None:
    log = Workbench(retention_ms=0).create()
    add(log, A)
    part = log.read(0, 100, end=1, min_one=True).slice
    log.raise_high_watermark(1)
    delete_old_segments(log, WallMs(NOW_MS + 10**9))
    log.deleted_segments.purge(WallMs(NOW_MS + 10**10))
    assert part is not None
    assert read_values(part.read()) == [A]


# Watermarks


@pytest.mark.spec("LOG-94", "LOG-95")
def test_a_leader_raises_the_high_watermark_and_never_lowers_it() -> None:
    log = Workbench().create()
    add(log, A, B, C)
    assert log.high_watermark == 0
    assert log.raise_high_watermark(2)
    assert not log.raise_high_watermark(1)
    assert not log.raise_high_watermark(2)
    assert log.raise_high_watermark(99)
    assert log.high_watermark == 3


@pytest.mark.spec("LOG-95")
def test_a_followers_high_watermark_is_kept_within_its_log() -> None:
    log = Workbench().create()
    add(log, A, B, C)
    for told, kept in [(2, 2), (1, 1), (99, 3), (-5, 0)]:
        log.set_high_watermark(told)
        assert log.high_watermark == kept


def marker(kind: ControlType, producer: int) -> bytes:
    return build_marker(
        EndTxnMarker(kind, 0), producer_id=producer, producer_epoch=0, timestamp=NOW_MS
    )


@pytest.mark.spec("REC-37", "REC-38", "LOG-101")
def test_the_last_stable_offset_waits_for_open_transactions_and_their_markers() -> None:
    log = Workbench().create()
    add(log, A)
    add(log, B, producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    add(log, C)
    log.raise_high_watermark(3)
    assert log.last_stable_offset == 1
    log.append(
        marker(ControlType.ABORT, 5),
        leader_epoch=0,
        now_ms=NOW_MS,
        origin=Origin.COORDINATOR,
    )
    assert log.last_stable_offset == 1
    log.raise_high_watermark(4)
    assert log.last_stable_offset == 4
    assert [txn[:3] for txn in find_aborted(log, 0, 4)] == [(5, 1, 3)]
    assert find_aborted(log, 0, 1) == []


# Moving


@pytest.mark.spec("LOG-41")
def test_a_log_goes_on_in_another_folder() -> None:
    bench = Workbench()
    log = bench.create()
    add(log, A)
    moved = bench.dir.with_name("orders-3.0123-delete")
    log.rename_dir(moved)
    assert not bench.disk.exists(bench.dir)
    add(log, B)
    log.roll(NOW_MS)
    log.flush()
    assert values(log) == [A, B]


@pytest.mark.parametrize(
    ("epoch", "coordinator", "code"),
    [
        (1, 4, ErrorCode.transaction_coordinator_fenced),
        (0, 5, ErrorCode.invalid_producer_epoch),
        (1, 5, None),
    ],
)
def test_a_marker_of_an_older_coordinator_or_producer_is_refused(
    epoch: int, coordinator: int, code: ErrorCode | None
) -> None:
    log = Workbench().create()

    def mark(epoch: int, coordinator: int) -> None:
        marker = build_marker(
            EndTxnMarker(ControlType.COMMIT, coordinator),
            producer_id=7,
            producer_epoch=epoch,
            timestamp=NOW_MS,
        )
        log.append(marker, leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR)

    mark(1, 5)
    if code is None:
        mark(epoch, coordinator)
        return
    with pytest.raises(KafkaError) as refusal:
        mark(epoch, coordinator)
    assert refusal.value.code is code
    assert log.end_offset == 1
