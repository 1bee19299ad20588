"""Promises of `ottla.log.producers.snapshot_file`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.log.producers.snapshot_file import CorruptSnapshot, ProducerEntry, decode, encode

ENTRY = ProducerEntry(4_000, 2, 41, 1_234, 4, 1_700_000_000_000, 7, 1_200)

int16, int32, int64 = (st.integers(-(2**bits), 2**bits - 1) for bits in (15, 31, 63))
entries = st.lists(
    st.builds(ProducerEntry, int64, int16, int32, int64, int32, int64, int32, int64), max_size=5
)


@pytest.mark.spec("LOG-92")
def test_the_file_is_what_kafka_writes() -> None:
    body = bytes.fromhex(
        "00 00 00 01"  # one producer
        "00 00 00 00 00 00 0f a0"  # its id
        "00 02"  # epoch
        "00 00 00 29"  # last sequence
        "00 00 00 00 00 00 04 d2"  # last offset
        "00 00 00 04"  # offset delta
        "00 00 01 8b cf e5 68 00"  # timestamp
        "00 00 00 07"  # coordinator epoch
        "00 00 00 00 00 00 04 b0"  # where its transaction began
    )
    assert encode([ENTRY]) == b"\x00\x01" + castagnoli(body).to_bytes(4, "big") + body


def castagnoli(data: bytes) -> int:
    """CRC-32C, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_no_producers_take_ten_bytes() -> None:
    assert len(encode([])) == 10


@given(entries)
def test_what_is_written_is_read_back(written: list[ProducerEntry]) -> None:
    assert decode(encode(written)) == written


@given(entries, st.data())
def test_one_turned_bit_is_noticed(written: list[ProducerEntry], data: st.DataObject) -> None:
    content = bytearray(encode(written))
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(CorruptSnapshot):
        decode(bytes(content))


@given(entries, st.data())
def test_a_cut_file_is_noticed(written: list[ProducerEntry], data: st.DataObject) -> None:
    content = encode(written)
    with pytest.raises(CorruptSnapshot):
        decode(content[: data.draw(st.integers(0, len(content) - 1))])
