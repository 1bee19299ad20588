"""The kernels that read record batches. Hot: benchmarks/columns.py.

Owns the walk over records in every native form: checking them (`check`), gathering them into
columns (`scan`, `put`), finding their headers (`list_headers`). Compiled code has no bounds checks:
every read is guarded by `stop`, the end of the section it is in, which never lies outside the
buffer, and every write by counts and sizes that the section's size bounds.

What runs per record takes addresses, not arrays: passing an array costs counting references to it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ottla.protocol.records.columns.checksum import extended
from ottla.protocol.records.columns.native import (
    ByteArray,
    Int32s,
    Ints,
    Word,
    address,
    copy,
    inlined,
    load_byte,
    native,
    store_byte,
)
from ottla.protocol.records.header import ATTRIBUTES_AT, HEADER_SIZE

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
    "batch does not match its checksum",
)
(
    OK, PAST_END, VARINT_LONG, VARINT_LARGE, RECORD_LENGTH, FIELD_LENGTH, HEADER_COUNT, HEADER_KEY,
    MISMATCH, OFFSET_DELTA, TIMESTAMP, TRAILING, WRONG_CHECKSUM,
) = range(13)  # fmt: skip

# The columns of the table of batches that `scan` reads, all int64.
(
    START, STOP, COUNT, BASE_OFFSET, LAST_DELTA, BASE_TIME, APPEND_TIME, TIME_TYPE, EPOCH, CHECKSUM
) = range(10)  # fmt: skip
TABLE_COLUMNS: Final = 10
CHECKED: Final = -1
"""Instead of a checksum: it has been verified."""
SUMMED_BYTES: Final = HEADER_SIZE - ATTRIBUTES_AT
"""Bytes at the end of the header that the checksum covers as well."""
LEAST_RECORD_BYTES: Final = 7  # length, attributes, two deltas, two sizes, number of headers
QUICK_BYTES: Final = 13  # attributes, and four numbers of three bytes at most
FAR: Final = 1 << 60  # a position that no buffer has


class Bytewise(NamedTuple):
    """A column of bytes under construction, in Arrow's layout; all empty if not wanted."""

    ends: Int32s  # one more than there are rows
    data: ByteArray
    nulls: ByteArray  # a bit per row, all zero at first


class Sink(NamedTuple):
    """The output of `scan`; an empty array is a column that is not wanted."""

    offset: Ints
    timestamp: Ints
    timestamp_type: npt.NDArray[np.int8]
    leader_epoch: Int32s
    key: Bytewise
    value: Bytewise
    headers_at: Ints  # where in the data each row's headers begin


class Span(NamedTuple):
    """The rows wanted: half-open ranges of offsets and of timestamps."""

    start_offset: int
    end_offset: int
    start_time: int
    end_time: int


@inlined
def varint(pos: int, stop: int, bits: int) -> tuple[int, int, int]:
    """Zigzag value, the position after it, and the fault."""
    value: Word = np.int64(0)
    shift: Word = np.int64(0)
    while pos < stop:
        byte = load_byte(pos)
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if shift + 7 > bits and byte >> (bits - shift):
                return 0, pos, VARINT_LARGE
            return ((value >> 1) & INT64_MAX) ^ -(value & 1), pos, OK
        shift += 7
        if shift >= bits:
            return 0, pos, VARINT_LONG
    return 0, pos, PAST_END


@inlined
def field(pos: int, end: int, stop: int) -> tuple[int, int, int]:
    """Where a length-prefixed field starts, its length (-1 for null), and the fault."""
    length, pos, fault = varint(pos, stop, 32)
    if not fault and (length < -1 or pos + length > end):
        fault = FIELD_LENGTH
    return pos, length, fault


@native
def skip_headers(pos: int, end: int, stop: int) -> tuple[int, int, int]:
    """How many headers a record has, the position after them, and the fault."""
    count, pos, fault = varint(pos, stop, 32)
    if not fault and (count < 0 or count > (end - pos) // 2):
        fault = HEADER_COUNT
    if fault:
        return 0, pos, fault
    for _ in range(count):
        pos, length, fault = field(pos, end, stop)
        if not fault and length < 0:
            fault = HEADER_KEY
        if fault:
            return 0, pos, fault
        pos, length, fault = field(pos + length, end, stop)
        if fault:
            return 0, pos, fault
        pos += max(length, 0)
    return count, pos, OK


@inlined
def overflows(base: int, delta: int) -> bool:
    """Whether the sum leaves 64 bits; asked before, as the compiler assumes it cannot after."""
    return base > INT64_MAX - delta if delta > 0 else base < INT64_MIN - delta


@inlined
def any_record(pos: int, stop: int) -> tuple[int, ...]:
    """As `record`, of any form."""
    length, pos, fault = varint(pos, stop, 32)
    if not fault and (length < 0 or pos + length > stop):
        fault = RECORD_LENGTH
    if fault:
        return 0, 0, 0, 0, 0, 0, 0, 0, pos, fault
    end = pos + length
    time_delta, pos, fault = varint(pos + 1, stop, 64)  # the attributes byte means nothing
    if fault:
        return 0, 0, 0, 0, 0, 0, 0, 0, pos, fault
    delta, pos, fault = varint(pos, stop, 32)
    if fault:
        return 0, 0, 0, 0, 0, 0, 0, 0, pos, fault
    key_at, key_size, fault = field(pos, end, stop)
    if fault:
        return 0, 0, 0, 0, 0, 0, 0, 0, pos, fault
    value_at, value_size, fault = field(key_at + max(key_size, 0), end, stop)
    if fault:
        return 0, 0, 0, 0, 0, 0, 0, 0, pos, fault
    headers_at = value_at + max(value_size, 0)
    headers: Word = np.int64(0)
    if headers_at < stop and load_byte(headers_at) == 0:
        pos = headers_at + 1
    else:
        headers, pos, fault = skip_headers(headers_at, end, stop)
    if not fault and pos != end:
        fault = MISMATCH
    return (
        time_delta,
        delta,
        key_at,
        key_size,
        value_at,
        value_size,
        headers_at,
        headers,
        pos,
        fault,
    )


@inlined
def short(pos: int) -> tuple[int, int]:
    """Zigzag value of up to three bytes and the position after it, FAR if it has more."""
    first = load_byte(pos)
    if first < 0x80:
        return (first >> 1) ^ -(first & 1), pos + 1
    second = load_byte(pos + 1)
    value = (first & 0x7F) | (second & 0x7F) << 7
    if second < 0x80:
        return (value >> 1) ^ -(value & 1), pos + 2
    third = load_byte(pos + 2)
    value |= (third & 0x7F) << 14
    return (value >> 1) ^ -(value & 1), pos + 3 if third < 0x80 else FAR


@inlined
def record(pos: int, stop: int) -> tuple[int, ...]:
    """One record: both deltas, then key, value and headers as (start, size), the end, the fault.

    The size of the headers is their number. Nearly all records are small and have no headers: those
    take about half the time. Anything else is read again, number by number.
    """
    if pos + 3 + QUICK_BYTES <= stop:
        length, start = short(pos)
        end = start + length
        if length >= QUICK_BYTES and end <= stop:
            time_delta, after = short(start + 1)
            if after < end:
                delta, after = short(after)
                if after < end - 6:
                    key_size, key_at = short(after)
                    after = key_at + max(key_size, 0)
                    if key_size >= -1 and after < end - 3:
                        value_size, value_at = short(after)
                        after = value_at + max(value_size, 0)
                        if value_size >= -1 and after == end - 1 and load_byte(after) == 0:
                            return (
                                time_delta, delta, key_at, key_size, value_at, value_size,
                                after, 0, end, OK,
                            )  # fmt: skip
    return any_record(pos, stop)


@native
def check(
    data: ByteArray, count: int, base_timestamp: int, last_offset_delta: int, dense: bool
) -> tuple[int, int, int, int, int, int]:
    """The first fault and its position, then the four numbers of a `record.Summary`."""
    start = address(data)
    pos, stop, last_delta, high_delta, null_key = start, start + data.size, -1, -1, -1
    low, high = INT64_MAX, INT64_MIN
    for index in range(count):
        time_delta, delta, _, key_size, _, _, _, _, end, fault = record(pos, stop)
        if not fault and (
            delta <= last_delta or delta > last_offset_delta or (dense and delta != index)
        ):
            fault = OFFSET_DELTA
        if not fault and overflows(base_timestamp, time_delta):
            fault = TIMESTAMP
        if fault:
            return fault, pos - start, 0, 0, 0, 0
        pos = end
        timestamp = base_timestamp + time_delta
        last_delta = delta
        low = min(low, timestamp)
        if timestamp > high:
            high, high_delta = timestamp, delta
        if key_size < 0 and null_key < 0:
            null_key = index
    return (OK if pos == stop else TRAILING), pos - start, low, high, high_delta, null_key


@inlined
def within(span: Span, offset: int, timestamp: int) -> bool:
    return (
        span.start_offset <= offset < span.end_offset
        and span.start_time <= timestamp < span.end_time
    )


@native
def put(data: ByteArray, spans: Ints, column: Bytewise, row: int) -> int:
    """Append these fields to a column; how many were null, which is a size of -1."""
    nulls = 0
    ends, bits, into = column.ends, column.nulls, column.data
    pos = np.int64(ends[row])
    for index in range(spans.shape[0]):
        size = spans[index, 1]
        if size > 0:
            copy(address(into) + pos, address(data) + spans[index, 0], size)
            pos += size
        elif size < 0:
            bits[row >> 3] |= 1 << (row & 7)
            nulls += 1
        row += 1
        ends[row] = pos
    return nulls


@inlined
def append(end: int, pos: int, size: int) -> int:
    """Copy a field, if it has any bytes, behind the others; where it ends then."""
    if size <= 0:
        return end
    copy(end, pos, size)
    return end + size


@inlined
def mark(bits: int, row: int, size: int) -> int:
    """Note a null, which is a size of -1; how many that were."""
    if size >= 0:
        return 0
    bits += row >> 3
    store_byte(bits, load_byte(bits) | 1 << (row & 7))
    return 1


@native
def scan_batch(  # noqa: C901 - one pass: calls that take columns cost as much as the records
    data: ByteArray, numbers: Ints, span: Span, sink: Sink, row: int
) -> tuple[int, int, int, int, int, int]:
    """Gather the rows of one batch, from `row` on.

    Gives the fault and its position, the row after, nulls among keys and values, and headers.
    """
    offsets, times, places = sink.offset, sink.timestamp, sink.headers_at
    key_ends, value_ends = sink.key.ends, sink.value.ends
    keys, key_bits = address(sink.key.data), address(sink.key.nulls)
    values, value_bits = address(sink.value.data), address(sink.value.nulls)
    start = address(data)
    pos, stop, limit = start + numbers[START], start + numbers[STOP], numbers[LAST_DELTA]
    base_offset, base_time, appended = numbers[BASE_OFFSET], numbers[BASE_TIME], numbers[TIME_TYPE]
    key_end = keys + key_ends[row] if key_ends.size else keys
    value_end = values + value_ends[row] if value_ends.size else values
    last, key_nulls, value_nulls, headers = -1, 0, 0, 0
    for _ in range(numbers[COUNT]):
        (
            time_delta, delta, key_at, key_size, value_at, value_size, headers_at, count, end, fault
        ) = record(pos, stop)  # fmt: skip
        if not fault and (delta <= last or delta > limit):
            fault = OFFSET_DELTA
        if not fault and overflows(base_time, time_delta):
            fault = TIMESTAMP
        if fault:
            return fault, pos - start, row, key_nulls, value_nulls, headers
        pos, last = end, delta
        timestamp = numbers[APPEND_TIME] if appended == 1 else base_time + time_delta
        if not within(span, base_offset + delta, timestamp):
            continue
        if offsets.size:
            offsets[row] = base_offset + delta
        if times.size:
            times[row] = timestamp
        if key_ends.size:
            key_nulls += mark(key_bits, row, key_size)
            key_end = append(key_end, key_at, key_size)
            key_ends[row + 1] = key_end - keys
        if value_ends.size:
            value_nulls += mark(value_bits, row, value_size)
            value_end = append(value_end, value_at, value_size)
            value_ends[row + 1] = value_end - values
        if places.size:
            places[row] = headers_at - start
        headers += count
        row += 1
    return (OK if pos == stop else TRAILING), pos - start, row, key_nulls, value_nulls, headers


@native
def scan(data: ByteArray, batches: Ints, span: Span, sink: Sink) -> tuple[int, ...]:
    """Gather the rows of these batches that lie in the span.

    Gives the first fault with its batch and position, then how many rows there are, nulls among
    the keys and values, and headers.
    """
    row, key_nulls, value_nulls, headers = 0, 0, 0, 0
    start = address(data)
    for batch in range(batches.shape[0]):
        first, numbers = row, batches[batch]
        section, stop = numbers[START], numbers[STOP]
        # A batch at a time: the records are then read from the processor's own memory.
        if numbers[CHECKSUM] != CHECKED and numbers[CHECKSUM] != extended(
            0, start + section - SUMMED_BYTES, start + stop
        ):
            fault, pos = WRONG_CHECKSUM, section - HEADER_SIZE
            return fault, batch, pos, row, key_nulls, value_nulls, headers
        fault, pos, row, no_keys, no_values, count = scan_batch(data, numbers, span, sink, row)
        if sink.timestamp_type.size:
            sink.timestamp_type[first:row] = numbers[TIME_TYPE]
        if sink.leader_epoch.size:
            sink.leader_epoch[first:row] = numbers[EPOCH]
        key_nulls += no_keys
        value_nulls += no_values
        headers += count
        if fault:
            return fault, batch, pos, row, key_nulls, value_nulls, headers
    return OK, 0, 0, row, key_nulls, value_nulls, headers


@native
def list_headers(data: ByteArray, headers_at: Ints, ends: Int32s, keys: Ints, values: Ints) -> None:
    """Where the headers of these records lie, which `scan` has checked, and whose they are."""
    start = address(data)
    stop, item = start + data.size, 0
    for row in range(headers_at.size):
        count, pos, _ = varint(start + headers_at[row], stop, 32)
        for _ in range(count):
            pos, size, _ = field(pos, stop, stop)
            keys[item, 0], keys[item, 1] = pos - start, size
            pos, size, _ = field(pos + size, stop, stop)
            values[item, 0], values[item, 1] = pos - start, size
            pos += max(size, 0)
            item += 1
        ends[row + 1] = item
