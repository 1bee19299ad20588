"""Kernels that write: integers as plain Python writes them, grouping that keeps order."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ottla.protocol.records.columns import write_kernels
from ottla.protocol.records.columns.native import native
from ottla.protocol.records.record import encode_varint


@native
def put(out: np.ndarray, value: int) -> tuple[int, int]:
    # As it comes an address is unsigned, and differences would be floats.
    start: Any = np.int64(out.ctypes.data)
    return write_kernels.put_varint(start, value) - start, write_kernels.varint_size(value)


@given(st.integers(-(2**63), 2**63 - 1))
def test_an_integer_takes_the_bytes_that_were_counted(value: int) -> None:
    out = np.zeros(10, np.uint8)
    end, size = put(out, value)
    assert out[:end].tobytes() == encode_varint(value)
    assert size == end


@given(st.lists(st.integers(0, 9), max_size=50))
def test_grouping_is_a_stable_sort(partitions: list[int]) -> None:
    numbers = np.array(partitions, np.int32)
    numbers.flags.writeable = False
    ends, order = np.zeros(11, np.int64), np.empty(len(partitions), np.int64)
    write_kernels.group(numbers, ends, order)
    assert order.tolist() == sorted(range(len(partitions)), key=partitions.__getitem__)
    for partition in range(10):
        rows = order[ends[partition] : ends[partition + 1]]
        assert all(partitions[row] == partition for row in rows)
