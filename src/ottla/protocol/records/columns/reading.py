"""The kernels that read record batches. Hot: benchmarks/columns.py.

Owns the walk over records in every native form: checking them (`check`), gathering them into
columns (`scan`, `put`), finding their headers (`list_headers`). Compiled code has no bounds checks:
every read is guarded by `stop`, the end of the section it is in, which never lies outside the
buffer, and every write by counts and sizes that the section's size bounds.

Passing arrays to a function costs counting references: what runs per record takes arrays that the
compiler can see through (`inlined`), and columns are filled many rows at a time.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from ottla.protocol.records.columns.native import copy, inlined, native

INT64_MAX: Final = 2**63 - 1
INT64_MIN: Final = -(2**63)

REASONS: Final = (
    "",
    "record runs past the end",
    "variable-length integer is too long",
    "variable-length integer is too large",
    "record has an impossible length",
    "field of a record has an impossible length",
    "record has an impossible number of headers",
    "record header has no key",
    "record length does not match its contents",
    "record has an impossible offset delta",
    "record has a timestamp out of range",
    "bytes after the last record",
)
(
    OK, PAST_END, VARINT_LONG, VARINT_LARGE, RECORD_LENGTH, FIELD_LENGTH, HEADER_COUNT, HEADER_KEY,
    MISMATCH, OFFSET_DELTA, TIMESTAMP, TRAILING,
) = range(12)  # fmt: skip

# The columns of the table of batches that `scan` reads, all int64.
(
    START, STOP, COUNT, BASE_OFFSET, LAST_DELTA, BASE_TIME, APPEND_TIME, TIME_TYPE, EPOCH
) = range(9)  # fmt: skip
# The columns of the table of rows, all int64; key and value are a start and a size.
OFFSET, TIME, KEY, _, VALUE, _, HEADERS_AT, ROW_NUMBERS = range(8)
LEAST_RECORD_BYTES: Final = 7  # length, attributes, two deltas, two sizes, number of headers


class Bytewise(NamedTuple):
    """A column of bytes under construction, as Arrow lays it out; all empty when not wanted."""

    ends: Any  # int32, one more than there are rows
    data: Any  # uint8
    nulls: Any  # uint8, a bit per row, all zero at first


class Sink(NamedTuple):
    """Where `scan` puts the rows; an array of no elements is a column that is not wanted."""

    offset: Any  # int64
    timestamp: Any  # int64
    timestamp_type: Any  # int8
    leader_epoch: Any  # int32
    key: Bytewise
    value: Bytewise
    headers_at: Any  # int64: where in the data each row's headers begin


class Span(NamedTuple):
    """The rows wanted: half-open ranges of offsets and of timestamps."""

    start_offset: int
    end_offset: int
    start_time: int
    end_time: int


@inlined
def varint(data: Any, at: int, stop: int, bits: int) -> tuple[int, int, int]:
    """Zigzag value, the position after it, and what is wrong with it."""
    value: Any = np.int64(0)
    shift: Any = np.int64(0)
    while at < stop:
        byte = np.int64(data[at])
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if shift + 7 > bits and byte >> (bits - shift):
                return 0, at, VARINT_LARGE
            return ((value >> 1) & INT64_MAX) ^ -(value & 1), at, OK
        shift += 7
        if shift >= bits:
            return 0, at, VARINT_LONG
    return 0, at, PAST_END


@inlined
def field(data: Any, at: int, end: int, stop: int) -> tuple[int, int, int]:
    """Where a length-prefixed field starts, its length (-1 for null), and the fault."""
    length, at, fault = varint(data, at, stop, 32)
    if not fault and (length < -1 or at + length > end):
        fault = FIELD_LENGTH
    return at, length, fault


@native
def skip_headers(data: Any, at: int, end: int, stop: int) -> tuple[int, int, int]:
    """How many headers a record has, the position after them, and the fault."""
    count, at, fault = varint(data, at, stop, 32)
    if not fault and (count < 0 or count > (end - at) // 2):
        fault = HEADER_COUNT
    if fault:
        return 0, at, fault
    for _ in range(count):
        at, length, fault = field(data, at, end, stop)
        if not fault and length < 0:
            fault = HEADER_KEY
        if fault:
            return 0, at, fault
        at, length, fault = field(data, at + length, end, stop)
        if fault:
            return 0, at, fault
        at += max(length, 0)
    return count, at, OK


@inlined
def overflows(base: int, delta: int) -> bool:
    """Whether the sum leaves 64 bits; asked before, as the compiler assumes it cannot after."""
    return base > INT64_MAX - delta if delta > 0 else base < INT64_MIN - delta


@inlined
def record(data: Any, at: int, stop: int) -> tuple[int, ...]:
    """One record: both deltas, then key, value and headers as (start, size), the end, the fault.

    The size of the headers is their number.
    """
    length, at, fault = varint(data, at, stop, 32)
    if not fault and (length < 0 or at + length > stop):
        fault = RECORD_LENGTH
    if fault:
        return 0, 0, 0, 0, 0, 0, 0, 0, at, fault
    end = at + length
    time_delta, at, fault = varint(data, at + 1, stop, 64)  # the attributes byte means nothing
    if fault:
        return 0, 0, 0, 0, 0, 0, 0, 0, at, fault
    delta, at, fault = varint(data, at, stop, 32)
    if fault:
        return 0, 0, 0, 0, 0, 0, 0, 0, at, fault
    key_at, key_size, fault = field(data, at, end, stop)
    if fault:
        return 0, 0, 0, 0, 0, 0, 0, 0, at, fault
    value_at, value_size, fault = field(data, key_at + max(key_size, 0), end, stop)
    if fault:
        return 0, 0, 0, 0, 0, 0, 0, 0, at, fault
    headers_at = value_at + max(value_size, 0)
    headers: Any = np.int64(0)
    if headers_at < stop and data[headers_at] == 0:
        at = headers_at + 1
    else:
        headers, at, fault = skip_headers(data, headers_at, end, stop)
    if not fault and at != end:
        fault = MISMATCH
    return time_delta, delta, key_at, key_size, value_at, value_size, headers_at, headers, at, fault


@native
def check(
    data: Any, count: int, base_timestamp: int, last_offset_delta: int, dense: bool
) -> tuple[int, int, int, int, int, int]:
    """The first fault and its position, then the four numbers of a `record.Summary`."""
    at, last_delta, high_delta, null_key = 0, -1, -1, -1
    low, high = INT64_MAX, INT64_MIN
    stop = data.size
    for index in range(count):
        start = at
        time_delta, delta, _, key_size, _, _, _, _, at, fault = record(data, at, stop)
        if not fault and (
            delta <= last_delta or delta > last_offset_delta or (dense and delta != index)
        ):
            fault = OFFSET_DELTA
        if not fault and overflows(base_timestamp, time_delta):
            fault = TIMESTAMP
        if fault:
            return fault, start, 0, 0, 0, 0
        timestamp = base_timestamp + time_delta
        last_delta = delta
        low = min(low, timestamp)
        if timestamp > high:
            high, high_delta = timestamp, delta
        if key_size < 0 and null_key < 0:
            null_key = index
    return (OK if at == stop else TRAILING), at, low, high, high_delta, null_key


@inlined
def within(span: Span, offset: int, timestamp: int) -> bool:
    return (
        span.start_offset <= offset < span.end_offset
        and span.start_time <= timestamp < span.end_time
    )


@native
def scan_rows(data: Any, numbers: Any, span: Span, table: Any, place: Any) -> tuple[int, int, int]:
    """Where the next wanted records of a batch lie, as many as the table holds.

    Gives the fault, the rows, and how many headers they have. `place` is where in the batch the
    walk is: the position, the last offset delta, and the records left.
    """
    at, last_delta, left = place[0], place[1], place[2]
    stop, delta_limit, base_offset = numbers[STOP], numbers[LAST_DELTA], numbers[BASE_OFFSET]
    base_time, append_time = numbers[BASE_TIME], numbers[APPEND_TIME]
    appended = numbers[TIME_TYPE] == 1
    row, headers = 0, 0
    while left > 0 and row < table.shape[0]:
        (
            time_delta, delta, key_at, key_size, value_at, value_size, headers_at, count, end, fault
        ) = record(data, at, stop)  # fmt: skip
        if not fault and (delta <= last_delta or delta > delta_limit):
            fault = OFFSET_DELTA
        if not fault and overflows(base_time, time_delta):
            fault = TIMESTAMP
        if fault:
            place[0] = at
            return fault, row, headers
        at, last_delta, left = end, delta, left - 1
        offset = base_offset + delta
        timestamp = append_time if appended else base_time + time_delta
        if within(span, offset, timestamp):
            table[row, OFFSET] = offset
            table[row, TIME] = timestamp
            table[row, KEY] = key_at
            table[row, KEY + 1] = key_size
            table[row, VALUE] = value_at
            table[row, VALUE + 1] = value_size
            table[row, HEADERS_AT] = headers_at
            headers += count
            row += 1
    place[0], place[1], place[2] = at, last_delta, left
    return OK, row, headers


@native
def put(data: Any, spans: Any, column: Bytewise, row: int) -> int:
    """Append these fields to a column; how many were null, which is a size of -1."""
    nulls = 0
    ends, bits, into = column.ends, column.nulls, column.data
    at = np.int64(ends[row])
    for index in range(spans.shape[0]):
        size = spans[index, 1]
        if size > 0:
            copy(into, at, data, (spans[index, 0], size))
            at += size
        elif size < 0:
            bits[row >> 3] |= 1 << (row & 7)
            nulls += 1
        row += 1
        ends[row] = at
    return nulls


@native
def store(data: Any, numbers: Any, rows: Any, sink: Sink, row: int) -> tuple[int, int]:
    """Put these rows of a batch into the wanted columns; nulls among the keys and the values."""
    end = row + rows.shape[0]
    key_nulls, value_nulls = 0, 0
    if sink.offset.size:
        sink.offset[row:end] = rows[:, OFFSET]
    if sink.timestamp.size:
        sink.timestamp[row:end] = rows[:, TIME]
    if sink.timestamp_type.size:
        sink.timestamp_type[row:end] = numbers[TIME_TYPE]
    if sink.leader_epoch.size:
        sink.leader_epoch[row:end] = numbers[EPOCH]
    if sink.key.ends.size:
        key_nulls = put(data, rows[:, KEY : KEY + 2], sink.key, row)
    if sink.value.ends.size:
        value_nulls = put(data, rows[:, VALUE : VALUE + 2], sink.value, row)
    if sink.headers_at.size:
        sink.headers_at[row:end] = rows[:, HEADERS_AT]
    return key_nulls, value_nulls


@native
def scan(data: Any, batches: Any, span: Span, sink: Sink, table: Any) -> tuple[int, ...]:
    """Gather the rows of these batches that lie in the span.

    Gives the first fault with its batch and position, then how many rows there are, nulls among
    the keys and values, and headers. The table is room to work in: as many rows as the processor's
    nearest memory holds.
    """
    row, key_nulls, value_nulls, headers = 0, 0, 0, 0
    place = np.empty(3, np.int64)
    for batch in range(batches.shape[0]):
        numbers = batches[batch]
        place[0], place[1], place[2] = numbers[START], -1, numbers[COUNT]
        while place[2] > 0:
            fault, found, count = scan_rows(data, numbers, span, table, place)
            if fault:
                return fault, batch, place[0], row, key_nulls, value_nulls, headers
            nulls = store(data, numbers, table[:found], sink, row)
            key_nulls += nulls[0]
            value_nulls += nulls[1]
            headers += count
            row += found
        if place[0] != numbers[STOP]:
            return TRAILING, batch, place[0], row, key_nulls, value_nulls, headers
    return OK, 0, 0, row, key_nulls, value_nulls, headers


@native
def list_headers(data: Any, headers_at: Any, ends: Any, keys: Any, values: Any) -> None:
    """Where the headers of these records lie, which `scan` has checked, and whose they are."""
    stop = data.size
    item = 0
    for row in range(headers_at.size):
        count, at, _ = varint(data, headers_at[row], stop, 32)
        for _ in range(count):
            at, size, _ = field(data, at, stop, stop)
            keys[item, 0], keys[item, 1] = at, size
            at, size, _ = field(data, at + size, stop, stop)
            values[item, 0], values[item, 1] = at, size
            at += max(size, 0)
            item += 1
        ends[row + 1] = item
