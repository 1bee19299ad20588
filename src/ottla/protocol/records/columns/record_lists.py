"""Record batches to Python lists, one per field, for callers that need records one by one.

Owns how a column of bytes becomes a list: slices of one `bytes`, a tenth of a microsecond each.
Never creates an object per record: the caller does, with `zip` of the lists.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from ottla.protocol.records.columns.arrays import Scratch
from ottla.protocol.records.columns.gather import (
    MAX_BYTES,
    NAMES,
    Gathered,
    ReadRequest,
    gather,
    headers_of,
)
from ottla.protocol.records.columns.native import Int32s
from ottla.protocol.records.columns.read_kernels import INT64_MAX, INT64_MIN, Bytewise, Span
from ottla.protocol.records.columns.select import Aborted
from ottla.protocol.records.compression import Bytes
from ottla.protocol.records.record import Headers

WANT: Final = frozenset(NAMES)


class Records(NamedTuple):
    """The records of a buffer by field, and the position of the reader after it."""

    offsets: list[int]
    timestamps: list[int]
    timestamp_types: list[int]
    leader_epochs: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]
    headers: list[Headers]
    next_offset: int
    consumed: int
    leader_epoch: int
    aborted: Aborted
    more: bool


_scratch: Final = Scratch()


def decode_records(
    buffer: Bytes,
    *,
    start_offset: int = 0,
    end_offset: int = INT64_MAX,
    start_time: int = INT64_MIN,
    end_time: int = INT64_MAX,
    aborted: Iterable[tuple[int, int]] = (),
    check_crc: bool = True,
    max_bytes: int = MAX_BYTES,
) -> Records:
    """As `decode.decode_batches`, as lists of every field."""
    span = Span(start_offset, end_offset, start_time, end_time)
    gathered = gather(
        buffer, ReadRequest(WANT, span, tuple(aborted), check_crc, max_bytes), _scratch.room
    )
    sink, rows, selection = gathered.sink, gathered.rows, gathered.selection
    return Records(
        sink.offset[:rows].tolist(),
        sink.timestamp[:rows].tolist(),
        sink.timestamp_type[:rows].tolist(),
        sink.leader_epoch[:rows].tolist(),
        _fields(sink.key, rows, gathered.key_nulls),
        _fields(sink.value, rows, gathered.value_nulls),
        _headers(gathered),
        selection.next_offset,
        selection.consumed,
        selection.leader_epoch,
        selection.aborted,
        selection.more,
    )


def _fields(column: Bytewise, rows: int, nulls: int) -> list[bytes | None]:
    if nulls == rows:
        return [None] * rows
    ends = column.ends[: rows + 1]
    used = column.data[: ends[-1]]
    fields: list[bytes | None]
    if width := _width(ends):
        fields = used.view(f"V{width}").tolist()  # half the cost of slices
    else:
        data = used.tobytes()
        fields = [data[start:end] for start, end in pairwise(ends.tolist())]
    if nulls:
        for row in _places(column, rows):
            fields[row] = None
    return fields


def _width(ends: Int32s) -> int:
    """The number of bytes that all fields have; 0 if they differ, or have none."""
    width = int(ends[1])
    return width if (np.diff(ends) == width).all() else 0


def _places(column: Bytewise, rows: int) -> list[int]:
    bits = np.unpackbits(column.nulls, count=rows, bitorder="little")
    return np.flatnonzero(bits).tolist()


def _headers(gathered: Gathered) -> list[Headers]:
    if not gathered.headers:
        return [()] * gathered.rows
    headers = headers_of(gathered)
    total = gathered.headers
    keys = [
        (key or b"").decode("utf-8", "surrogateescape") for key in _fields(headers.keys, total, 0)
    ]
    every = list(zip(keys, _fields(headers.values, total, headers.value_nulls), strict=True))
    return [tuple(every[start:end]) for start, end in pairwise(headers.ends.tolist())]
