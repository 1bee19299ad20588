"""Arrow arrays and Python lists in the form that the write kernels take.

Owns every check of the caller's data: types, lengths, offsets inside their data. Copies nothing
that already has the layout of the kernels; all arrays are read-only, so that nothing changes what a
kernel reads. Lists work without pyarrow.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ottla.model.errors import UserError
from ottla.protocol.records.columns.arrays import Number
from ottla.protocol.records.columns.native import Ints, Numbers
from ottla.protocol.records.columns.write_kernels import Column, Place, Source
from ottla.protocol.records.header import NO_TIMESTAMP

if TYPE_CHECKING:
    import pyarrow as pa

    from ottla.protocol.records.record import Headers

MAX_TIMESTAMP: Final = 2**62  # differences must stay in 64 bits

ArrowValues: TypeAlias = "pa.Array | pa.ChunkedArray"
Values: TypeAlias = "Sequence[bytes | None] | ArrowValues | None"
HeaderLists: TypeAlias = "Sequence[Headers] | ArrowValues | None"
Timestamps: TypeAlias = "Sequence[int] | Ints | ArrowValues | None"


def read_only(numbers: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """An array as the kernels take it: contiguous and read-only."""
    view = np.ascontiguousarray(numbers).view()
    view.flags.writeable = False
    return view


NO_INTS: Final = read_only(np.empty(0, np.int64))
NO_BYTES: Final = read_only(np.empty(0, np.uint8))
NO_NULLS: Final = read_only(np.empty(0, np.bool_))
ALL_NULL: Final = Column(NO_INTS, NO_BYTES, NO_NULLS)
EMPTY: Final = Column(read_only(np.zeros(1, np.int64)), NO_BYTES, NO_NULLS)


class Rows(NamedTuple):
    """Rows to be written. Row i has the headers `header_ends[i] : header_ends[i + 1]`."""

    timestamps: Ints
    keys: Column
    values: Column
    header_ends: Ints  # none at all when no row has headers
    header_keys: Column
    header_values: Column
    order: Ints  # the rows in the order they are written; none at all for their own order


def source_of(rows: Rows) -> Source:
    """The addresses of all columns, for the write kernel; valid while `rows` is referenced."""
    return Source(
        times=start_of(rows.timestamps),
        time_step=rows.timestamps.strides[0],
        keys=place_of(rows.keys),
        values=place_of(rows.values),
        header_ends=start_of(rows.header_ends),
        header_keys=place_of(rows.header_keys),
        header_values=place_of(rows.header_values),
        order=start_of(rows.order),
    )


def place_of(column: Column) -> Place:
    """The addresses of a column; valid while the column is referenced."""
    ends, data, nulls = column
    return Place(start_of(ends), ends.itemsize, start_of(data), data.size, start_of(nulls))


def start_of(array: npt.NDArray[Number]) -> int:
    """The address of an array, 0 of an empty one."""
    return int(array.__array_interface__["data"][0]) if array.size else 0


def rows_of(
    keys: Values,
    values: Values,
    headers: HeaderLists = None,
    timestamps: Timestamps = None,
    *,
    now_ms: int = NO_TIMESTAMP,
) -> Rows:
    """The input of `write`, the rows in their own order.

    Each column is a list or an Arrow array; None for keys, values or headers means that no row has
    any; rows without a timestamp have `now_ms`.
    """
    columns = [column for column in (keys, values, headers, timestamps) if column is not None]
    count = len(columns[0]) if columns else 0
    for column in columns:
        if len(column) != count:
            lengths = ", ".join(str(len(column)) for column in columns)
            raise UserError(f"columns have different lengths: {lengths}")
    header_ends, header_keys, header_values = _headers_of(headers)
    same = _all_at(now_ms, count)
    return Rows(
        timestamps=same if timestamps is None else timestamps_of(timestamps, count, now_ms),
        keys=column_of(keys, "key"),
        values=column_of(values, "value"),
        header_ends=header_ends,
        header_keys=header_keys,
        header_values=header_values,
        order=NO_INTS,
    )


def column_of(values: Values, name: str) -> Column:
    """The column of a list of `bytes | None`, an Arrow (chunked) array, or None for all nulls."""
    if values is None:
        return ALL_NULL
    return _of_list(values) if isinstance(values, list | tuple) else _of_arrow(values, name)


def _of_list(values: Sequence[bytes | None]) -> Column:
    nulls = NO_NULLS
    if None in values:
        nulls = np.fromiter((value is None for value in values), np.bool_, len(values))
        if nulls.all():
            return ALL_NULL
        values = [value or b"" for value in values]
    lengths = np.fromiter(map(len, values), np.int64, len(values))  # type: ignore[arg-type]
    data = np.frombuffer(b"".join(values), np.uint8)  # type: ignore[arg-type]
    return Column(_ends(lengths), data, read_only(nulls))


def _of_arrow(values: ArrowValues, name: str) -> Column:
    import pyarrow as pa

    values = _one_array(values, name)
    if len(values) == 0:
        return EMPTY
    if pa.types.is_null(values.type):
        return ALL_NULL
    large = pa.types.is_large_binary(values.type) or pa.types.is_large_string(values.type)
    _, offsets, data = values.buffers()
    ends: Numbers = np.frombuffer(offsets, np.int64 if large else np.int32)
    ends = ends[values.offset : values.offset + len(values) + 1]
    content = NO_BYTES if data is None else np.frombuffer(data, np.uint8)
    if ends[0] < 0 or ends[-1] > len(content):
        raise UserError(f"{name}: invalid Arrow array: its offsets exceed its data")
    nulls = NO_NULLS
    if values.null_count:
        nulls = values.is_null().to_numpy(zero_copy_only=False)
    return Column(read_only(ends), read_only(content), read_only(nulls))


def _one_array(values: ArrowValues, name: str) -> pa.Array:
    """The values as one array of a layout that has offsets and data."""
    import pyarrow as pa

    kind = getattr(values, "type", None)
    if kind is None:
        raise UserError(f"{name}: expected an Arrow array or a list, got {type(values).__name__}")
    if pa.types.is_dictionary(kind):
        values, kind = values.cast(kind.value_type), kind.value_type
    chunked = isinstance(values, pa.ChunkedArray)
    if kind in _laid_out() and not (chunked and values.num_chunks > 1):
        pass
    elif pa.types.is_null(kind):
        return pa.nulls(len(values))
    elif kind in _laid_out() or _is_other_bytes(kind):
        values = values.cast(pa.large_binary())  # chunks together may be more than 2 GiB
    else:
        raise UserError(f"{name}: expected binary or string values, got {kind}")
    if chunked:
        return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()
    return values


def _laid_out() -> tuple[pa.DataType, ...]:
    import pyarrow as pa

    return pa.binary(), pa.string(), pa.large_binary(), pa.large_string()


def _is_other_bytes(kind: pa.DataType) -> bool:
    import pyarrow as pa

    tests = (pa.types.is_binary_view, pa.types.is_string_view, pa.types.is_fixed_size_binary)
    return any(test(kind) for test in tests)


def _all_at(now_ms: int, count: int) -> Ints:
    """One timestamp for all rows, without an element for each."""
    return np.ndarray(count, np.int64, np.int64(now_ms).tobytes(), strides=(0,))


def timestamps_of(timestamps: Timestamps, count: int, now_ms: int) -> Ints:
    """Milliseconds as the kernels take them, of numbers in any form or of an Arrow array."""
    if timestamps is None:
        return read_only(np.full(count, now_ms, np.int64))
    if isinstance(timestamps, list | tuple | array | np.ndarray):
        numbers = np.asarray(timestamps, np.int64)
    else:
        numbers = _arrow_times(timestamps, now_ms)
    if count and not NO_TIMESTAMP <= numbers.min() <= numbers.max() <= MAX_TIMESTAMP:
        raise UserError(
            "timestamp: expected milliseconds since 1970, from 0 on, got "
            f"{numbers.min()} to {numbers.max()}"
        )
    return read_only(numbers)


def _arrow_times(timestamps: ArrowValues, now_ms: int) -> Ints:
    import pyarrow as pa

    kind = timestamps.type
    if pa.types.is_timestamp(kind):
        timestamps = timestamps.cast(pa.timestamp("ms", kind.tz), safe=False)
    elif not pa.types.is_integer(kind):
        raise UserError(f"timestamp: expected timestamps or milliseconds, got {kind}")
    times: Ints = timestamps.cast(pa.int64()).fill_null(now_ms).to_numpy()
    return times


def _headers_of(headers: HeaderLists) -> tuple[Ints, Column, Column]:
    """The end of each row's headers, then the keys and the values of all headers."""
    if headers is None or len(headers) == 0:
        return NO_INTS, EMPTY, EMPTY
    if isinstance(headers, list | tuple):
        return _headers_of_list(headers)
    return _headers_of_arrow(headers)


def _headers_of_list(headers: Sequence[Headers]) -> tuple[Ints, Column, Column]:
    if not any(headers):
        return NO_INTS, EMPTY, EMPTY
    counts = np.fromiter(map(len, headers), np.int64, len(headers))
    every = list(chain.from_iterable(headers))
    keys = [key.encode("utf-8", "surrogateescape") for key, _ in every]
    return _ends(counts), _of_list(keys), _of_list([value for _, value in every])


def _headers_of_arrow(headers: ArrowValues) -> tuple[Ints, Column, Column]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_map(headers.type):
        key, item = headers.type.key_type, headers.type.item_type
        headers = headers.cast(pa.list_(pa.struct([("key", key), ("value", item)])))
    kind = getattr(headers.type, "value_type", None)
    if kind is None or not pa.types.is_struct(kind) or {f.name for f in kind} != {"key", "value"}:
        raise UserError(
            f"headers: expected list<struct<key: string, value: binary>>, got {headers.type}"
        )
    counts = pc.list_value_length(headers).fill_null(0).to_numpy()
    every = pc.list_flatten(headers)
    keys = column_of(pc.struct_field(every, "key"), "headers")
    if keys.nulls.size or keys is ALL_NULL:
        raise UserError("headers: expected a key for each header, got null")
    return _ends(counts), keys, column_of(pc.struct_field(every, "value"), "headers")


def _ends(counts: Ints) -> Ints:
    ends = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=ends[1:])
    return read_only(ends)
