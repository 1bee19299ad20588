"""Promises of `ottla.log.compaction.batch_filter`."""

from __future__ import annotations

import pytest

from ottla.log.compaction.batch_filter import CleaningRound, TransactionTracker, filter_batch, keys
from ottla.log.compaction.offset_map import OffsetMap
from ottla.log.index.txn_index import AbortedTxn
from ottla.log.producers.snapshot_file import ProducerEntry
from ottla.log.stored_batch import parse
from ottla.model.clock import WallMs
from ottla.protocol.records import legacy
from ottla.protocol.records.batch import build, crc_ok, read_header
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.control import ControlType, EndTxnMarker, build_marker
from ottla.protocol.records.record import NewRecord, Record, read_records

HOUR = 3_600_000
NOW = 1_000 * HOUR


def a_round(newest: dict[bytes, int], *, end: int = 1_000, now_ms: int = NOW) -> CleaningRound:
    table = OffsetMap(64)
    for key, offset in sorted(newest.items(), key=lambda pair: pair[1]):
        table.put(key, offset)
    table.latest_offset = end - 1
    return CleaningRound(table, {}, WallMs(now_ms), delete_retention_ms=HOUR)


def survives(batch: bytes, round_: CleaningRound, trail: TransactionTracker | None = None) -> bytes:
    view = memoryview(batch)
    return bytes(filter_batch(parse(view, 0, 0), view, trail or TransactionTracker([]), round_))


def offsets(batch: bytes) -> list[int]:
    return [record.offset for record in read_records(batch)]


THREE = [NewRecord(b"a", b"1", (), 5), NewRecord(b"b", b"2", (), 6), NewRecord(b"c", b"3", (), 7)]


@pytest.mark.spec("LOG-70")
@pytest.mark.parametrize("codec", list(Codec))
def test_a_record_goes_when_its_key_was_written_again(codec: Codec) -> None:
    batch = build(THREE, base_offset=10, codec=codec)
    kept = survives(batch, a_round({b"b": 50}))
    assert [(r.offset, r.key, r.value, r.timestamp) for r in read_records(kept)] == [
        (10, b"a", b"1", 5),
        (12, b"c", b"3", 7),
    ]
    assert crc_ok(kept)


@pytest.mark.spec("LOG-70")
def test_a_batch_of_which_nothing_goes_is_kept_byte_for_byte() -> None:
    batch = build(THREE, base_offset=10, codec=Codec.ZSTD)
    assert survives(batch, a_round({b"a": 10, b"b": 11, b"c": 12})) == batch


@pytest.mark.spec("LOG-74")
def test_a_rewritten_batch_keeps_its_offsets_epoch_and_sequence() -> None:
    batch = build(
        THREE,
        base_offset=10,
        leader_epoch=4,
        codec=Codec.LZ4,
        producer_id=9,
        producer_epoch=2,
        base_sequence=7,
    )
    before, after = read_header(batch), read_header(survives(batch, a_round({b"c": 50})))
    assert offsets(survives(batch, a_round({b"c": 50}))) == [10, 11]
    assert after._replace(length=0, crc=0, count=0, max_timestamp=0) == before._replace(
        length=0, crc=0, count=0, max_timestamp=0
    )
    assert (after.last_offset, after.last_sequence) == (12, 9)
    assert after.max_timestamp == 6


def test_records_without_a_key_do_not_survive() -> None:
    batch = build([NewRecord(None, b"x"), NewRecord(b"a", b"1")], base_offset=0)
    assert offsets(survives(batch, a_round({}))) == [1]


def test_records_past_what_the_map_covers_are_left_alone() -> None:
    round_ = a_round({b"a": 1}, end=1)
    batch = build([NewRecord(None, b"x"), NewRecord(b"a", None)], base_offset=1)
    assert offsets(survives(batch, round_)) == [1, 2]


@pytest.mark.spec("LOG-72")
def test_a_tombstone_is_given_time_to_be_seen_and_then_goes() -> None:
    batch = build([NewRecord(b"a", None, (), 123), NewRecord(b"b", b"2", (), 124)], base_offset=10)
    dated = survives(batch, a_round({b"a": 10, b"b": 11}))
    header = read_header(dated)
    assert header.has_delete_horizon and header.base_timestamp == NOW + HOUR
    assert [record.timestamp for record in read_records(dated)] == [123, 124]
    early = a_round({b"a": 10, b"b": 11}, now_ms=NOW + HOUR - 1)
    assert survives(dated, early) == dated
    late = a_round({b"a": 10, b"b": 11}, now_ms=NOW + HOUR)
    assert offsets(survives(dated, late)) == [11]


@pytest.mark.spec("LOG-72")
def test_the_time_a_tombstone_has_does_not_begin_again() -> None:
    batch = build([NewRecord(b"a", None), NewRecord(b"b", b"2")], base_offset=10)
    dated = survives(batch, a_round({b"a": 10, b"b": 11}))
    smaller = survives(dated, a_round({b"a": 10, b"b": 99}, now_ms=NOW + 5))
    assert offsets(smaller) == [10]
    assert read_header(smaller).base_timestamp == NOW + HOUR


def test_append_time_survives_a_rewrite() -> None:
    batch = build(THREE, base_offset=10, timestamp_type=1, max_timestamp=777)
    kept = survives(batch, a_round({b"c": 50}))
    assert [record.timestamp for record in read_records(kept)] == [777, 777]


@pytest.mark.spec("LOG-74")
def test_aborted_records_go_whatever_their_key() -> None:
    batch = build(
        THREE, base_offset=10, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True
    )
    aborted = AbortedTxn(7, 10, 13, 14)
    assert survives(batch, a_round({}), TransactionTracker([aborted])) == b""
    assert survives(batch, a_round({}), TransactionTracker([])) == batch


@pytest.mark.spec("LOG-74")
@pytest.mark.parametrize("kind", list(ControlType))
def test_a_marker_without_data_goes_after_its_delay(kind: ControlType) -> None:
    marker = build_marker(
        EndTxnMarker(kind, 1), producer_id=7, producer_epoch=0, timestamp=5, base_offset=20
    )
    dated = survives(marker, a_round({}))
    assert read_header(dated).base_timestamp == NOW + HOUR
    assert read_header(dated).is_control and offsets(dated) == [20]
    assert survives(dated, a_round({}, now_ms=NOW + HOUR - 1)) == dated
    assert survives(dated, a_round({}, now_ms=NOW + HOUR)) == b""


@pytest.mark.spec("LOG-74")
def test_a_marker_whose_data_is_there_stays_as_it_is() -> None:
    trail = TransactionTracker([])
    trail.data(7, 10)
    marker = build_marker(
        EndTxnMarker(ControlType.COMMIT, 1),
        producer_id=7,
        producer_epoch=0,
        timestamp=5,
        base_offset=20,
    )
    assert survives(marker, a_round({}, now_ms=NOW + 9 * HOUR), trail) == marker


@pytest.mark.spec("LOG-74")
def test_the_last_batch_of_an_active_producer_stays_though_it_is_empty() -> None:
    batch = build(THREE, base_offset=10, producer_id=9, producer_epoch=2, base_sequence=7)
    gone = a_round({b"a": 50, b"b": 51, b"c": 52})
    assert survives(batch, gone) == b""
    entry = ProducerEntry(9, 2, 9, 12, 2, 7, -1, -1)
    kept = survives(batch, gone._replace(active={9: entry}))
    header = read_header(kept)
    assert offsets(kept) == [] and header.count == 0
    assert (header.base_offset, header.last_offset, header.last_sequence) == (10, 12, 9)
    assert survives(batch, gone._replace(active={9: entry._replace(last_offset=60)})) == b""


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_the_last_batch_that_may_be_compacted_stays_so_that_its_end_is_known(magic: int) -> None:
    records = [Record(12, 5, b"c", b"3")]
    batch = build(records, base_offset=12) if magic == 2 else legacy.build(records, magic=magic)
    gone, view = a_round({b"c": 52}), memoryview(batch)
    kept = filter_batch(parse(view, 0, 0), view, TransactionTracker([]), gone, is_last=True)
    assert offsets(bytes(kept)) == []
    assert read_header(kept).last_offset == 12


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_what_is_left_of_an_older_format_is_written_in_the_new_one(
    magic: int, codec: Codec
) -> None:
    entry = legacy.build([Record(11, 5, b"a", b"1")], magic=magic, codec=codec)
    assert survives(entry, a_round({b"a": 11})) == entry
    assert survives(entry, a_round({b"a": 12})) == b""
    dead = legacy.build([Record(11, 5, b"a", None)], magic=magic, codec=codec)
    dated = survives(dead, a_round({b"a": 11}))
    assert read_header(dated).base_timestamp == NOW + HOUR
    assert offsets(dated) == [11]


def test_part_of_an_old_compressed_set_may_go() -> None:
    records = [Record(10, 5, b"a", b"1"), Record(11, 6, b"b", b"2"), Record(12, 7, b"a", b"3")]
    entry = legacy.build(records, magic=1, codec=Codec.GZIP)
    kept = survives(entry, a_round({b"a": 12, b"b": 11}))
    assert [(r.offset, r.timestamp, r.value) for r in read_records(kept)] == [
        (11, 6, b"2"),
        (12, 7, b"3"),
    ]
    header = read_header(kept)
    assert (header.base_offset, header.last_offset) == (10, 12)


def test_keys_are_those_of_records_that_count() -> None:
    def found(batch: bytes, trail: TransactionTracker) -> list[tuple[bytes, int]]:
        view = memoryview(batch)
        return list(keys(parse(view, 0, 0), view, trail))

    trail = TransactionTracker([AbortedTxn(7, 10, 13, 14)])
    plain = build([NewRecord(b"a", b"1"), NewRecord(None, b"2")], base_offset=5)
    assert found(plain, trail) == [(b"a", 5)]
    aborted = build(
        THREE, base_offset=10, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True
    )
    assert found(aborted, trail) == []
    marker = EndTxnMarker(ControlType.ABORT, 1)
    end = build_marker(marker, producer_id=7, producer_epoch=0, timestamp=5, base_offset=13)
    assert found(end, trail) == []
    old = legacy.build([Record(20, 5, b"z", b"1")], magic=1)
    assert found(old, trail) == [(b"z", 20)]
