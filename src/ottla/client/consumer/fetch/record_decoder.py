"""Record batches to rows.

Owns the choice between the native kernels and plain Python, which is used if the extra `arrow` is
not installed and is ten times as slow. Both skip control records and those of aborted transactions,
and return what precedes a corrupt batch first.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from struct import Struct
from typing import Final, NamedTuple, Protocol, TypeAlias

from ottla.client.consumer.record import NO_TIMESTAMP_TYPE, Headers
from ottla.protocol.records import legacy
from ottla.protocol.records.batch import crc_ok
from ottla.protocol.records.control import ControlType, control_type
from ottla.protocol.records.header import (
    HEADER_SIZE,
    MAGIC_AT,
    OVERHEAD,
    BatchHeader,
    CorruptBatch,
    magic_at,
    read_header,
)
from ottla.protocol.records.record import read_records

CURRENT_MAGIC: Final = 2
NO_EPOCH: Final = -1
PLAIN_BYTES: Final = 256 << 10
KERNELS: Final = "ottla.protocol.records.columns.record_lists"
_LENGTH: Final = Struct(">i")

Aborted: TypeAlias = Sequence[tuple[int, int]]
"""Producer id and first offset of each aborted transaction."""
Row: TypeAlias = tuple[int, int, int, bytes | None, bytes | None, Headers, int]


class RecordRows(NamedTuple):
    """Records as columns of equal length; a field all records share is a list all the same."""

    offsets: Sequence[int] = ()
    timestamps: Sequence[int] = ()
    types: Sequence[int] = ()
    keys: Sequence[bytes | None] = ()
    values: Sequence[bytes | None] = ()
    headers: Sequence[Headers] = ()
    epochs: Sequence[int] = ()

    def between(self, start: int, end: int) -> RecordRows:
        return RecordRows(
            self.offsets[start:end],
            self.timestamps[start:end],
            self.types[start:end],
            self.keys[start:end],
            self.values[start:end],
            self.headers[start:end],
            self.epochs[start:end],
        )


def entries(view: memoryview) -> Iterator[memoryview]:
    """Each whole batch, or message of an old format; a truncated tail is skipped."""
    position, end = 0, len(view)
    while end - position > MAGIC_AT:
        (length,) = _LENGTH.unpack_from(view, position + 8)
        magic = magic_at(view, position)
        least = HEADER_SIZE - OVERHEAD if magic == CURRENT_MAGIC else legacy.MIN_SIZE.get(magic)
        if least is None or length < least:
            raise CorruptBatch(f"batch of magic {magic} has length {length}", position)
        if length + OVERHEAD > end - position:
            return
        yield view[position : position + OVERHEAD + length]
        position += OVERHEAD + length


def end_of(view: memoryview) -> tuple[int, int]:
    """The offset after the last whole batch and that batch's leader epoch; -1, -1 without one.

    Hot: benchmarks/clients_consumer.py. Only lengths are read; `entries` checks a batch when it
    is decoded.
    """
    position, last, end = 0, -1, len(view)
    while end - position > MAGIC_AT:
        size = _LENGTH.unpack_from(view, position + 8)[0] + OVERHEAD
        if size <= MAGIC_AT:
            raise CorruptBatch(f"batch has length {size - OVERHEAD}", position)
        if size > end - position:
            break
        position, last = position + size, position
    if last < 0:
        return -1, NO_EPOCH
    if view[last + MAGIC_AT] != CURRENT_MAGIC:
        return int.from_bytes(view[last : last + 8], "big", signed=True) + 1, NO_EPOCH
    header = read_header(view, last)
    return header.next_offset, header.leader_epoch


class Decoded(NamedTuple):
    """Rows, and how to get those after them."""

    rows: RecordRows
    consumed: int
    aborted: Aborted
    more: bool
    """There is more to decode from `consumed` on, or an error to raise."""


class Decode(Protocol):
    def __call__(
        self, view: memoryview, start_offset: int, aborted: Aborted, *, check_crc: bool
    ) -> Decoded:
        """Every visible record from `start_offset` on, or CorruptBatch in the first batch."""
        ...


@cache
def decoder() -> Decode:
    """The native decoder if its libraries are installed."""
    return NativeWhenWorthIt() if find_spec("numba") else decode_plain


class NativeWhenWorthIt:
    """Decodes the first records of a process in Python.

    Loading the kernels takes a second, and several where they have never been compiled: longer
    than all that a program needs that reads a few records.
    """

    def __init__(self, plain_bytes: int = PLAIN_BYTES) -> None:
        self._plain_bytes = plain_bytes

    def __call__(
        self, view: memoryview, start_offset: int, aborted: Aborted, *, check_crc: bool
    ) -> Decoded:
        self._plain_bytes -= len(view)
        if self._plain_bytes < 0 or KERNELS in sys.modules:
            return decode_native(view, start_offset, aborted, check_crc=check_crc)
        return decode_plain(view, start_offset, aborted, check_crc=check_crc)


def decode_native(
    view: memoryview, start_offset: int, aborted: Aborted, *, check_crc: bool
) -> Decoded:
    """With native kernels, which are loaded when the first record is decoded."""
    from ottla.protocol.records.columns.record_lists import decode_records

    decoded = decode_records(view, start_offset=start_offset, aborted=aborted, check_crc=check_crc)
    rows = RecordRows(
        decoded.offsets,
        decoded.timestamps,
        decoded.timestamp_types,
        decoded.keys,
        decoded.values,
        decoded.headers,
        decoded.leader_epochs,
    )
    return Decoded(rows, decoded.consumed, decoded.aborted, decoded.more)


def decode_plain(
    view: memoryview, start_offset: int, aborted: Aborted, *, check_crc: bool
) -> Decoded:
    """Record by record."""
    aborted_filter, rows, consumed, more = _AbortedFilter(aborted), list[Row](), 0, False
    try:
        for entry in entries(view):
            rows += [
                row for row in _entry(entry, aborted_filter, check_crc) if row[0] >= start_offset
            ]
            consumed += len(entry)
    except CorruptBatch:
        if not consumed:
            raise
        more = True
    columns = RecordRows(*zip(*rows, strict=True)) if rows else RecordRows()
    return Decoded(columns, consumed, aborted_filter.remaining, more)


class _AbortedFilter:
    """Finds the batches of aborted transactions."""

    def __init__(self, aborted: Iterable[tuple[int, int]]) -> None:
        self._ahead = sorted(aborted, key=lambda entry: entry[1], reverse=True)
        self._aborted_producers: set[int] = set()

    @property
    def remaining(self) -> Aborted:
        """The aborted transactions that matter for the remaining batches."""
        return [*((producer, 0) for producer in self._aborted_producers), *reversed(self._ahead)]

    def skips(self, header: BatchHeader, batch: memoryview) -> bool:
        while self._ahead and self._ahead[-1][1] <= header.last_offset:
            self._aborted_producers.add(self._ahead.pop()[0])
        if header.is_control:
            marker = next(read_records(batch), None)
            if marker is not None and control_type(marker.key) == ControlType.ABORT:
                self._aborted_producers.discard(header.producer_id)
            return True
        return header.is_transactional and header.producer_id in self._aborted_producers


def _entry(entry: memoryview, aborted_filter: _AbortedFilter, check_crc: bool) -> Iterable[Row]:
    if entry[MAGIC_AT] != CURRENT_MAGIC:
        return _legacy(entry, check_crc)
    if check_crc and not crc_ok(entry):
        raise CorruptBatch("batch does not match its checksum")
    header = read_header(entry)
    if (header.is_transactional or header.is_control) and aborted_filter.skips(header, entry):
        return ()
    kind, epoch = header.timestamp_type, header.leader_epoch
    return (
        (offset, timestamp, kind, key, value, headers, epoch)
        for offset, timestamp, key, value, headers in read_records(entry)
    )


def _legacy(view: memoryview, check_crc: bool) -> Iterable[Row]:
    (entry,) = legacy.entries(view)
    if check_crc and not entry.crc_ok:
        raise CorruptBatch("message does not match its checksum")
    kind = entry.timestamp_type if entry.magic else NO_TIMESTAMP_TYPE
    return (
        (offset, timestamp, kind, key, value, headers, NO_EPOCH)
        for offset, timestamp, key, value, headers in legacy.records(entry)
    )
