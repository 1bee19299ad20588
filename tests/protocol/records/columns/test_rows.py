"""Whatever layout bytes come in, the kernels see the same rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.errors import UserError
from ottla.protocol.records.columns.rows import column_of, rows_of
from ottla.protocol.records.columns.write_kernels import Column

PAIRS = [("key", pa.string()), ("value", pa.binary())]


def cells(column: Column, count: int) -> list[bytes | None]:
    if not column.ends.size:
        return [None] * count
    assert column.ends.size == count + 1
    return [
        None
        if column.nulls.size and column.nulls[row]
        else column.data[column.ends[row] : column.ends[row + 1]].tobytes()
        for row in range(count)
    ]


def dictionary(array: Any) -> Any:
    return array.dictionary_encode()


def chunks(array: Any) -> Any:
    third = len(array) // 3
    return pa.chunked_array([array[:third], array[third:], array[:0]], type=array.type)


FORMS: dict[str, Any] = {
    "binary": lambda a: a,
    "string": lambda a: a.cast(pa.string()),
    "large_binary": lambda a: a.cast(pa.large_binary()),
    "large_string": lambda a: a.cast(pa.large_string()),
    "binary_view": lambda a: a.cast(pa.binary_view()),
    "string_view": lambda a: a.cast(pa.string()).cast(pa.string_view()),
    "dictionary": dictionary,
    "chunks": chunks,
    "one chunk": lambda a: pa.chunked_array([a]),
    "no chunk": lambda a: pa.chunked_array([], a.type) if len(a) == 0 else a,
    "chunks of views": lambda a: chunks(a.cast(pa.binary_view())),
    "chunks of dictionaries": lambda a: chunks(a.dictionary_encode()),
    "list": lambda a: a.to_pylist(),
    "tuple": lambda a: tuple(a.to_pylist()),
}


@pytest.mark.parametrize("form", FORMS)
@given(st.lists(st.none() | st.text(max_size=20).map(str.encode), max_size=12), st.data())
def test_every_layout_is_the_same_rows(
    form: str, values: list[bytes | None], data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(values)))
    end = data.draw(st.integers(start, len(values)))
    column = column_of(FORMS[form](pa.array(values, pa.binary())[start:end]), "value")
    assert cells(column, end - start) == values[start:end]
    for array in column:
        assert not array.flags.writeable


def test_fixed_sizes_and_nothing_but_nulls_are_taken_too() -> None:
    assert cells(column_of(pa.array([b"ab", None], pa.binary(2)), "key"), 2) == [b"ab", None]
    assert cells(column_of(pa.nulls(2), "key"), 2) == [None, None]
    assert cells(column_of(None, "key"), 2) == [None, None]
    assert cells(column_of([None, None], "key"), 2) == [None, None]


@pytest.mark.parametrize("values", [pa.array([1]), pa.array([[b"a"]]), np.zeros(2), "text"])
def test_values_that_are_not_bytes_are_refused_by_the_column_name(values: Any) -> None:
    with pytest.raises(UserError, match=r"^key: expected"):
        column_of(values, "key")


def test_an_arrow_array_that_points_outside_its_data_is_refused() -> None:
    offsets = np.array([0, 2, 3], np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"abc")]
    bad = pa.Array.from_buffers(pa.binary(), 2, buffers)
    offsets[2] = 99  # as a damaged file may have it, which nobody checks at opening
    with pytest.raises(UserError, match="offsets"):
        column_of(bad, "value")


@pytest.mark.parametrize(
    "given_times",
    [
        [5, 6],
        pa.array([5, 6]),
        pa.array([5, 6], pa.timestamp("ms")),
        pa.array([5_000, 6_999], pa.timestamp("us", "UTC")),
        pa.chunked_array([pa.array([5_000_000, 6_000_000], pa.timestamp("ns"))]),
    ],
)
def test_timestamps_are_milliseconds_whatever_they_came_as(given_times: Any) -> None:
    assert rows_of(None, [b"", b""], None, given_times).timestamps.tolist() == [5, 6]


def test_rows_without_a_timestamp_are_now() -> None:
    some = pa.array([None, 6], pa.timestamp("ms"))
    assert rows_of(None, [b"", b""], None, some, now_ms=99).timestamps.tolist() == [99, 6]
    assert rows_of(None, [b"", b""], now_ms=99).timestamps.tolist() == [99, 99]


@pytest.mark.parametrize("times", [[-2], [2**63 - 1], pa.array([0.5]), pa.array(["now"])])
def test_impossible_timestamps_are_refused(times: Any) -> None:
    with pytest.raises(UserError, match=r"^timestamp: expected"):
        rows_of(None, [b""], None, times)


@pytest.mark.parametrize(
    "form",
    [
        lambda rows: [[tuple(pair.values()) for pair in row or ()] for row in rows],
        lambda rows: pa.array(rows, pa.list_(pa.struct(PAIRS))),
        lambda rows: pa.array(rows, pa.large_list(pa.struct(PAIRS))),
        lambda rows: chunks(pa.array(rows, pa.list_(pa.struct(PAIRS)))),
        lambda rows: pa.array([[], *rows], pa.list_(pa.struct(PAIRS)))[1:],
        lambda rows: pa.array(
            [row and [tuple(pair.values()) for pair in row] for row in rows],
            pa.map_(pa.string(), pa.binary()),
        ),
    ],
)
def test_headers_are_lists_of_pairs_in_any_layout(form: Any) -> None:
    rows = [
        [{"key": "a", "value": b"1"}, {"key": "é", "value": None}],
        None,
        [],
        [{"key": "", "value": b""}],
    ]
    found = rows_of(None, [b""] * 4, form(rows))
    assert found.header_ends.tolist() == [0, 2, 2, 2, 3]
    assert cells(found.header_keys, 3) == [b"a", "é".encode(), b""]
    assert cells(found.header_values, 3) == [b"1", None, b""]


@pytest.mark.parametrize(
    "headers",
    [
        pa.array([b"x"]),
        pa.array([[1]]),
        pa.array([[{"name": "a", "value": b""}]]),
        pa.array([[{"key": None, "value": b""}]], pa.list_(pa.struct(PAIRS))),
    ],
)
def test_headers_of_another_shape_are_refused(headers: Any) -> None:
    with pytest.raises(UserError, match=r"^headers: expected"):
        rows_of(None, [b""], headers)


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(UserError, match="different lengths"):
        rows_of([b"a"], [b"b", b"c"])
