"""The native checksum is that of the package, with the processor's instruction and without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.protocol.records.columns import checksum
from ottla.protocol.records.columns.native import address, as_array, native
from ottla.protocol.records.crc import crc32c

NOISE = np.random.default_rng(7).integers(0, 256, 100_000, dtype=np.uint8).tobytes()


@native
def extended(before: int, data: np.ndarray[Any, Any]) -> int:
    return checksum.extended(before, address(data), address(data) + data.size)


@native
def added_slowly(state: Any, word: Any) -> Any:
    return checksum.add_slowly(state, word)


@pytest.mark.parametrize("lane", [checksum.SHORT_BYTES, checksum.LONG_BYTES])
@pytest.mark.parametrize("beside", [-9, -1, 0, 1, 7, 8, 31])
@pytest.mark.parametrize("lanes", [3, 6, 7])
def test_it_is_the_same_around_every_border(lane: int, lanes: int, beside: int) -> None:
    data = NOISE[: lane * lanes + beside]
    assert extended(0, as_array(data)) == crc32c(data)


@given(st.binary(max_size=100), st.binary(max_size=100))
def test_it_goes_on_from_what_came_before(before: bytes, data: bytes) -> None:
    assert extended(crc32c(before), as_array(data)) == crc32c(before + data)


@given(st.binary(min_size=8, max_size=8))
def test_without_the_instruction_it_is_slower_and_the_same(word: bytes) -> None:
    state = added_slowly(np.uint64(checksum.ALL_ONES), np.uint64(int.from_bytes(word, "little")))
    assert int(state) ^ checksum.ALL_ONES == crc32c(word)


@given(st.binary(max_size=60), st.integers(0, 5_000))
def test_two_pieces_are_joined_without_looking_at_them(first: bytes, size: int) -> None:
    second = NOISE[:size]
    joined = checksum.joined(crc32c(first), crc32c(second), size)
    assert joined == crc32c(first + second)


def test_a_piece_may_be_as_large_as_a_batch_can_be() -> None:
    state, size = 0x1234_5678, 2**31 - 1
    for power in range(31):  # that many zeros, a bit of the number at a time
        state = checksum.times(int(checksum.POWERS[power]), state)
    assert checksum.joined(0x1234_5678, 0, size) == state
