"""Records read back as they were written, and whatever is wrong with one is found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.protocol.records.batch import build
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.header import HEADER, HEADER_SIZE, OVERHEAD, CorruptBatch, read_header
from ottla.protocol.records.record import (
    Header,
    NewRecord,
    Record,
    Summary,
    decode_varint,
    decode_varlong,
    encode_varint,
    read_records,
    records_section,
    validate_records,
)
from tests.protocol.records.samples import FAULTS, GOOD, header_for, new_records, section_of


@pytest.mark.spec("REC-24")
@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (64, "8001"), (-65, "8101"),
     (2**31 - 1, "feffffff0f"), (-(2**31), "ffffffff0f")],
)  # fmt: skip
def test_varints_are_zigzag_and_seven_bits_a_byte(value: int, encoded: str) -> None:
    assert encode_varint(value).hex() == encoded
    assert decode_varint(bytes.fromhex(encoded), 0) == (value, len(encoded) // 2)


@pytest.mark.spec("REC-24")
@given(st.integers(-(2**63), 2**63 - 1))
def test_varlongs_are_read_back_and_take_ten_bytes_at_most(value: int) -> None:
    data = encode_varint(value)
    assert len(data) <= 10
    assert decode_varlong(b"?" + data + b"?", 1) == (value, 1 + len(data))
    if -(2**31) <= value < 2**31:
        assert len(data) <= 5
        assert decode_varint(data, 0) == (value, len(data))


@pytest.mark.parametrize("data", [b"", b"\x80", b"\x80\x80", b"\x80" * 5, b"\xff\xff\xff\xff\x10"])
def test_a_varint_that_is_cut_or_too_large_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptBatch):
        decode_varint(data, 0)


@pytest.mark.spec("REC-21", "REC-22", "REC-23", "REC-25", "REC-39")
def test_a_record_is_laid_out_field_by_field() -> None:
    batch = build(
        [
            NewRecord(b"k", b"v", timestamp=1000),
            NewRecord(None, None, (("h", b"1"), ("h", None)), timestamp=1005),
        ]
    )
    section, _ = section_of(batch)
    assert section.hex(" ") == (
        "10 00 00 00 02 6b 02 76 00 "  # length, attributes, both deltas, key, value, no headers
        "1a 00 0a 02 01 01 04 02 68 02 31 02 68 01"  # null key and value, two headers
    )


@pytest.mark.spec("REC-22", "REC-25", "REC-26", "REC-34")
@given(st.lists(new_records, min_size=1, max_size=20), st.sampled_from(Codec))
def test_records_read_back_as_they_were_written(records: list[NewRecord], codec: Codec) -> None:
    batch = build(records, base_offset=100, codec=codec)
    assert list(read_records(batch)) == [
        Record(100 + at, r.timestamp, r.key, r.value, r.headers) for at, r in enumerate(records)
    ]


@pytest.mark.spec("REC-18", "REC-38")
def test_offsets_may_have_gaps() -> None:
    kept = [Record(10, 1, b"a", b"1"), Record(17, 2, b"b", b"2")]
    batch = build(kept, base_offset=8, last_offset_delta=20)
    assert list(read_records(batch)) == kept
    assert read_header(batch).next_offset == 29


@pytest.mark.spec("REC-10", "REC-19")
def test_with_log_append_time_every_record_has_the_brokers_time() -> None:
    batch = build(
        [NewRecord(b"k", b"v", timestamp=5), NewRecord(b"k", b"v", timestamp=6)],
        timestamp_type=1,
        max_timestamp=1_000,
    )
    assert [record.timestamp for record in read_records(batch)] == [1_000, 1_000]


def test_header_keys_that_are_not_utf_8_survive() -> None:
    odd = b"\xff\xfe".decode("utf-8", "surrogateescape")
    batch = build([NewRecord(None, None, ((odd, b"x"),))])
    (record,) = read_records(batch)
    assert record.headers == (Header(odd, b"x"),)
    assert build([record]) == batch


@pytest.mark.spec("REC-07")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_record_is_found(fault: str) -> None:
    count, section = FAULTS[fault]
    with pytest.raises(CorruptBatch):
        validate_records(section, header_for(count), dense=False)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_record_is_not_read(fault: str) -> None:
    count, section = FAULTS[fault]
    header = header_for(count)._replace(length=HEADER_SIZE - OVERHEAD + len(section))
    with pytest.raises(CorruptBatch):
        list(read_records(HEADER.pack(*header) + section))


def test_a_walk_says_what_it_saw() -> None:
    records = [
        NewRecord(b"k", b"v", timestamp=50),
        NewRecord(None, b"v", timestamp=90),
        NewRecord(None, b"v", timestamp=90),
        NewRecord(b"k", None, timestamp=20),
    ]
    section, header = section_of(build(records))
    assert validate_records(section, header, dense=True) == Summary(20, 90, 1, 1)
    assert validate_records(b"", header_for(0), dense=True) == Summary(-1, -1, -1, -1)


def test_a_producer_must_number_its_records_without_gaps() -> None:
    gap = [Record(0, 1, b"a", b"1"), Record(2, 2, b"b", b"2")]
    section, header = section_of(build(gap))
    validate_records(section, header, dense=False)
    with pytest.raises(CorruptBatch, match="offset delta 2"):
        validate_records(section, header, dense=True)


def test_a_batch_shorter_than_its_length_is_corrupt() -> None:
    batch = build([NewRecord(b"k", b"v")])
    with pytest.raises(CorruptBatch, match="length"):
        records_section(batch[:-1], read_header(batch))
    with pytest.raises(CorruptBatch):
        list(read_records(batch[:40]))


@pytest.mark.parametrize("codec", list(Codec)[1:])
def test_records_that_inflate_beyond_the_limit_are_corrupt(codec: Codec) -> None:
    batch = build([NewRecord(None, bytes(100_000))], codec=codec)
    assert len(list(read_records(batch, max_bytes=110_000))) == 1
    with pytest.raises(CorruptBatch):
        list(read_records(batch, max_bytes=99_999))


def test_the_good_record_that_the_faults_are_made_of_is_good() -> None:
    assert validate_records(GOOD, header_for(1), dense=True).max_timestamp == 1
