"""The offset, time and transaction index as rows, each entry compared with the log.

Owns: what makes an index entry wrong. Never: changes an index; a wrong one is rebuilt by the
broker, not here. An index that Kafka preallocated ends in zeros: the rest is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from ottla.log.dump.rows import DumpError, DumpOptions, Item, Note, Row, bad_byte, base_offset
from ottla.log.dump.segment_dump import timestamps
from ottla.log.files import Disk, File
from ottla.log.index import txn_index
from ottla.log.index.sparse_index import OffsetIndex, TimeIndex
from ottla.log.stored_batch import StoredBatch, walk_whole
from ottla.protocol.records.header import CorruptBatch

_ABORTED: Final = ("version", "producerId", "firstOffset", "lastOffset", "lastStableOffset")


class _Log(NamedTuple):
    """The log file beside an index."""

    file: File
    size: int

    @classmethod
    def beside(cls, index: Path, disk: Disk) -> _Log:
        path = index.with_suffix(".log")
        return cls(disk.open_read(path), disk.file_size(path))

    def reaching(self, offset: int, position: int) -> tuple[StoredBatch, memoryview] | None:
        """The first batch at or after a position that ends at `offset` or later."""
        if position < 0:  # only in a damaged index
            return None
        try:
            for batch, content in walk_whole(self.file, position, self.size):
                if batch.last_offset >= offset:
                    return batch, content
        except CorruptBatch:
            return None
        return None


def dump_offset_index(path: Path, disk: Disk, options: DumpOptions) -> Iterator[Item]:
    content, base = disk.read(path), base_offset(path)
    entries = _used_entries(content, OffsetIndex.ENTRY)
    if not entries:
        yield Note(f"{path} is empty.")
        return
    if options.index_sanity_check:
        yield from _sanity(path, content, [offset for offset, _ in entries], OffsetIndex.ENTRY)
        return
    log = _Log.beside(path, disk)
    for relative, position in entries:
        there = log.reaching(-1, position)
        last_offset = -1 if there is None else there[0].last_offset
        if last_offset != base + relative:
            yield DumpError(
                f"Mismatches in :{path.absolute()}",
                f"  Index offset: {base + relative}, log offset: {last_offset}",
            )
        if not options.verify_index_only:
            yield Row({"offset": base + relative, "position": position})
    yield from _tail(path, content, OffsetIndex.ENTRY)


def dump_time_index(path: Path, disk: Disk, options: DumpOptions) -> Iterator[Item]:
    content, base = disk.read(path), base_offset(path)
    entries = _used_entries(content, TimeIndex.ENTRY)
    if options.index_sanity_check:
        yield from _sanity(path, content, [stamp for stamp, _ in entries], TimeIndex.ENTRY)
        return
    log = _Log.beside(path, disk)
    offsets = path.with_suffix(".index")
    positions = _used_entries(
        disk.read(offsets) if disk.exists(offsets) else b"", OffsetIndex.ENTRY
    )
    previous = -1
    for timestamp, relative in entries:
        start = max((at for to, at in positions if to <= relative), default=0)
        there = log.reaching(base + relative, start)
        yield from _time_faults(path, (timestamp, base + relative), there)
        if previous >= timestamp:
            yield DumpError(
                f"Found out of order timestamp in :{path.absolute()}",
                f"  Index timestamp: {timestamp}, Previously indexed timestamp: {previous}",
            )
        previous = timestamp
        if not options.verify_index_only:
            yield Row({"timestamp": timestamp, "offset": base + relative})
    yield from _tail(path, content, TimeIndex.ENTRY)


def dump_transaction_index(path: Path, disk: Disk) -> Iterator[Item]:
    content, entry = disk.read(path), txn_index.ENTRY
    for at in range(0, len(content) - len(content) % entry.size, entry.size):
        fields = entry.unpack_from(content, at)
        if fields[0] != txn_index.VERSION:
            yield bad_byte(path, at, f"entry has version {fields[0]}")
            return
        yield Row(dict(zip(_ABORTED, fields, strict=True)))
    yield from _tail(path, content, entry)


def _used_entries(content: bytes, layout: Struct) -> list[tuple[int, int]]:
    """The entries before the zeros of a preallocated file."""
    whole = len(content) - len(content) % layout.size
    entries: list[tuple[int, int]] = []
    for entry in layout.iter_unpack(content[:whole]):
        if not any(entry):
            break
        entries.append(entry)
    return entries


def _tail(path: Path, content: bytes, layout: Struct) -> Iterator[Item]:
    if extra := len(content) % layout.size:
        yield bad_byte(path, len(content) - extra, "entry is truncated")


def _sanity(path: Path, content: bytes, keys: list[int], layout: Struct) -> Iterator[Item]:
    """The check that decides at start whether an index is rebuilt."""
    if len(content) % layout.size:
        yield from _tail(path, content, layout)
    elif keys and keys[-1] < max(keys[0], 0):
        yield bad_byte(path, layout.size * (len(keys) - 1), "the last entry is below the first")
    else:
        yield Note(f"{path} passed sanity check.")


def _time_faults(
    path: Path, indexed: tuple[int, int], batch: tuple[StoredBatch, memoryview] | None
) -> Iterator[DumpError]:
    timestamp, offset = indexed
    last_offset = -1 if batch is None else batch[0].last_offset
    if batch is None or last_offset != offset:
        yield DumpError(
            "The following indexed offsets are not found in the log.",
            f"Indexed offset: {offset}, found log offset: {last_offset}",
        )
        return
    try:
        largest = max(timestamps(*batch), default=-1)
    except CorruptBatch as fault:
        yield bad_byte(path.with_suffix(".log"), batch[0].position, fault.reason)
        return
    if largest != timestamp:
        yield DumpError(
            f"Found timestamp mismatch in :{path.absolute()}",
            f"  Index timestamp: {timestamp}, log timestamp: {largest}",
        )
