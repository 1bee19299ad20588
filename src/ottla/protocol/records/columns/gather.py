"""Record batches to numpy arrays: the part of decoding that Arrow and plain lists share.

Owns the arrays that the kernels fill, and what a corrupt batch in the middle of a buffer means: the
batches before it are returned first. Never copies a record itself.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ottla.protocol.records.columns.arrays import Number, Room, fresh
from ottla.protocol.records.columns.native import ByteArray, Int32s, Ints
from ottla.protocol.records.columns.read_kernels import (
    COUNT,
    INT64_MAX,
    INT64_MIN,
    REASONS,
    START,
    STOP,
    Bytewise,
    Sink,
    Span,
    list_headers,
    put,
    scan,
)
from ottla.protocol.records.columns.select import Aborted, Selection, Selector
from ottla.protocol.records.compression import Bytes
from ottla.protocol.records.header import CorruptBatch

MAX_BYTES: Final = 512 * 1024 * 1024
MAX_COLUMN_BYTES: Final = 2**31 - 1  # what Arrow's `binary` can hold
EVERYTHING: Final = Span(0, INT64_MAX, INT64_MIN, INT64_MAX)
NAMES: Final = ("offset", "timestamp", "timestamp_type", "leader_epoch", "key", "value", "headers")


class ReadRequest(NamedTuple):
    """The columns and rows that a reader wants of a buffer."""

    want: frozenset[str]
    span: Span = EVERYTHING
    aborted: Aborted = ()
    check_crc: bool = True
    max_bytes: int = MAX_BYTES


class Gathered(NamedTuple):
    """Rows as arrays. Those of unwanted columns are empty, the others may be longer than needed."""

    selection: Selection
    sink: Sink
    rows: int
    key_nulls: int
    value_nulls: int
    headers: int


class Headers(NamedTuple):
    """All headers of some rows; row i has those from `ends[i]` to `ends[i + 1]`."""

    ends: Int32s  # one more than there are rows
    keys: Bytewise
    values: Bytewise
    value_nulls: int


def gather(buffer: Bytes, request: ReadRequest, room: Room) -> Gathered:
    """The rows up to the end, the limit, or the first fault; CorruptBatch if that comes first."""
    selection = _select(buffer, request)
    sink, (fault, batch, position, *counts) = _scan(selection, request, room)
    if fault:
        selection = _select(buffer, request, max_batches=batch)
        if not selection.consumed:
            raise CorruptBatch(REASONS[fault], position)
        sink, (_, _, _, *counts) = _scan(selection, request, room)
    return Gathered(selection, sink, *counts)


def headers_of(gathered: Gathered) -> Headers:
    """The headers of the rows, if `headers` was wanted."""
    data, rows = gathered.selection.data, gathered.rows
    headers_at = gathered.sink.headers_at[:rows]
    ends = np.zeros(rows + 1, np.int32)
    keys_at, values_at = np.empty((2, gathered.headers, 2), np.int64)
    list_headers(data, headers_at, ends, keys_at, values_at)
    keys, _ = _put(data, keys_at)
    values, value_nulls = _put(data, values_at)
    return Headers(ends, keys, values, value_nulls)


def _put(data: ByteArray, spans: Ints) -> tuple[Bytewise, int]:
    size = int(spans[:, 1].sum(where=spans[:, 1] > 0))
    column = _bytewise("", len(spans), fresh, fresh("", size, np.uint8))
    return column, put(data, spans, column, 0)


def _select(buffer: Bytes, request: ReadRequest, max_batches: int | None = None) -> Selection:
    return Selector(buffer, request.span, request.aborted).run(
        check_crc=request.check_crc,
        max_bytes=min(request.max_bytes, MAX_COLUMN_BYTES),
        max_batches=max_batches,
    )


def _scan(selection: Selection, request: ReadRequest, room: Room) -> tuple[Sink, list[int]]:
    batches = selection.batches
    sink = _sink(batches, request.want, room)
    return sink, list(scan(selection.data, batches, request.span, sink))


def _sink(batches: Ints, want: frozenset[str], room: Room) -> Sink:
    """Arrays for every record of these batches; the kernel writes only checked records."""
    rows = int(batches[:, COUNT].sum())
    size = int((batches[:, STOP] - batches[:, START]).sum())

    def numbers(name: str, kind: type[Number]) -> npt.NDArray[Number]:
        return room(name, rows if name in want else 0, kind)

    def fields(name: str, room_for_data: Room) -> Bytewise:
        if name not in want:
            return _NOTHING
        return _bytewise(name, rows, room, room_for_data(f"{name}.data", size, np.uint8))

    return Sink(
        offset=numbers("offset", np.int64),
        timestamp=numbers("timestamp", np.int64),
        timestamp_type=numbers("timestamp_type", np.int8),
        leader_epoch=numbers("leader_epoch", np.int32),
        # If keys are short or missing, most of their array is never touched: new memory then costs
        # nothing, reused memory would be as large.
        key=fields("key", fresh),
        value=fields("value", room),
        headers_at=numbers("headers", np.int64),
    )


def _bytewise(name: str, rows: int, room: Room, data: ByteArray) -> Bytewise:
    ends, nulls = room(f"{name}.ends", rows + 1, np.int32), room(name, (rows + 7) // 8, np.uint8)
    ends[0] = 0
    nulls[:] = 0
    return Bytewise(ends, data, nulls)


_NOTHING: Final = Bytewise(np.empty(0, np.int32), np.empty(0, np.uint8), np.empty(0, np.uint8))
