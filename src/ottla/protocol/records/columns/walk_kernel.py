"""The kernel that walks over ordinary batches by their headers. Hot: benchmarks/columns.py.

Owns what an ordinary batch is: of the current format, not compressed, no marker, complete, with
valid numbers. It stops at any other batch and leaves it to `select`, which reads all kinds and
reports errors. Never reads records or a checksum.
"""

from __future__ import annotations

from typing import Final

from ottla.protocol.records.columns.native import (
    ByteArray,
    Ints,
    address,
    inlined,
    load_byte,
    native,
)
from ottla.protocol.records.columns.read_kernels import (
    APPEND_TIME,
    BASE_OFFSET,
    BASE_TIME,
    CHECKSUM,
    COUNT,
    EPOCH,
    INT64_MAX,
    LAST_DELTA,
    LEAST_RECORD_BYTES,
    START,
    STOP,
    TIME_TYPE,
    Span,
)
from ottla.protocol.records.header import HEADER_SIZE, OVERHEAD

CURRENT_MAGIC: Final = 2
LAST_BASE_OFFSET: Final = INT64_MAX - 2**32  # beyond it, offsets might not be numbers any more


@inlined
def number(position: int, size: int) -> int:
    """An unsigned number of so many bytes, or a signed one of eight."""
    value = 0
    for index in range(size):
        value = value << 8 | load_byte(position + index)
    return value


@inlined
def int32(position: int) -> int:
    return (number(position, 4) ^ 0x8000_0000) - 0x8000_0000


@inlined
def outside(span: Span, base: int, end: int, newest: int, time_type: int) -> bool:
    """Whether the header alone shows that no record lies in the span."""
    return (
        end <= span.start_offset
        or base >= span.end_offset
        or newest < span.start_time
        or (newest >= span.end_time and time_type == 1)
    )


@native
def walk_ordinary(
    data: ByteArray, position: int, span: Span, state: tuple[int, int, int], table: Ints
) -> tuple[int, int, int, int, int]:
    """Note ordinary batches in the table, from `position` on, as long as there is room in it.

    The state: which attributes make a batch another than an ordinary one, how many bytes of records
    there may be, and the offset after the last batch. Gives how many batches were noted, where it
    stopped, how many bytes are left, the offset after the last batch and its leader epoch.
    """
    special, bytes_left, next_offset = state
    start, row, epoch = address(data), 0, -1
    while (
        row < table.shape[0]
        and data.size - position >= HEADER_SIZE
        and next_offset < span.end_offset
    ):
        head = start + position
        size = int32(head + 8) + OVERHEAD
        attributes = number(head + 21, 2)
        if load_byte(head + 16) != CURRENT_MAGIC or attributes & special:
            break
        base, delta, newest = number(head, 8), int32(head + 23), number(head + 35, 8)
        if not HEADER_SIZE <= size <= data.size - position or delta < -1:
            break
        if not 0 <= base <= LAST_BASE_OFFSET:
            break
        end, time_type = base + delta + 1, attributes >> 3 & 1
        if not outside(span, base, end, newest, time_type):
            count, section = int32(head + 57), size - HEADER_SIZE
            if not 0 <= count * LEAST_RECORD_BYTES <= section or section > bytes_left:
                break
            bytes_left -= section
            numbers = table[row]
            numbers[START], numbers[STOP], numbers[COUNT] = (
                position + HEADER_SIZE,
                position + size,
                count,
            )
            numbers[BASE_OFFSET], numbers[LAST_DELTA] = base, delta
            numbers[BASE_TIME], numbers[APPEND_TIME] = number(head + 27, 8), newest
            numbers[TIME_TYPE], numbers[EPOCH] = time_type, int32(head + 12)
            numbers[CHECKSUM] = number(head + 17, 4)
            row += 1
        position += size
        epoch = int32(head + 12)
        next_offset = max(next_offset, end)
    return row, position, bytes_left, next_offset, epoch
