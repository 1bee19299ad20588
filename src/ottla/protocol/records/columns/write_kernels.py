"""The kernels that write record batches, and share rows out over partitions.

Owns the encoding of records (`write`), murmur2 over a column of keys (`hash_keys`), and the stable
grouping of rows by partition (`group`). Hot: benchmarks/columns.py. Compiled code has no bounds
checks of its own: `cell` checks that a row lies in its column's data, `write` that a record fits
into the room there is. Never allocates.

What runs per record takes addresses, not arrays: passing an array costs counting references to it,
which took longer than all the rest.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from numba.extending import intrinsic

from ottla.protocol.records.columns.checksum import extended
from ottla.protocol.records.columns.native import (
    ByteArray,
    Flags,
    Ints,
    Numba,
    Numbers,
    Word,
    address,
    compiler,
    copy,
    inlined,
    kinds,
    load_byte,
    load_int,
    native,
    store_byte,
)
from ottla.protocol.records.header import HEADER_SIZE

# The columns of the table of batches that `write` fills, all int64.
START, END, GROUP, FIRST, COUNT, BASE_TIME, MAX_TIME, CHECKSUM, BATCH_NUMBERS = range(9)
UNSOUND: Final = -2  # in the place of a size, or of a number of batches
UNKNOWN: Final = -1  # in the place of a checksum
SUMMED_AT_ONCE: Final = 24 << 10
VECTOR: Final = 32
MANY_VECTORS: Final = 16 * VECTOR


class Column(NamedTuple):
    """A column of bytes. Row i is `data[ends[i] : ends[i + 1]]`, unless `nulls[i]`."""

    ends: Numbers  # int32 or int64, one more than there are rows; none at all for a column of nulls
    data: ByteArray
    nulls: Flags  # a byte per row; none at all when no row is null


class Place(NamedTuple):
    """The addresses of a column, for the kernels; valid while the column is referenced."""

    ends: int  # an address, 0 for a column of nulls
    width: int  # of each end, in bytes
    data: int  # an address
    size: int  # of the data
    nulls: int  # an address, 0 when no row is null


class Cells(NamedTuple):
    """A column of bytes whose rows lie back to back."""

    sizes: Ints  # -1 for null; none at all for a column of nulls
    data: ByteArray


class Source(NamedTuple):
    """What `write` encodes. Row i has the headers `header_ends[i] : header_ends[i + 1]`."""

    times: int  # the address of int64
    time_step: int  # bytes from one row's to the next one's; 0 where all have the same
    keys: Place
    values: Place
    header_ends: int  # the address of int64; 0 when no row has headers
    header_keys: Place
    header_values: Place
    order: int  # the address of int64: rows in the order they are written; 0 for their own order


class Cut(NamedTuple):
    """Into which batches rows are written."""

    groups: Ints  # where in the order each group of rows begins, and where the last one ends
    limit: int  # of a batch's bytes; a row that is larger is a batch of its own
    summed: bool  # with the checksum of the records, made while they are in the processor's memory


def _load_half(_: Numba, address: Numba) -> Numba:
    """The int32 at an address."""

    def generate(context: Numba, builder: Numba, signature: Numba, arguments: Numba) -> Numba:
        (address,) = arguments
        kind = context.get_value_type(kinds.int32)
        loaded = builder.load(builder.inttoptr(address, kind.as_pointer()))
        return builder.sext(loaded, context.get_value_type(kinds.int64))

    return kinds.int64(kinds.int64), generate


def _copy_vector(_: Numba, target: Numba, source: Numba) -> Numba:
    """As many bytes as the processor moves at once, from one address to another."""

    def generate(context: Numba, builder: Numba, signature: Numba, arguments: Numba) -> Numba:
        target, source = arguments
        pointer = compiler.ir.VectorType(compiler.ir.IntType(8), VECTOR).as_pointer()
        loaded = builder.load(builder.inttoptr(source, pointer))
        loaded.align = 1
        builder.store(loaded, builder.inttoptr(target, pointer)).align = 1
        return context.get_dummy_value()

    return kinds.void(kinds.int64, kinds.int64), generate


load_half: Numba = intrinsic(_load_half)
copy_vector: Numba = intrinsic(_copy_vector)


@inlined
def varint_size(value: int) -> int:
    """Bytes that the zigzag form of a value takes."""
    rest: Word = np.uint64((value << 1) ^ (value >> 63))
    size = 1
    while rest >= np.uint64(0x80):
        rest >>= np.uint64(7)
        size += 1
    return size


@inlined
def put_varint(pos: int, value: int) -> int:
    """Write a value in zigzag form; the position after it. Most take one byte or two."""
    rest: Word = np.uint64((value << 1) ^ (value >> 63))
    while rest >= np.uint64(0x80):
        store_byte(pos, np.int64(rest | np.uint64(0x80)))
        rest >>= np.uint64(7)
        pos += 1
    store_byte(pos, np.int64(rest))
    return pos + 1


@inlined
def cell(column: Place, row: int) -> tuple[int, int]:
    """Where the bytes of one row are, and how many.

    So many are -1 for null, and UNSOUND where the row does not lie in the column's data.
    """
    if column.ends == 0 or (column.nulls != 0 and load_byte(column.nulls + row)):
        return 0, -1
    pos = column.ends + column.width * row
    if column.width == 4:
        start, end = load_half(pos), load_half(pos + 4)
    else:
        start, end = load_int(pos), load_int(pos + 8)
    if start < 0 or end < start or end > column.size:
        return 0, UNSOUND
    return column.data + start, end - start


@inlined
def field_size(size: int) -> int:
    """Bytes that a field takes with its length in front."""
    return varint_size(size) + max(size, 0)


@native
def headers_size(source: Source, row: int) -> int:
    """Bytes that a row's headers take, their number in front included; UNSOUND as a cell."""
    first = load_int(source.header_ends + 8 * row)
    end = load_int(source.header_ends + 8 * row + 8)
    total = varint_size(end - first)
    for item in range(first, end):
        _, key_size = cell(source.header_keys, item)
        _, value_size = cell(source.header_values, item)
        if key_size < 0 or value_size == UNSOUND:
            return UNSOUND
        total += field_size(key_size) + field_size(value_size)
    return total


@inlined
def put_field(pos: int, start: int, size: int) -> int:
    """Write one field with its length in front; the position after it.

    A few vectors, of which the last may overlap the one before, are written in less time than it
    takes to call a function that would do it.
    """
    pos = put_varint(pos, size)
    if size <= 0:
        return pos
    if size < VECTOR or size > MANY_VECTORS:
        copy(pos, start, size)
        return pos + size
    last, last_start = pos + size - VECTOR, start + size - VECTOR
    while pos < last:
        copy_vector(pos, start)
        pos += VECTOR
        start += VECTOR
    copy_vector(last, last_start)
    return last + VECTOR


@native
def put_headers(pos: int, source: Source, row: int) -> int:
    """Write the number of a row's headers and the headers; the position after them."""
    first = load_int(source.header_ends + 8 * row)
    end = load_int(source.header_ends + 8 * row + 8)
    pos = put_varint(pos, end - first)
    for item in range(first, end):
        start, size = cell(source.header_keys, item)
        pos = put_field(pos, start, size)
        start, size = cell(source.header_values, item)
        pos = put_field(pos, start, size)
    return pos


@native
def write(source: Source, cut: Cut, batches: Ints, out: ByteArray) -> int:
    """Write rows as batches; how many there are.

    Room is left for their headers, and the table of batches says the rest. UNSOUND where a row does
    not lie in its column's data, or records take more room than they could if rows followed each
    other: then what was written is worth nothing. To look at each row twice took a third longer.
    """
    groups, limit, summed = cut
    order, has_headers = source.order, source.header_ends != 0
    begin = address(out)
    pos, stop, batch = begin, begin + out.size, -1
    start, first, base_time, newest, checksum, upto = pos, 0, 0, 0, 0, pos
    for group in range(groups.size - 1):
        for index in range(groups[group], groups[group + 1]):
            row = load_int(order + 8 * index) if order != 0 else index
            time = load_int(source.times + source.time_step * row)
            key, key_size = cell(source.keys, row)
            value, value_size = cell(source.values, row)
            extra = headers_size(source, row) if has_headers else 1
            if key_size == UNSOUND or value_size == UNSOUND or extra == UNSOUND:
                return UNSOUND
            fields = 1 + field_size(key_size) + field_size(value_size) + extra
            body = fields + varint_size(time - base_time) + varint_size(index - first)
            if index == groups[group] or pos + varint_size(body) + body - start > limit:
                if batch >= 0:
                    end_batch(batches, batch, pos - begin, index - first, newest)
                    batches[batch, CHECKSUM] = extended(checksum, upto, pos) if summed else UNKNOWN
                batch += 1
                start, first, base_time, newest = pos, index, time, time
                pos += HEADER_SIZE
                body, checksum, upto = fields + 2, 0, pos
                if batch >= batches.shape[0] or pos > stop:
                    return UNSOUND
                batches[batch, START], batches[batch, GROUP] = start - begin, group
                batches[batch, FIRST], batches[batch, BASE_TIME] = first, time
            if pos + varint_size(body) + body > stop:
                return UNSOUND
            newest = max(newest, time)
            pos = put_varint(put_varint(pos, body), 0)
            pos = put_varint(pos, time - base_time)
            pos = put_varint(pos, index - first)
            pos = put_field(pos, key, key_size)
            pos = put_field(pos, value, value_size)
            pos = put_headers(pos, source, row) if has_headers else put_varint(pos, 0)
            if summed and pos - upto >= SUMMED_AT_ONCE:
                checksum, upto = extended(checksum, upto, pos), pos
    if batch >= 0:
        end_batch(batches, batch, pos - begin, groups[groups.size - 1] - first, newest)
        batches[batch, CHECKSUM] = extended(checksum, upto, pos) if summed else UNKNOWN
    return batch + 1


@inlined
def end_batch(batches: Ints, batch: int, end: int, count: int, newest: int) -> None:
    batches[batch, END], batches[batch, COUNT] = end, count
    batches[batch, MAX_TIME] = newest


@native
def write_cells(keys: Cells, values: Cells, times: Ints, out: ByteArray) -> tuple[int, int]:
    """Write one batch of rows without headers; where it ends, and its newest timestamp.

    A tenth of what `write` costs where there are few rows. The caller gives
    room for the longest form of every number.
    """
    key_sizes, value_sizes = keys.sizes, values.sizes
    key_at, value_at = address(keys.data), address(values.data)
    pos = address(out) + HEADER_SIZE
    newest: Word = times[0]
    for row in range(times.size):
        time = times[row]
        newest = max(newest, time)
        key_size = key_sizes[row] if key_sizes.size else -1
        value_size = value_sizes[row] if value_sizes.size else -1
        body = (
            varint_size(time - times[0]) + varint_size(row) + varint_size(key_size)
            + varint_size(value_size) + max(key_size, 0) + max(value_size, 0) + 2
        )  # fmt: skip
        pos = put_varint(pos, body)
        store_byte(pos, 0)
        pos = put_varint(pos + 1, time - times[0])
        pos = put_varint(pos, row)
        pos = put_field(pos, key_at, key_size)
        pos = put_field(pos, value_at, value_size)
        store_byte(pos, 0)
        pos += 1
        key_at += max(key_size, 0)
        value_at += max(value_size, 0)
    return pos - address(out), newest


@native
def hash_keys(column: Place, hashes: npt.NDArray[np.int32]) -> None:
    """murmur2 of each key as Java's producer computes it; 0 for a null."""
    for row in range(hashes.size):
        start, size = cell(column, row)
        hashes[row] = murmur2(start, size) if size >= 0 else 0


@inlined
def murmur2(pos: int, size: int) -> Word:
    factor = np.uint32(0x5BD1E995)
    digest = np.uint32(0x9747B28C) ^ np.uint32(size)
    end = pos + size
    while end - pos >= 4:
        lane = np.uint32(
            load_byte(pos)
            | load_byte(pos + 1) << 8
            | load_byte(pos + 2) << 16
            | load_byte(pos + 3) << 24
        )
        lane = np.uint32(lane * factor)
        lane = np.uint32((lane ^ (lane >> np.uint32(24))) * factor)
        digest = np.uint32(digest * factor) ^ lane
        pos += 4
    if end > pos:
        for index in range(end - pos):
            digest ^= np.uint32(load_byte(pos + index)) << np.uint32(8 * index)
        digest = np.uint32(digest * factor)
    digest = np.uint32((digest ^ (digest >> np.uint32(13))) * factor)
    return np.int32(digest ^ (digest >> np.uint32(15)))


@native
def group(partitions: Numbers, ends: Ints, order: Ints) -> None:
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
