from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.consumer.record import Record
from ottla.client.errors import SerializationError
from ottla.gateway.group_consumer import count_fitting
from ottla.gateway.media_types import Format
from ottla.gateway.record_formats import encode, record_json


def record(key: bytes | None, value: bytes | None) -> Record:
    return Record("orders", 1, 20, 0, 0, key, value)


@given(st.none() | st.binary(), st.none() | st.binary())
def test_binary_records_come_back_as_they_were(key: bytes | None, value: bytes | None) -> None:
    row = json.loads(record_json(record(key, value), Format.BINARY))
    assert (row["topic"], row["partition"], row["offset"]) == ("orders", 1, 20)
    assert encode(row["key"], Format.BINARY, "key") == key
    assert encode(row["value"], Format.BINARY, "value") == value


def test_json_records_keep_every_digit() -> None:
    row = record_json(
        record(b'"k"', b'{"price":1.10,"n":123456789012345678901234567890.123}'), Format.JSON
    )
    assert b'"key":"k","value":{"price":1.10,"n":123456789012345678901234567890.123},' in row


@pytest.mark.parametrize(
    "value", [b"", b"{", b"NaN", b"\xff", b"1 2", b"[" * 100_000, '"\x00"'.encode("utf-16")]
)
def test_a_value_that_is_not_json_is_named_with_its_offset(value: bytes) -> None:
    with pytest.raises(SerializationError, match="value of orders-1 offset 20 is not JSON"):
        record_json(record(None, value), Format.JSON)


@pytest.mark.parametrize(
    ("max_bytes", "at_least_one", "count"),
    [
        (0, True, 1),
        (0, False, 0),
        (9, True, 1),
        (20, True, 2),
        (29, False, 2),
        (30, False, 3),
        (99, False, 3),
    ],
)
def test_as_many_records_as_fit_are_taken(max_bytes: int, at_least_one: bool, count: int) -> None:
    records = [record(b"01234", b"56789")] * 3
    assert count_fitting(records, max_bytes, at_least_one=at_least_one) == count
