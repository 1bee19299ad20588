"""Record batches to Arrow columns: one copy of each key and value, no object per record.

Owns the schema of the result. `select` decides which batches are read, `read_kernels` reads the
records. A column of bytes is `binary`, which has at most 2 GiB: a buffer with more than `max_bytes`
of (decompressed) records takes several calls, each starting at `consumed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from ottla.model.errors import UserError
from ottla.protocol.records.columns.arrays import pooled_array
from ottla.protocol.records.columns.gather import (
    MAX_BYTES,
    Gathered,
    ReadRequest,
    gather,
    headers_of,
)
from ottla.protocol.records.columns.read_kernels import INT64_MAX, INT64_MIN, Bytewise, Span
from ottla.protocol.records.columns.select import Aborted
from ottla.protocol.records.compression import Bytes

HEADERS: Final = pa.list_(
    pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])
)
TYPES: Final[dict[str, pa.DataType]] = {
    "offset": pa.int64(),
    "timestamp": pa.timestamp("ms"),
    "timestamp_type": pa.int8(),  # 0 the producer's, 1 that of the append, -1 none
    "leader_epoch": pa.int32(),
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": HEADERS,
}
COLUMNS: Final = ("offset", "timestamp", "timestamp_type", "key", "value")


class Decoded(NamedTuple):
    """The rows of a buffer, and the position of the reader after it."""

    batch: pa.RecordBatch
    rows: int  # of the batch, which without columns could not tell
    next_offset: int  # where to fetch next
    consumed: int  # bytes of the buffer; a batch cut at its end is not among them
    leader_epoch: int  # of the last batch, -1 where there is none
    aborted: Aborted  # for the next call on the same buffer
    more: bool  # that call, from `consumed` on, has batches to decode or a fault to raise


def decode_batches(  # noqa: PLR0913 - what a reader may ask for, by name
    buffer: Bytes,
    *,
    want: Sequence[str] = COLUMNS,
    start_offset: int = 0,
    end_offset: int = INT64_MAX,
    start_time: int = INT64_MIN,
    end_time: int = INT64_MAX,
    aborted: Iterable[tuple[int, int]] = (),
    check_crc: bool = True,
    max_bytes: int = MAX_BYTES,
) -> Decoded:
    """The records of these batches as the wanted columns, in that order.

    Control records and those of transactions named in `aborted` (producer id, first offset) are
    omitted, and so are those outside the half-open ranges of offsets and timestamps. The batches
    before a corrupt one are returned first; CorruptBatch if the first one is corrupt.
    """
    columns = schema(want)
    span = Span(start_offset, end_offset, start_time, end_time)
    request = ReadRequest(frozenset(want), span, tuple(aborted), check_crc, max_bytes)
    gathered = gather(buffer, request, pooled_array)
    selection = gathered.selection
    batch = pa.RecordBatch.from_arrays([_ARRAYS[name](gathered) for name in want], schema=columns)
    return Decoded(
        batch,
        gathered.rows,
        selection.next_offset,
        selection.consumed,
        selection.leader_epoch,
        selection.aborted,
        selection.more,
    )


def schema(want: Sequence[str] = COLUMNS) -> pa.Schema:
    """The schema of the result of `decode_batches` for these columns."""
    for name in want:
        if name not in TYPES:
            raise UserError(f"unknown column {name!r}: records have {', '.join(TYPES)}")
    return pa.schema([(name, TYPES[name]) for name in want])


def _numbers(name: str) -> Callable[[Gathered], pa.Array]:
    def make(gathered: Gathered) -> pa.Array:
        values = getattr(gathered.sink, name)[: gathered.rows]
        return pa.Array.from_buffers(TYPES[name], gathered.rows, [None, pa.py_buffer(values)])

    return make


def _keys(gathered: Gathered) -> pa.Array:
    return _bytes_array(gathered.sink.key, gathered.rows, gathered.key_nulls)


def _values(gathered: Gathered) -> pa.Array:
    return _bytes_array(gathered.sink.value, gathered.rows, gathered.value_nulls)


def _headers(gathered: Gathered) -> pa.Array:
    headers = headers_of(gathered)
    total = int(headers.ends[-1])
    keys = _strings(_bytes_array(headers.keys, total, 0))
    values = _bytes_array(headers.values, total, headers.value_nulls)
    items = pa.StructArray.from_arrays([keys, values], fields=list(HEADERS.value_type))
    # Not `pa.array`: it imports pandas, to ask whether it is given one of its objects.
    ends = pa.Array.from_buffers(pa.int32(), len(headers.ends), [None, pa.py_buffer(headers.ends)])
    return pa.ListArray.from_arrays(ends, items, type=HEADERS)


def _strings(keys: pa.Array) -> pa.Array:
    """The keys as text; bytes that are not UTF-8 are replaced, as Kafka's own clients do."""
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([key.decode("utf-8", "replace") for key in keys.to_pylist()], pa.string())


def _bytes_array(column: Bytewise, rows: int, nulls: int) -> pa.Array:
    valid = pa.py_buffer(np.invert(column.nulls)) if nulls else None
    data = column.data[: column.ends[rows]]
    buffers = [valid, pa.py_buffer(column.ends[: rows + 1]), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), rows, buffers, nulls)


_ARRAYS: Final[dict[str, Callable[[Gathered], pa.Array]]] = {
    "offset": _numbers("offset"),
    "timestamp": _numbers("timestamp"),
    "timestamp_type": _numbers("timestamp_type"),
    "leader_epoch": _numbers("leader_epoch"),
    "key": _keys,
    "value": _values,
    "headers": _headers,
}
