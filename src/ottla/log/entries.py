"""A log file as a run of whole entries, of any message format, in bounded memory.

Owns: finding where one entry ends and the next begins, and saying where that stops being so.
Never: checks a checksum or opens a record. Compaction and the dump tool read files through it.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, Protocol

from ottla.log.slices import FileSlice
from ottla.protocol.records.batch import CURRENT_MAGIC, HEADER_SIZE, OVERHEAD, read_header
from ottla.protocol.records.corrupt import CorruptBatch

CHUNK_BYTES: Final = 256 * 1024
MAGIC_AT: Final = 16
LEAST_SIZE: Final = {0: 26, 1: 34, 2: HEADER_SIZE}  # by magic: an entry without key or value

_OFFSET: Final = Struct(">q")
_LENGTH: Final = Struct(">i")


class Readable(Protocol):
    """All that is asked of an open file. A slice keeps it open on whichever thread reads it."""

    def slice(self, position: int, size: int) -> FileSlice: ...


def entries(file: Readable, start: int, end: int) -> Iterator[tuple[int, memoryview]]:
    """Position and bytes of each whole entry between two positions of a file.

    Raises CorruptBatch, with its position in the file, where no entry can be: an impossible length
    or format, or an entry that runs past `end`.
    """
    at, chunk_at, chunk = start, start, b""
    while at < end:
        if at + MAGIC_AT >= chunk_at + len(chunk):
            chunk_at, chunk = at, _read(file, at, end, CHUNK_BYTES)
        size = _size(chunk, at - chunk_at, at, end)
        if at + size > chunk_at + len(chunk):
            chunk_at, chunk = at, _read(file, at, end, max(size, CHUNK_BYTES))
        if len(chunk) < size:
            raise CorruptBatch("the file is shorter than it should be", chunk_at + len(chunk))
        yield at, memoryview(chunk)[at - chunk_at : at - chunk_at + size]
        at += size


def last_offset(entry: memoryview) -> int:
    """The last offset of an entry; in the older formats a set is named by its last message."""
    offset: int = _OFFSET.unpack_from(entry)[0]
    return read_header(entry).last_offset if entry[MAGIC_AT] == CURRENT_MAGIC else offset


def _read(file: Readable, at: int, end: int, size: int) -> bytes:
    return file.slice(at, min(size, end - at)).read()


def _size(chunk: bytes, offset: int, at: int, end: int) -> int:
    """The size of the entry at `at`, if there can be one."""
    if len(chunk) - offset <= MAGIC_AT:
        raise CorruptBatch("entry is cut short", at)
    magic = chunk[offset + MAGIC_AT]
    if magic not in LEAST_SIZE:
        raise CorruptBatch(f"entry has magic {magic}", at + MAGIC_AT)
    length: int = _LENGTH.unpack_from(chunk, offset + 8)[0]
    size = length + OVERHEAD
    if size < LEAST_SIZE[magic]:
        raise CorruptBatch(f"entry has length {length}", at + 8)
    if at + size > end:
        raise CorruptBatch(f"entry of {size} bytes is cut short", at)
    return size
