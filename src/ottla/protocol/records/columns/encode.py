"""Arrow columns, or Python lists, to record batches: no object per record.

Owns how rows become batches: by partition first, then split by size, with one codec. The caller
sends them and sets the producer: `batch.stamp` writes that into a finished batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from ottla.model.errors import UserError
from ottla.protocol.records.batch import CRC, CURRENT_MAGIC, compute_crc
from ottla.protocol.records.columns.arrays import Room, fresh, pooled_array
from ottla.protocol.records.columns.checksum import IS_QUICK, joined
from ottla.protocol.records.columns.native import ByteArray, Ints, Numbers
from ottla.protocol.records.columns.rows import (
    NO_BYTES,
    HeaderLists,
    Rows,
    Timestamps,
    Values,
    read_only,
    rows_of,
    source_of,
    timestamps_of,
)
from ottla.protocol.records.columns.write_kernels import (
    BATCH_NUMBERS,
    END,
    START,
    UNKNOWN,
    UNSOUND,
    Cells,
    Column,
    Cut,
    group,
    write,
    write_cells,
)
from ottla.protocol.records.compression import Bytes, Codec, compress
from ottla.protocol.records.crc import crc32c
from ottla.protocol.records.header import (
    ATTRIBUTES_AT,
    CRC_AT,
    HEADER,
    HEADER_SIZE,
    NO_TIMESTAMP,
    OVERHEAD,
)

MOST_BESIDE_FIELDS: Final = 36  # bytes of a record: attributes, and six numbers at their longest
NO_CELLS: Final = Cells(np.empty(0, np.int64), NO_BYTES)


def write_lists(
    keys: list[bytes | None] | None,
    values: list[bytes | None],
    timestamps: Timestamps,
    now_ms: int,
    limit: int,
) -> tuple[ByteArray, int, int] | None:
    """A buffer with room for a header and the records, their first timestamp and their largest.

    None if they need more than the limit. There must be at least one.
    """
    key_cells = NO_CELLS if keys is None else _cells(keys)
    value_cells = _cells(values)
    fields = key_cells.data.size + value_cells.data.size
    if fields > limit:
        return None
    times = timestamps_of(timestamps, len(values), now_ms)
    out = pooled_array("", HEADER_SIZE + MOST_BESIDE_FIELDS * len(values) + fields, np.uint8)
    end, newest = write_cells(key_cells, value_cells, times, out)
    return None if end > limit else (out[:end], int(times[0]), newest)


def _cells(values: Sequence[bytes | None]) -> Cells:
    lengths: Iterable[int] = map(len, values)  # type: ignore[arg-type]
    try:
        data = b"".join(values)  # type: ignore[arg-type]
    except TypeError:  # some are None: looking for one first takes twice as long as joining
        lengths = (-1 if value is None else len(value) for value in values)
        data = b"".join(filter(None, values))
    return Cells(np.fromiter(lengths, np.int64, len(values)), np.frombuffer(data, np.uint8))


MAX_BATCH_BYTES: Final = 1024 * 1024
LONGEST_NUMBER: Final = 10
LARGEST_BATCH: Final = 2**31 - 1 + OVERHEAD  # the largest length field


class Encoded(NamedTuple):
    """One batch, ready to be sent or to be stamped with producer id, epoch and sequence."""

    data: memoryview  # writable
    records: int  # how many
    partition: int
    max_timestamp: int
    plain_bytes: int  # its size before compression
    section_checksum: int = UNKNOWN  # of its records, as they are in it


def checksum_by(section: int, batch: Bytes) -> int:
    """The checksum of a whole batch, given that of its records: only its header is read."""
    head = crc32c(memoryview(batch)[ATTRIBUTES_AT:HEADER_SIZE])
    return int(joined(head, section, len(batch) - HEADER_SIZE))


def encode_batches(  # noqa: PLR0913 - what a batch may be made of, by name
    key: Values,
    value: Values,
    headers: HeaderLists = None,
    timestamps: Timestamps = None,
    *,
    now_ms: int = NO_TIMESTAMP,
    partitions: Sequence[int] | Numbers | None = None,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    max_batch_bytes: int = MAX_BATCH_BYTES,
    finish: bool = True,
) -> list[Encoded]:
    """These rows as batches of at most `max_batch_bytes`, before compression, header included.

    Key, value, headers and timestamps are Arrow arrays or lists of one length, or None; rows
    without a timestamp get `now_ms`. `partitions` has a number >= 0 for each row: the rows of a
    partition keep their order, and the batches are ordered by partition. A row that is too large
    is a batch of its own. Without `finish`, batches lack the checksum that `batch.stamp` writes.
    """
    limit, written = min(max_batch_bytes, LARGEST_BATCH), None
    if isinstance(value, list) and value and headers is None and partitions is None:
        written = _one_batch(key, value, timestamps, now_ms, limit)
    if written is None:
        rows = rows_of(key, value, headers, timestamps, now_ms=now_ms)
        groups = np.array([0, rows.timestamps.size], np.int64)
        if partitions is not None:
            rows, groups = _shared_out(rows, partitions)
        room = fresh if isinstance(value, list) else pooled_array
        written = _write_batches(rows, groups, limit, room, summed=IS_QUICK and codec is Codec.NONE)
    return [_batch(numbers, written.out, codec, level, finish) for numbers in written.table]


class WrittenBatches(NamedTuple):
    """Batches without their headers: the position of each in the buffer, and its numbers."""

    table: list[list[int]]
    out: ByteArray


def _batch(
    numbers: list[int], out: ByteArray, codec: Codec, level: int | None, finish: bool
) -> Encoded:
    start, end, partition, _, count, base_time, max_time, checksum = numbers
    batch = out.data[start:end]
    if codec is not Codec.NONE:
        section = compress(codec, batch[HEADER_SIZE:], level)
        batch = memoryview(bytearray(HEADER_SIZE + len(section)))
        batch[HEADER_SIZE:] = section
    HEADER.pack_into(
        batch, 0, 0, len(batch) - OVERHEAD, -1, CURRENT_MAGIC, 0, codec,
        count - 1, base_time, max_time, -1, -1, -1, count,
    )  # fmt: skip
    if finish:
        is_known = checksum != UNKNOWN
        crc = checksum_by(checksum, batch) if is_known else compute_crc(batch)
        CRC.pack_into(batch, CRC_AT, crc)
    return Encoded(batch, count, partition, max_time, end - start, checksum)


def _one_batch(
    key: Values, value: list[bytes | None], timestamps: Timestamps, now_ms: int, limit: int
) -> WrittenBatches | None:
    """Lists as one batch; None if their lengths differ or they exceed the limit."""
    if not (key is None or (isinstance(key, list) and len(key) == len(value))):
        return None
    if timestamps is not None and len(timestamps) != len(value):
        return None
    section = write_lists(key, value, timestamps, now_ms, limit)
    if section is None:
        return None
    out, base_time, max_time = section
    return WrittenBatches([[0, len(out), 0, 0, len(value), base_time, max_time, UNKNOWN]], out)


def _shared_out(rows: Rows, partitions: Sequence[int] | Numbers) -> tuple[Rows, Ints]:
    """The rows in the order of their partitions, and the start and end of each partition."""
    count = rows.timestamps.size
    numbers = np.ascontiguousarray(partitions, np.int32)
    if numbers.size != count:
        raise UserError(f"partitions: expected {count} numbers, got {numbers.size}")
    if count == 0:
        return rows, np.zeros(1, np.int64)
    if numbers.min() < 0:
        raise UserError(f"partitions: expected numbers >= 0, got {numbers.min()}")
    order, ends = np.empty(count, np.int64), np.zeros(int(numbers.max()) + 2, np.int64)
    group(read_only(numbers), ends, order)
    return rows._replace(order=read_only(order)), ends


def _write_batches(
    rows: Rows, groups: Ints, limit: int, room: Room, *, summed: bool
) -> WrittenBatches:
    """The rows as batches, split where a group ends or the limit is reached."""
    most_bytes = _most_bytes(rows)
    if most_bytes > LARGEST_BATCH:
        _check_largest(HEADER_SIZE + int(_field_bytes(rows).max()))
    # Two consecutive batches of one group together exceed the limit.
    room_in_one = max(limit - 2 * HEADER_SIZE, 1)
    most = min(rows.timestamps.size, len(groups) + 2 * most_bytes // room_in_one)
    table = np.empty((most, BATCH_NUMBERS), np.int64)
    out = room("batches", most_bytes + most * HEADER_SIZE, np.uint8)
    batch_count = write(source_of(rows), Cut(groups, limit, summed), table, out)
    if batch_count == UNSOUND:
        raise UserError("invalid Arrow array: its offsets decrease")
    table = table[:batch_count]
    _check_largest(int((table[:, END] - table[:, START]).max(initial=0)))
    return WrittenBatches(table.tolist(), out)


def _most_bytes(rows: Rows) -> int:
    """An upper bound of the records' size: every number has the longest encoding of its kind."""
    count = len(rows.timestamps)
    headers = int(rows.header_ends[-1]) if rows.header_ends.size else 0
    keys, values = _bytes_in(rows.keys), _bytes_in(rows.values)
    header_keys, header_values = _bytes_in(rows.header_keys), _bytes_in(rows.header_values)
    fields = keys + values + header_keys + header_values
    times = 1 if rows.timestamps.strides[0] == 0 else LONGEST_NUMBER
    beside = 1 + times + sum(map(_longest, (count, keys, values, headers)))
    per_header = _longest(header_keys) + _longest(header_values)
    total = fields + headers * per_header + count * beside
    return total + count * _longest(total)


def _bytes_in(column: Column) -> int:
    ends = column.ends
    return max(int(ends[-1]) - int(ends[0]), 0) if ends.size else 0


def _longest(most: int) -> int:
    """The encoded size of a number from -1 up to this."""
    return most.bit_length() // 7 + 1


def _field_bytes(rows: Rows) -> Ints:
    """The size of the fields of each row, without lengths and deltas."""
    sizes = np.zeros(rows.timestamps.size, np.int64)
    for column in (rows.keys, rows.values):
        if column.ends.size:
            sizes += np.diff(column.ends)
    for column in (rows.header_keys, rows.header_values):
        if column.ends.size and rows.header_ends.size:
            sizes += np.diff(column.ends[rows.header_ends])
    return sizes


def _check_largest(size: int) -> None:
    if size > LARGEST_BATCH:
        raise UserError(f"record of {size} bytes exceeds the largest batch ({LARGEST_BATCH} bytes)")
