"""The 61 bytes in front of a batch say what the format says they say."""

from __future__ import annotations

import pytest

from ottla.protocol.records.batch import build
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.header import (
    HEADER,
    HEADER_SIZE,
    BatchHeader,
    CorruptBatch,
    magic_at,
    read_header,
)
from ottla.protocol.records.record import NewRecord


def header(**fields: int) -> BatchHeader:
    return read_header(build([NewRecord(b"k", b"v", timestamp=1)]))._replace(**fields)


@pytest.mark.spec("REC-13")
def test_a_header_is_61_bytes_in_this_order() -> None:
    values = (1, 2, 3, 2, 5, 6, 7, 8, 9, 10, 11, 12, 13)
    data = HEADER.pack(*values)
    assert len(data) == HEADER_SIZE == 61
    assert read_header(data) == BatchHeader(*values)
    assert data.hex() == (
        "0000000000000001" "00000002" "00000003" "02" "00000005" "0006" "00000007"
        "0000000000000008" "0000000000000009" "000000000000000a" "000b" "0000000c" "0000000d"
    )  # fmt: skip


@pytest.mark.spec("REC-14", "REC-18")
def test_sizes_and_offsets_follow_from_the_header() -> None:
    one = header(base_offset=100, length=49, last_offset_delta=9)
    assert (one.size, one.last_offset, one.next_offset) == (61, 109, 110)


@pytest.mark.spec("REC-06", "REC-15")
def test_attributes_are_bits() -> None:
    assert [header(attributes=n).codec for n in range(5)] == list(Codec)
    assert header(attributes=0x08).timestamp_type == 1
    assert header(attributes=0x10).is_transactional
    assert header(attributes=0x20).is_control
    assert header(attributes=0x40).has_delete_horizon
    none = header(attributes=0)
    assert not (none.is_transactional or none.is_control or none.has_delete_horizon)
    assert none.timestamp_type == 0


def test_an_unknown_codec_is_corrupt() -> None:
    for number in (5, 6, 7):
        with pytest.raises(CorruptBatch, match=f"unknown codec {number}"):
            _ = header(attributes=number).codec


@pytest.mark.spec("REC-20")
def test_sequences_wrap_around_to_zero() -> None:
    assert header(base_sequence=-1, last_offset_delta=4).last_sequence == -1
    assert header(base_sequence=5, last_offset_delta=4).last_sequence == 9
    assert header(base_sequence=2**31 - 1, last_offset_delta=0).last_sequence == 2**31 - 1
    assert header(base_sequence=2**31 - 1, last_offset_delta=1).last_sequence == 0
    assert header(base_sequence=2**31 - 2, last_offset_delta=5).last_sequence == 3


@pytest.mark.spec("REC-16")
def test_the_format_is_seen_before_anything_else_is_read() -> None:
    batch = build([NewRecord(b"k", b"v")])
    assert magic_at(batch) == 2
    assert magic_at(b"??" + batch, 2) == 2
    with pytest.raises(CorruptBatch):
        magic_at(batch[:16])


def test_a_header_that_is_cut_is_corrupt() -> None:
    with pytest.raises(CorruptBatch, match="cut short"):
        read_header(bytes(60))
