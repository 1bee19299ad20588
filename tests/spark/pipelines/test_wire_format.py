"""The bytes in front of a value with a schema of a registry."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.spark.pipelines.decoding.wire_format import (
    WireError,
    front,
    indexes_front,
    read,
    read_indexes,
)


@given(st.integers(0, 2**32 - 1), st.binary())
def test_a_number_is_read_as_it_was_written(number: int, data: bytes) -> None:
    assert read(front(number) + data) == (number, data)


@given(st.lists(st.integers(0, 1_000), min_size=1, max_size=8), st.binary())
def test_the_place_of_a_message_is_read_as_it_was_written(place: list[int], data: bytes) -> None:
    assert read_indexes(indexes_front(tuple(place)) + data) == (tuple(place), data)


def test_the_first_message_is_a_single_zero_and_numbers_are_zigzag() -> None:
    assert indexes_front((0,)) == b"\0"
    assert indexes_front((1, 0)) == b"\x04\x02\x00"


@pytest.mark.parametrize("data", [b"", b"\0\0\0", b"\1\0\0\0\7x"])
def test_bytes_without_a_number_are_refused(data: bytes) -> None:
    with pytest.raises(WireError):
        read(data)


@pytest.mark.parametrize("data", [b"", b"\x04\x02", b"\xff" * 12, b"\x01"])
def test_places_that_are_cut_off_are_refused(data: bytes) -> None:
    with pytest.raises(WireError):
        read_indexes(data)
