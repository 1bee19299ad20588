"""Selects the batches of a buffer that are read, by their headers alone.

Owns the walk over whole batches: checksums, control batches, aborted transactions, ranges that skip
a batch, decompression of the rest. Never reads records, except in a control batch and in the two
old formats, which are rewritten in the current one. Runs of ordinary batches are walked natively
(`walk_kernel`), and their checksums are verified when the records are read.

A corrupt batch stops the walk. The batches before it are returned first; CorruptBatch is raised
when it is the first one of a buffer.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from ottla.protocol.records import legacy
from ottla.protocol.records.columns.checksum import IS_QUICK
from ottla.protocol.records.columns.native import ByteArray, Ints, as_array
from ottla.protocol.records.columns.read_kernels import (
    CHECKED,
    CHECKSUM,
    LEAST_RECORD_BYTES,
    START,
    STOP,
    SUMMED_BYTES,
    TABLE_COLUMNS,
    Span,
)
from ottla.protocol.records.columns.walk_kernel import walk_ordinary
from ottla.protocol.records.compression import Bytes, decompress
from ottla.protocol.records.control import ControlType, control_type
from ottla.protocol.records.crc import crc32c
from ottla.protocol.records.header import (
    ATTRIBUTES_AT,
    CODEC_BITS,
    CONTROL_BIT,
    HEADER,
    HEADER_SIZE,
    MAGIC_AT,
    MAX_SEQUENCE,
    OVERHEAD,
    TRANSACTIONAL_BIT,
    BatchHeader,
    CorruptBatch,
)
from ottla.protocol.records.record import (
    INT64_MAX,
    MAX_INFLATED_BYTES,
    encode_record,
    read_records,
)

Aborted: TypeAlias = tuple[tuple[int, int], ...]  # (producer id, first offset)

START_OF_ENTRY: Final = Struct(">iib")  # length, leader epoch or checksum, magic
CURRENT_MAGIC: Final = 2
NO_EPOCH: Final = -1
NO_TIME_TYPE: Final = -1
ATTRIBUTE_BITS_AT: Final = ATTRIBUTES_AT + 1
WALKED_AT_ONCE: Final = 256  # batches


class Selection(NamedTuple):
    """The batches to read, as `read_kernels.scan` takes them, and the position of the walk."""

    data: ByteArray  # all sections, in the buffer they came in or inflated into one
    batches: Ints  # a row per batch
    consumed: int  # bytes of the buffer
    next_offset: int
    leader_epoch: int
    aborted: Aborted  # what the walk of the rest must know
    more: bool  # stopped before the end, at a limit or a fault


Section: TypeAlias = tuple[tuple[int, ...], bytes | None]
"""A row of the table, and the records' bytes if they were decompressed or rewritten."""


class Selector:
    """One walk. Its state is the position and the transactions known to be aborted."""

    def __init__(self, buffer: Bytes, span: Span, aborted: Iterable[tuple[int, int]]) -> None:
        self._view = memoryview(buffer).toreadonly().cast("B")
        self._span = span
        self._waiting = sorted(aborted, key=lambda entry: entry[1], reverse=True)
        self._failed: dict[int, int] = {}

    def run(self, *, check_crc: bool, max_bytes: int, max_batches: int | None = None) -> Selection:
        """Walk to the end, to the first corrupt batch, or until the sections exceed a limit.

        Hot where batches are small: benchmarks/columns.py.
        """
        sections = Sections(self._view, INT64_MAX if max_batches is None else max_batches)
        position, bytes_left, more = 0, max_bytes, False
        next_offset, leader_epoch = self._span.start_offset, NO_EPOCH
        while next_offset < self._span.end_offset:
            if self._is_ordinary(position, check_crc):
                state = self._special, bytes_left, next_offset
                end, bytes_left, next_offset, epoch = sections.walk(
                    position, self._span, state, check_crc
                )
                if end > position:
                    position, leader_epoch = end, epoch
                    continue
            try:
                size = self._size(position)
                if not size:
                    break
                section, end, epoch = self._read(position, size, check_crc)
            except CorruptBatch:
                if position == 0:
                    raise
                more = True
                break
            if section is not None:
                bytes_left -= section[0][STOP] - section[0][START]
                if sections.are_full or (bytes_left < 0 and sections.count):
                    more = True
                    break
                sections.add(section)
            position += size
            leader_epoch = epoch
            if end > next_offset:
                next_offset = end
        data, table = sections.laid_out()
        aborted = (*self._failed.items(), *reversed(self._waiting))
        next_offset = min(next_offset, self._span.end_offset)
        return Selection(data, table, position, next_offset, leader_epoch, aborted, more)

    def _is_ordinary(self, position: int, check_crc: bool) -> bool:
        """Whether the native walk may accept the batch at `position`."""
        view = self._view
        return (
            (IS_QUICK or not check_crc)
            and len(view) - position >= HEADER_SIZE
            and view[position + MAGIC_AT] == CURRENT_MAGIC
            and not view[position + ATTRIBUTE_BITS_AT] & self._special
        )

    @property
    def _special(self) -> int:
        """The attributes of batches that are read one by one."""
        if self._waiting or self._failed:
            return CODEC_BITS | CONTROL_BIT | TRANSACTIONAL_BIT
        return CODEC_BITS | CONTROL_BIT

    def _size(self, position: int) -> int:
        """The size of the entry at `position`; 0 if it is incomplete."""
        available = len(self._view) - position
        if available <= MAGIC_AT:
            return 0
        length, _, magic = START_OF_ENTRY.unpack_from(self._view, position + 8)
        size: int = length + OVERHEAD
        if magic == CURRENT_MAGIC and size >= HEADER_SIZE:
            return size if size <= available else 0
        if size < OVERHEAD + legacy.MIN_SIZE.get(magic, INT64_MAX):
            raise CorruptBatch(f"batch of magic {magic} has invalid length {length}", position)
        return size if size <= available else 0

    def _read(self, position: int, size: int, check_crc: bool) -> tuple[Section | None, int, int]:
        """The records of the entry at `position`, if any is wanted; its next offset; its epoch."""
        view = self._view
        if view[position + MAGIC_AT] != CURRENT_MAGIC:
            return self._read_legacy(position, size, check_crc)
        header = HEADER.unpack_from(view, position)
        base, _, epoch, _, crc, attributes, delta, base_time, max_time, _, _, _, count = header
        end = base + delta + 1
        if not 0 <= base <= end <= INT64_MAX:
            raise CorruptBatch(f"batch has invalid offsets {base} to {end - 1}", position)
        special = attributes & (TRANSACTIONAL_BIT | CONTROL_BIT)
        time_type = attributes >> 3 & 1
        outside = self._outside(base, end, max_time, time_type)
        if outside and not special:
            return None, end, epoch
        if check_crc and crc32c(view[position + ATTRIBUTES_AT : position + size]) != crc:
            raise CorruptBatch("batch does not match its checksum", position)
        if special and (self._is_void(BatchHeader._make(header), position, size) or outside):
            return None, end, epoch
        start, stop, rewritten = position + HEADER_SIZE, position + size, None
        if attributes & CODEC_BITS:
            codec = BatchHeader._make(header).codec
            rewritten = decompress(codec, view[start:stop], MAX_INFLATED_BYTES)
            start, stop = 0, len(rewritten)
        if not 0 <= count * LEAST_RECORD_BYTES <= stop - start:
            raise CorruptBatch(f"batch has invalid record count {count}", position)
        numbers = (start, stop, count, base, delta, base_time, max_time, time_type, epoch, CHECKED)
        return (numbers, rewritten), end, epoch

    def _outside(self, base: int, end: int, newest: int, time_type: int) -> bool:
        """Whether the header alone shows that no record lies in the span."""
        start_offset, end_offset, start_time, end_time = self._span
        return (
            end <= start_offset
            or base >= end_offset
            or newest < start_time
            or (newest >= end_time and time_type == 1)
        )

    def _is_void(self, header: BatchHeader, position: int, size: int) -> bool:
        """Whether a transactional batch is a marker, or part of an aborted transaction."""
        while self._waiting and self._waiting[-1][1] <= header.last_offset:
            producer_id, first_offset = self._waiting.pop()
            self._failed[producer_id] = first_offset
        if not header.is_control:
            return header.is_transactional and header.producer_id in self._failed
        if header.producer_id in self._failed:
            marker = next(read_records(self._view[position : position + size]), None)
            if marker is not None and control_type(marker.key) == ControlType.ABORT:
                del self._failed[header.producer_id]
        return True

    def _read_legacy(
        self, position: int, size: int, check_crc: bool
    ) -> tuple[Section | None, int, int]:
        """A message of an old format, or a compressed set of them, as the section of a batch."""
        (entry,) = legacy.entries(self._view[position : position + size])
        if check_crc and not entry.crc_ok:
            raise CorruptBatch("message does not match its checksum", position)
        records = legacy.records(entry, max_bytes=MAX_INFLATED_BYTES)
        base, last, base_time = records[0].offset, records[-1].offset, records[0].timestamp
        if not 0 <= base <= last < INT64_MAX or last - base > MAX_SEQUENCE:
            raise CorruptBatch(f"message has invalid offsets {base} to {last}", position)
        rewritten = b"".join(
            encode_record(record.offset - base, record.timestamp - base_time, record)
            for record in records
        )
        time_type = entry.timestamp_type if entry.magic else NO_TIME_TYPE
        numbers: tuple[int, ...] = (0, len(rewritten), len(records), base, last - base)
        numbers = (*numbers, base_time, base_time, time_type, NO_EPOCH, CHECKED)
        return (numbers, rewritten), last + 1, NO_EPOCH


class Sections:
    """The selected batches, at most so many: the table, and the rewritten sections."""

    def __init__(self, view: memoryview, most: int) -> None:
        self._data = as_array(view)
        self._view = view
        self._most = most
        self.count = 0
        self._tables: list[Ints] = []
        self._rows: list[tuple[int, ...]] = []  # that are in none of the tables yet
        self._rewritten: dict[int, bytes] = {}

    @property
    def are_full(self) -> bool:
        return self.count == self._most

    def add(self, section: Section) -> None:
        numbers, rewritten = section
        if rewritten is not None:
            self._rewritten[self.count] = rewritten
        self._rows.append(numbers)
        self.count += 1

    def walk(
        self, position: int, span: Span, state: tuple[int, int, int], check_crc: bool
    ) -> tuple[int, int, int, int]:
        """Add ordinary batches from `position` on; the new state, as of `walk_ordinary`."""
        room = min(WALKED_AT_ONCE, self._most - self.count)
        table = np.empty((room, TABLE_COLUMNS), np.int64)
        count, *stopped = walk_ordinary(self._data, position, span, state, table)
        if count:
            table = table[:count]
            if not check_crc:
                table[:, CHECKSUM] = CHECKED
            self._close_rows()
            self._tables.append(table)
            self.count += count
        position, left, next_offset, epoch = stopped
        return position, left, next_offset, epoch

    def laid_out(self) -> tuple[ByteArray, Ints]:
        """One buffer with all sections, and the table of their positions."""
        self._close_rows()
        tables = self._tables
        table = tables[0] if len(tables) == 1 else np.concatenate([_NONE, *tables])
        if not self._rewritten:
            return self._data, table
        parts: list[Bytes] = []
        end = 0
        for index, numbers in enumerate(table):
            rewritten = self._rewritten.get(index)
            # With the part of its header that its checksum covers, if that is to be verified.
            part = rewritten if rewritten is not None else self._with_summed(numbers)
            parts.append(part)
            start, end = end, end + len(part)
            numbers[START] = start if rewritten is not None else start + SUMMED_BYTES
            numbers[STOP] = end
        return as_array(parts[0] if len(parts) == 1 else b"".join(parts)), table

    def _with_summed(self, numbers: Ints) -> memoryview:
        return self._view[numbers[START] - SUMMED_BYTES : numbers[STOP]]

    def _close_rows(self) -> None:
        if self._rows:
            self._tables.append(np.array(self._rows, np.int64))
            self._rows = []


_NONE: Final = np.empty((0, TABLE_COLUMNS), np.int64)
