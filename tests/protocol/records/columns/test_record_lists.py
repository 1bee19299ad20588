"""Batches become plain lists that say exactly what a plain reader says."""

from __future__ import annotations

import pytest
from hypothesis import given

from ottla.protocol.records.batch import build
from ottla.protocol.records.columns.record_lists import decode_records
from ottla.protocol.records.header import CorruptBatch
from ottla.protocol.records.record import NewRecord, read_records
from tests.protocol.records.columns.batches import buffers, numbered, plain_rows


@given(buffers())
def test_lists_hold_what_a_plain_reader_reads(buffer: bytes) -> None:
    found = decode_records(buffer)
    every = plain_rows(buffer)
    assert found.offsets == [row["offset"] for row in every]
    assert found.timestamps == [row["timestamp"] for row in every]
    assert found.timestamp_types == [row["timestamp_type"] for row in every]
    assert found.leader_epochs == [row["leader_epoch"] for row in every]
    assert found.keys == [row["key"] for row in every]
    assert found.values == [row["value"] for row in every]
    assert found.headers == [
        tuple((header["key"], header["value"]) for header in row["headers"]) for row in every
    ]
    assert (found.consumed, found.more) == (len(buffer), False)


def test_a_record_can_be_made_of_them_with_zip() -> None:
    batch = build([NewRecord(b"k", b"v", (("h", b"1"),), 5), NewRecord(None, b"", (), 6)])
    found = decode_records(batch)
    fields = zip(
        found.offsets, found.timestamps, found.keys, found.values, found.headers, strict=True
    )
    assert list(fields) == [tuple(record) for record in read_records(batch)]


def test_header_keys_that_are_not_text_survive() -> None:
    batch = build([NewRecord(None, None, (("a\udcff", None),))])
    assert decode_records(batch).headers == [(("a\udcff", None),)]


def test_bounds_and_faults_are_those_of_columns() -> None:
    found = decode_records(numbered(5) + numbered(5, at=5), start_offset=3, end_offset=7)
    assert (found.offsets, found.next_offset) == ([3, 4, 5, 6], 7)
    with pytest.raises(CorruptBatch):
        decode_records(numbered(5)[:-1] + b"\x09")


@pytest.mark.parametrize("value", [b"", b"\0", b"x\0", bytes(100)])
@pytest.mark.parametrize("rows", [1, 2, 50])
def test_fields_of_one_width_are_bytes_all_the_same(value: bytes, rows: int) -> None:
    found = decode_records(build([NewRecord(None, value)] * rows))
    assert found.values == [value] * rows
    assert {type(field) for field in found.values} == {bytes}
