"""Record batches become Arrow columns that say exactly what a plain reader says."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.model.errors import UserError
from ottla.protocol.records import legacy
from ottla.protocol.records.batch import build
from ottla.protocol.records.columns.decode import COLUMNS, TYPES, Decoded, decode_batches, schema
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.control import ControlType, EndTxnMarker, build_marker
from ottla.protocol.records.header import CorruptBatch
from ottla.protocol.records.record import NewRecord, Record
from tests.protocol.records.columns.batches import buffers, numbered, plain_rows

EVERY = tuple(TYPES)


def rows(decoded: Decoded) -> list[dict[str, Any]]:
    decoded.batch.validate(full=True)
    at = decoded.batch.schema.get_field_index("timestamp")
    if at < 0:
        return list(decoded.batch.to_pylist())
    # Python's own dates end where a log's need not.
    numbers = decoded.batch.set_column(at, "timestamp", decoded.batch["timestamp"].cast(pa.int64()))
    return list(numbers.to_pylist())


def values(decoded: Decoded) -> list[bytes | None]:
    return list(decoded.batch["value"].to_pylist())


@pytest.mark.spec("REC-13", "REC-19", "REC-21", "REC-22", "REC-23", "REC-34")
@given(buffers())
def test_columns_hold_what_a_plain_reader_reads(buffer: bytes) -> None:
    decoded = decode_batches(buffer, want=EVERY)
    assert rows(decoded) == plain_rows(buffer)
    assert decoded.rows == decoded.batch.num_rows
    assert decoded.consumed == len(buffer)
    assert not decoded.more


@given(buffers(), st.lists(st.sampled_from(EVERY), unique=True))
def test_only_the_wanted_columns_come_back_in_the_order_asked(
    buffer: bytes, want: list[str]
) -> None:
    decoded = decode_batches(buffer, want=want)
    assert decoded.batch.schema == schema(want)
    assert decoded.batch.schema.names == want
    assert decoded.rows == len(plain_rows(buffer))
    if want:
        assert rows(decoded) == [{name: row[name] for name in want} for row in plain_rows(buffer)]


@given(buffers(), st.integers(0, 2**41), st.integers(0, 900))
def test_rows_outside_the_offsets_asked_for_are_left_out(
    buffer: bytes, start: int, size: int
) -> None:
    every = plain_rows(buffer)
    if every:
        start = every[0]["offset"] + start % 700
    decoded = decode_batches(buffer, want=EVERY, start_offset=start, end_offset=start + size)
    assert rows(decoded) == [row for row in every if start <= row["offset"] < start + size]
    assert decoded.next_offset >= start
    assert decoded.next_offset <= start + size


@given(buffers(), st.integers(-1, 2**45), st.integers(0, 2**44))
def test_rows_outside_the_times_asked_for_are_left_out(
    buffer: bytes, start: int, size: int
) -> None:
    decoded = decode_batches(buffer, want=EVERY, start_time=start, end_time=start + size)
    found = [row for row in plain_rows(buffer) if start <= row["timestamp"] < start + size]
    assert rows(decoded) == found


@given(buffers(), st.integers(1, 400))
def test_a_limit_on_bytes_only_splits_the_rows_over_calls(buffer: bytes, limit: int) -> None:
    found, at, offset = [], 0, 0
    while True:
        part = decode_batches(buffer[at:], want=EVERY, max_bytes=limit, start_offset=offset)
        found += rows(part)
        at, offset = at + part.consumed, part.next_offset
        if not part.more:
            break
        assert part.consumed > 0
    assert found == plain_rows(buffer)
    assert at == len(buffer)


@pytest.mark.parametrize("size", [0, 11, 12, 16, 17, 60, 61, 70])
def test_a_batch_cut_at_the_end_is_left_for_the_next_fetch(size: int) -> None:
    whole = numbered(3) + numbered(2, at=3)
    decoded = decode_batches(whole + numbered(4, at=5)[:size])
    assert values(decoded) == [b"0", b"1", b"2", b"3", b"4"]
    assert (decoded.consumed, decoded.next_offset, decoded.more) == (len(whole), 5, False)


def test_nothing_gives_no_rows_and_stays_where_it_is() -> None:
    decoded = decode_batches(b"", start_offset=7)
    assert decoded.batch.schema == schema(COLUMNS)
    assert decoded[1:] == (0, 7, 0, -1, (), False)


@pytest.mark.spec("REC-18")
def test_a_batch_emptied_by_compaction_still_moves_the_reader() -> None:
    emptied = build([], base_offset=10, last_offset_delta=4)
    decoded = decode_batches(emptied + numbered(1, at=20), start_offset=10)
    assert values(decoded) == [b"20"]
    assert decode_batches(emptied, start_offset=10).next_offset == 15


@pytest.mark.spec("REC-17")
def test_the_last_batch_tells_its_leader_epoch() -> None:
    buffer = numbered(1, leader_epoch=3) + numbered(1, at=1, leader_epoch=4)
    decoded = decode_batches(buffer, want=("leader_epoch",))
    assert decoded.leader_epoch == 4
    assert decoded.batch["leader_epoch"].to_pylist() == [3, 4]


@pytest.mark.spec("REC-16")
def test_a_batch_that_is_not_what_its_checksum_says_is_refused() -> None:
    damaged = bytearray(numbered(2))
    damaged[-2] ^= 1
    with pytest.raises(CorruptBatch, match="checksum"):
        decode_batches(damaged)
    assert decode_batches(damaged, check_crc=False).rows == 2


@pytest.mark.parametrize("check_crc", [True, False])
def test_batches_before_a_bad_one_come_back_first(check_crc: bool) -> None:
    good = numbered(2) + numbered(2, at=2)
    bad = bytearray(numbered(2, at=4))
    bad[-1] = 9  # the number of headers: found by the checksum, or else by the walk
    buffer = good + bad + numbered(1, at=6)
    decoded = decode_batches(buffer, check_crc=check_crc)
    assert values(decoded) == [b"0", b"1", b"2", b"3"]
    assert (decoded.consumed, decoded.next_offset, decoded.more) == (len(good), 4, True)
    with pytest.raises(CorruptBatch):
        decode_batches(buffer[decoded.consumed :], check_crc=check_crc, start_offset=4)


def test_an_unknown_format_is_refused_where_it_stands() -> None:
    strange = bytearray(numbered(1))
    strange[16] = 3
    with pytest.raises(CorruptBatch, match="magic 3"):
        decode_batches(strange)
    assert decode_batches(numbered(1) + strange).more


def test_a_batch_wholly_outside_is_not_even_checked() -> None:
    damaged = bytearray(numbered(2))
    damaged[-2] ^= 1
    buffer = bytes(damaged) + numbered(2, at=2)
    assert values(decode_batches(buffer, start_offset=2)) == [b"2", b"3"]
    assert values(decode_batches(buffer, start_time=1002)) == [b"2", b"3"]


@pytest.mark.spec("REC-38", "TXN-47")
def test_markers_are_never_rows() -> None:
    marker = build_marker(
        EndTxnMarker(ControlType.COMMIT, 0),
        producer_id=1, producer_epoch=0, timestamp=5, base_offset=2,
    )  # fmt: skip
    decoded = decode_batches(numbered(2) + marker + numbered(1, at=3))
    assert values(decoded) == [b"0", b"1", b"3"]
    assert decode_batches(marker).next_offset == 3


@pytest.mark.spec("REC-01", "REC-28", "REC-30", "REC-32", "REC-40")
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
@pytest.mark.parametrize("append_time", [None, 77])
@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats_are_read_as_well(codec: Codec, append_time: int | None, magic: int) -> None:
    if magic == 0 and append_time is not None:
        append_time = None  # v0 has no timestamps
    messages = [NewRecord(b"k", b"v", timestamp=5), NewRecord(None, None, timestamp=3)]
    old = legacy.build(messages, magic=magic, base_offset=4, codec=codec, append_time=append_time)
    decoded = decode_batches(old + numbered(1, at=6), want=EVERY)
    times = [append_time] * 2 if append_time else [5, 3] if magic else [-1, -1]
    assert [row["timestamp"] for row in rows(decoded)] == [*times, 1006]
    assert decoded.batch["offset"].to_pylist() == [4, 5, 6]
    assert decoded.batch["key"].to_pylist() == [b"k", None, None]
    assert decoded.batch["value"].to_pylist() == [b"v", None, b"6"]
    kind = (1 if append_time else 0) if magic else -1
    assert decoded.batch["timestamp_type"].to_pylist() == [kind, kind, 0]
    assert decoded.next_offset == 7


def test_an_old_message_that_is_not_what_its_checksum_says_is_refused() -> None:
    old = bytearray(legacy.build([NewRecord(b"k", b"v")], magic=1))
    old[-1] ^= 1
    with pytest.raises(CorruptBatch, match="checksum"):
        decode_batches(old)


def test_a_header_key_that_is_not_text_is_replaced_as_kafka_does() -> None:
    record = NewRecord(None, None, headers=(("a\udcff", b"1"), ("é", None)))
    decoded = decode_batches(build([record]), want=("headers",))
    assert rows(decoded) == [
        {"headers": [{"key": "a\ufffd", "value": b"1"}, {"key": "é", "value": None}]}
    ]


def test_an_unknown_column_is_a_mistake_that_names_it() -> None:
    with pytest.raises(UserError, match="'velue'"):
        decode_batches(b"", want=("velue",))


def test_a_view_into_a_writable_frame_is_decoded_in_place() -> None:
    frame = bytearray(b"???" + numbered(2) + b"??")
    assert values(decode_batches(memoryview(frame)[3:-2])) == [b"0", b"1"]


def test_columns_outlive_the_buffer_they_came_from() -> None:
    frame = bytearray(numbered(2))
    decoded = decode_batches(frame)
    frame[:] = bytes(len(frame))
    assert values(decoded) == [b"0", b"1"]


@settings(max_examples=300)
@given(buffers(max_batches=2), st.data())
def test_damage_is_found_and_never_more_than_that(buffer: bytes, data: st.DataObject) -> None:
    damaged = bytearray(buffer)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(damaged)))
        damaged[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=6))
    try:
        decoded = decode_batches(damaged, want=EVERY, check_crc=False)
    except CorruptBatch:
        return
    decoded.batch.validate()
    assert decoded.consumed <= len(damaged)


def test_a_batch_of_every_codec_and_gaps_keeps_its_order() -> None:
    kept = [Record(offset, offset, b"k", b"v") for offset in (3, 9, 500)]
    buffer = b"".join(
        build(kept, base_offset=at * 1000 + 3, codec=codec)
        if at == 0
        else build(
            [record._replace(offset=record.offset + at * 1000) for record in kept],
            base_offset=at * 1000 + 3,
            codec=codec,
        )
        for at, codec in enumerate(Codec)
    )
    offsets = decode_batches(buffer).batch["offset"].to_pylist()
    assert offsets == [at * 1000 + offset for at in range(5) for offset in (3, 9, 500)]
