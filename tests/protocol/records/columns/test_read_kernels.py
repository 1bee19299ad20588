"""The kernels' integers are those of plain Python, their faults have names."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ottla.protocol.records.columns import read_kernels
from ottla.protocol.records.columns.native import as_array, native
from ottla.protocol.records.header import CorruptBatch
from ottla.protocol.records.record import decode_varint, encode_varint


@native
def varint(data: np.ndarray, at: int, stop: int, bits: int) -> tuple[int, int, int]:
    start = data.ctypes.data
    value, end, fault = read_kernels.varint(start + at, start + stop, bits)
    return value, end - start, fault


@given(st.integers(-(2**63), 2**63 - 1), st.binary(max_size=3))
def test_an_integer_is_read_as_it_was_written(value: int, before: bytes) -> None:
    data = before + encode_varint(value) + b"??"
    found = varint(as_array(data), len(before), len(data), 64)
    assert found == (value, len(data) - 2, read_kernels.OK)


@given(st.binary(max_size=12), st.sampled_from([32, 64]))
def test_noise_is_read_as_plain_python_reads_it(data: bytes, bits: int) -> None:
    value, at, fault = varint(as_array(data), 0, len(data), bits)
    try:
        expected = decode_varint(data, 0, bits)
    except CorruptBatch:
        assert fault
        return
    assert (value, at) == expected
    assert not fault


@given(st.binary(min_size=1, max_size=12))
def test_nothing_behind_the_stop_is_read(data: bytes) -> None:
    for stop in range(len(data)):
        cut = varint(as_array(data), 0, stop, 64)
        assert cut == varint(as_array(data[:stop]), 0, stop, 64)


def test_every_fault_has_its_reason() -> None:
    assert len(read_kernels.REASONS) == read_kernels.WRONG_CHECKSUM + 1
    assert all(read_kernels.REASONS[1:])
