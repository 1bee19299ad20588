"""The kernels that write record batches, and share rows out over partitions.

Owns the encoding of records (`plan`, `write`), murmur2 over a column of keys (`hash_keys`), and the
stable grouping of rows by partition (`group`). Hot: benchmarks/columns.py. Compiled code has no
bounds checks: `rows` has checked that columns end inside their data, `plan` checks that their rows
follow each other and says how much room `write` needs. Never allocates.

What runs per record takes addresses, not arrays: passing an array costs counting references to it,
which took longer than all the rest.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from ottla.protocol.records.columns.checksum import extended
from ottla.protocol.records.columns.native import (
    address,
    copy,
    inlined,
    load_byte,
    load_int,
    native,
    store_byte,
)
from ottla.protocol.records.header import HEADER_SIZE

# The columns of the table of batches that `write` fills, all int64.
START, END, GROUP, FIRST, COUNT, BASE_TIME, MAX_TIME, CHECKSUM, BATCH_NUMBERS = range(9)
UNSOUND: Final = -2  # in the place of a size
UNKNOWN: Final = -1  # in the place of a checksum
SUMMED_AT_ONCE: Final = 24 << 10


class Column(NamedTuple):
    """A column of bytes. Row i is `data[ends[i] : ends[i + 1]]`, unless `nulls[i]`."""

    ends: Any  # int64, one more than there are rows; none at all for a column of nulls
    data: Any  # uint8
    nulls: Any  # bool, a byte per row; none at all when no row is null


class Cells(NamedTuple):
    """A column of bytes whose rows lie back to back."""

    sizes: Any  # int64, -1 for null; none at all for a column of nulls
    data: Any  # uint8


class Rows(NamedTuple):
    """What `write` encodes. Row i has the headers `header_ends[i] : header_ends[i + 1]`."""

    timestamps: Any  # int64
    keys: Column
    values: Column
    header_ends: Any  # int64; none at all when no row has headers
    header_keys: Column
    header_values: Column
    order: Any  # int64: the rows in the order they are written; none at all for their own order


@inlined
def varint_size(value: int) -> int:
    """Bytes that the zigzag form of a value takes."""
    rest: Any = np.uint64((value << 1) ^ (value >> 63))
    size = 1
    while rest >= np.uint64(0x80):
        rest >>= np.uint64(7)
        size += 1
    return size


@inlined
def put_varint(at: int, value: int) -> int:
    """Write a value in zigzag form; the position after it. Most take one byte or two."""
    rest: Any = np.uint64((value << 1) ^ (value >> 63))
    while rest >= np.uint64(0x80):
        store_byte(at, np.int64(rest | np.uint64(0x80)))
        rest >>= np.uint64(7)
        at += 1
    store_byte(at, np.int64(rest))
    return at + 1


@inlined
def place(array: Any) -> int:
    """The address of an array, 0 of an empty one."""
    return address(array) if array.size else 0


@inlined
def cell(ends: int, nulls: int, row: int) -> tuple[int, int]:
    """Where one row of a column starts, and its size; given the `place` of both.

    The size is -1 for null, and UNSOUND where the row ends before it starts.
    """
    if ends == 0 or (nulls != 0 and load_byte(nulls + row)):
        return 0, -1
    start = load_int(ends + 8 * row)
    size = load_int(ends + 8 * row + 8) - start
    return start, size if size >= 0 else UNSOUND


@inlined
def field_size(size: int) -> int:
    """Bytes that a field takes with its length in front."""
    return varint_size(size) + max(size, 0)


@native
def headers_size(rows: Rows, first: int, end: int) -> int:
    """Bytes that these headers take, their number in front included; -1 if a column is unsound."""
    keys, values = rows.header_keys, rows.header_values
    total = varint_size(end - first)
    for item in range(first, end):
        _, key_size = cell(place(keys.ends), place(keys.nulls), item)
        _, value_size = cell(place(values.ends), place(values.nulls), item)
        if key_size < 0 or value_size < -1:
            return -1
        total += field_size(key_size) + field_size(value_size)
    return total


@native
def plan(rows: Rows, groups: Any, limit: int, batches: Any) -> int:
    """Cut each group of rows into batches of at most `limit` bytes; how many there are.

    A row that is larger than the limit is a batch of its own. -1 where a row of a column ends
    before it starts: then the columns must not be written.
    """
    times, order, header_ends = rows.timestamps, rows.order, rows.header_ends
    key_ends, key_nulls = place(rows.keys.ends), place(rows.keys.nulls)
    value_ends, value_nulls = place(rows.values.ends), place(rows.values.nulls)
    at, batch = 0, -1
    for group in range(groups.size - 1):
        start, first, base_time, newest = at, 0, np.int64(0), np.int64(0)
        for index in range(groups[group], groups[group + 1]):
            row = order[index] if order.size else index
            time = times[row]
            _, key_size = cell(key_ends, key_nulls, row)
            _, value_size = cell(value_ends, value_nulls, row)
            extra = (
                headers_size(rows, header_ends[row], header_ends[row + 1])
                if header_ends.size
                else 1
            )
            if key_size < -1 or value_size < -1 or extra < 0:
                return -1
            fields = 1 + field_size(key_size) + field_size(value_size) + extra
            body = fields + varint_size(time - base_time) + varint_size(index - first)
            size = varint_size(body) + body
            if index == groups[group] or at + size - start > limit:
                batch += 1
                start, first, base_time, newest = at, index, time, time
                body = fields + 2
                at += HEADER_SIZE
                size = varint_size(body) + body
                batches[batch, START], batches[batch, GROUP] = start, group
                batches[batch, FIRST], batches[batch, BASE_TIME] = first, time
            at += size
            newest = max(newest, time)
            batches[batch, END], batches[batch, COUNT] = at, index - first + 1
            batches[batch, MAX_TIME] = newest
    return batch + 1


@inlined
def put_field(at: int, start: int, size: int) -> int:
    """Write one field with its length in front; the position after it."""
    at = put_varint(at, size)
    if size <= 0:
        return at
    copy(at, start, size)
    return at + size


@native
def put_headers(at: int, rows: Rows, first: int, end: int) -> int:
    """Write the number of these headers and the headers; the position after them."""
    keys, values = rows.header_keys, rows.header_values
    at = put_varint(at, end - first)
    for item in range(first, end):
        start, size = cell(place(keys.ends), place(keys.nulls), item)
        at = put_field(at, address(keys.data) + start, size)
        start, size = cell(place(values.ends), place(values.nulls), item)
        at = put_field(at, address(values.data) + start, size)
    return at


@native
def write(rows: Rows, batches: Any, out: Any, summed: bool) -> None:
    """Write the records of each planned batch, leaving room for its header.

    If `summed`, their checksum goes into the table, made of them while they are in the processor's
    own memory.
    """
    order, times = rows.order, rows.timestamps
    keys, key_ends, key_nulls = (
        place(rows.keys.data), place(rows.keys.ends), place(rows.keys.nulls)
    )  # fmt: skip
    values, value_ends, value_nulls = (
        place(rows.values.data), place(rows.values.ends), place(rows.values.nulls)
    )  # fmt: skip
    header_ends = rows.header_ends
    for batch in range(batches.shape[0]):
        at = address(out) + batches[batch, START] + HEADER_SIZE
        first, base_time = batches[batch, FIRST], batches[batch, BASE_TIME]
        checksum, done = 0, at
        for delta in range(batches[batch, COUNT]):
            row = order[first + delta] if order.size else first + delta
            time_delta = times[row] - base_time
            key_start, key_size = cell(key_ends, key_nulls, row)
            start, size = cell(value_ends, value_nulls, row)
            body = 1 + varint_size(time_delta) + varint_size(delta)
            body += field_size(key_size) + field_size(size)
            if header_ends.size:
                body += headers_size(rows, header_ends[row], header_ends[row + 1])
            else:
                body += 1
            at = put_varint(at, body)
            store_byte(at, 0)
            at = put_varint(at + 1, time_delta)
            at = put_varint(at, delta)
            at = put_field(at, keys + key_start, key_size)
            at = put_field(at, values + start, size)
            if header_ends.size:
                at = put_headers(at, rows, header_ends[row], header_ends[row + 1])
            else:
                store_byte(at, 0)
                at += 1
            if summed and at - done >= SUMMED_AT_ONCE:
                checksum, done = extended(checksum, done, at), at
        batches[batch, CHECKSUM] = extended(checksum, done, at) if summed else UNKNOWN


@native
def write_cells(keys: Cells, values: Cells, times: Any, out: Any) -> tuple[int, int]:
    """Write one batch of rows without headers; where it ends, and its newest timestamp.

    A tenth of what `plan` and `write` cost where there are few rows. The caller gives
    room for the longest form of every number.
    """
    key_sizes, value_sizes = keys.sizes, values.sizes
    key_at, value_at = address(keys.data), address(values.data)
    at = address(out) + HEADER_SIZE
    newest: Any = times[0]
    for row in range(times.size):
        time = times[row]
        newest = max(newest, time)
        key_size = key_sizes[row] if key_sizes.size else -1
        value_size = value_sizes[row] if value_sizes.size else -1
        body = (
            varint_size(time - times[0]) + varint_size(row) + varint_size(key_size)
            + varint_size(value_size) + max(key_size, 0) + max(value_size, 0) + 2
        )  # fmt: skip
        at = put_varint(at, body)
        store_byte(at, 0)
        at = put_varint(at + 1, time - times[0])
        at = put_varint(at, row)
        at = put_field(at, key_at, key_size)
        at = put_field(at, value_at, value_size)
        store_byte(at, 0)
        at += 1
        key_at += max(key_size, 0)
        value_at += max(value_size, 0)
    return at - address(out), newest


@native
def hash_keys(column: Column, hashes: Any) -> None:
    """murmur2 of each key as Java's producer computes it; 0 for a null."""
    ends, data, nulls = place(column.ends), place(column.data), place(column.nulls)
    for row in range(hashes.size):
        start, size = cell(ends, nulls, row)
        hashes[row] = murmur2(data + start, size) if size >= 0 else 0


@inlined
def murmur2(at: int, size: int) -> Any:
    factor = np.uint32(0x5BD1E995)
    digest = np.uint32(0x9747B28C) ^ np.uint32(size)
    end = at + size
    while end - at >= 4:
        lane = np.uint32(
            load_byte(at)
            | load_byte(at + 1) << 8
            | load_byte(at + 2) << 16
            | load_byte(at + 3) << 24
        )
        lane = np.uint32(lane * factor)
        lane = np.uint32((lane ^ (lane >> np.uint32(24))) * factor)
        digest = np.uint32(digest * factor) ^ lane
        at += 4
    if end > at:
        for index in range(end - at):
            digest ^= np.uint32(load_byte(at + index)) << np.uint32(8 * index)
        digest = np.uint32(digest * factor)
    digest = np.uint32((digest ^ (digest >> np.uint32(13))) * factor)
    return np.int32(digest ^ (digest >> np.uint32(15)))


@native
def group(partitions: Any, ends: Any, order: Any) -> None:
    """Rows by partition, those of one partition in their own order (a counting sort).

    `ends` begins with zeros, one more than there are partitions; then it bounds them in `order`.
    """
    for row in range(partitions.size):
        ends[partitions[row] + 1] += 1
    for partition in range(1, ends.size):
        ends[partition] += ends[partition - 1]
    for row in range(partitions.size):
        partition = partitions[row]
        order[ends[partition]] = row
        ends[partition] += 1
    for partition in range(ends.size - 1, 0, -1):
        ends[partition] = ends[partition - 1]
    ends[0] = 0
