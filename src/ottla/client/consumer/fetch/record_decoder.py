"""Record batches to rows.

Owns the choice between the native kernels and the plain Python that runs where the extra `arrow`
is not installed, ten times as slow. Either leaves out control records and those of aborted
transactions, and gives what comes before a batch that does not read first.
"""

from __future__ import annotations

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
_LENGTH: Final = Struct(">i")

Aborted: TypeAlias = Sequence[tuple[int, int]]
"""Producer id and first offset of each transaction that failed."""
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
    """Each whole batch, or message of an old format; a tail that is cut short is left out."""
    at, end = 0, len(view)
    while end - at > MAGIC_AT:
        (length,) = _LENGTH.unpack_from(view, at + 8)
        magic = magic_at(view, at)
        least = HEADER_SIZE - OVERHEAD if magic == CURRENT_MAGIC else legacy.MIN_SIZE.get(magic)
        if least is None or length < least:
            raise CorruptBatch(f"batch of magic {magic} has length {length}", at)
        if length + OVERHEAD > end - at:
            return
        yield view[at : at + OVERHEAD + length]
        at += OVERHEAD + length


def end_of(view: memoryview) -> tuple[int, int]:
    """The offset after the last whole batch and that batch's leader epoch; -1, -1 without one.

    Hot: benchmarks/clients_consumer.py. Only lengths are looked at on the way; `entries` finds
    fault with a batch when it is decoded.
    """
    at, last, end = 0, -1, len(view)
    while end - at > MAGIC_AT:
        size = _LENGTH.unpack_from(view, at + 8)[0] + OVERHEAD
        if size <= MAGIC_AT:
            raise CorruptBatch(f"batch has length {size - OVERHEAD}", at)
        if size > end - at:
            break
        at, last = at + size, at
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
    """From `consumed` on there is more to decode, or a fault to raise."""


class Decode(Protocol):
    def __call__(
        self, view: memoryview, start_offset: int, aborted: Aborted, *, check_crc: bool
    ) -> Decoded:
        """Every record from `start_offset` on that a user may see; CorruptBatch if the first batch
        does not read."""
        ...


@cache
def decoder() -> Decode:
    """The native one, where its libraries are installed."""
    return decode_native if find_spec("numba") else decode_plain


def decode_native(
    view: memoryview, start_offset: int, aborted: Aborted, *, check_crc: bool
) -> Decoded:
    """By kernels that take a moment to load, hence only when the first record is decoded."""
    from ottla.protocol.records.columns.record_lists import decode_records

    found = decode_records(view, start_offset=start_offset, aborted=aborted, check_crc=check_crc)
    rows = RecordRows(
        found.offsets,
        found.timestamps,
        found.timestamp_types,
        found.keys,
        found.values,
        found.headers,
        found.leader_epochs,
    )
    return Decoded(rows, found.consumed, found.aborted, found.more)


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
    return Decoded(columns, consumed, aborted_filter.left, more)


class _AbortedFilter:
    """Which batches of transactions nobody may see."""

    def __init__(self, aborted: Iterable[tuple[int, int]]) -> None:
        self._waiting = sorted(aborted, key=lambda entry: entry[1], reverse=True)
        self._failed: set[int] = set()

    @property
    def left(self) -> Aborted:
        """What a walk over the rest must know."""
        return [*((producer, 0) for producer in self._failed), *reversed(self._waiting)]

    def covers(self, header: BatchHeader, batch: memoryview) -> bool:
        while self._waiting and self._waiting[-1][1] <= header.last_offset:
            self._failed.add(self._waiting.pop()[0])
        if header.is_control:
            marker = next(read_records(batch), None)
            if marker is not None and control_type(marker.key) == ControlType.ABORT:
                self._failed.discard(header.producer_id)
            return True
        return header.is_transactional and header.producer_id in self._failed


def _entry(entry: memoryview, aborted_filter: _AbortedFilter, check_crc: bool) -> Iterable[Row]:
    if entry[MAGIC_AT] != CURRENT_MAGIC:
        return _legacy(entry, check_crc)
    if check_crc and not crc_ok(entry):
        raise CorruptBatch("batch does not match its checksum")
    header = read_header(entry)
    if (header.is_transactional or header.is_control) and aborted_filter.covers(header, entry):
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
