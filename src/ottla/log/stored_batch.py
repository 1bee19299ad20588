"""Batches as they lie in a `.log` file, of any format (v0, v1, v2), without their records.

Owns how to step from one to the next and how to tell that one is whole. Never inflates, never
converts. In v0 and v1 an entry is one message, or one compressed set of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

from ottla.log.files import File
from ottla.protocol.records.batch import (
    HEADER_SIZE,
    OVERHEAD,
    BatchHeader,
    CorruptBatch,
    crc_ok,
    read_header,
)

__all__ = [
    "HEADER_SIZE",
    "LEAST_BYTES",
    "StoredBatch",
    "checksum_ok",
    "parse",
    "walk_headers",
    "walk_whole",
]

CHUNK_BYTES: Final = 256 * 1024
PEEK_BYTES: Final = 4_096
LEAST_BYTES: Final = OVERHEAD + 14  # the smallest entry of the oldest format
LEAST_LENGTH: Final = {0: 14, 1: 22, 2: HEADER_SIZE - OVERHEAD}
_PREFIX: Final = Struct(">qiIbb")  # offset, length, checksum, magic, attributes: v0 and v1
_TIMESTAMP: Final = Struct(">q")
_LENGTH: Final = Struct(">i")
_LEGACY_CRC_AT: Final = 12
_LEGACY_TIMESTAMP_AT: Final = 18


class StoredBatch(NamedTuple):
    """One entry of a log file. In v0 and v1 both offsets are the one the entry carries."""

    position: int
    size: int
    magic: int
    base_offset: int
    last_offset: int
    max_timestamp: int
    leader_epoch: int
    header: BatchHeader | None  # v2 only

    @property
    def next_position(self) -> int:
        return self.position + self.size


def parse(view: bytes | memoryview, at: int, position: int) -> StoredBatch:
    """The entry at `at` of a buffer, which lies at `position` of its file."""
    if len(view) - at < LEAST_BYTES:
        raise CorruptBatch("entry is truncated", position)
    magic = view[at + 16]
    (length,) = _LENGTH.unpack_from(view, at + 8)
    least = LEAST_LENGTH.get(magic)
    if least is None:
        raise CorruptBatch(f"entry has unsupported magic {magic}", position)
    if length < least:
        raise CorruptBatch(f"entry has invalid length {length}", position)
    if magic == 2:
        if len(view) - at < HEADER_SIZE:
            raise CorruptBatch("entry is truncated", position)
        header = read_header(view, at)
        return StoredBatch(
            position,
            length + OVERHEAD,
            magic,
            header.base_offset,
            header.base_offset + header.last_offset_delta,
            header.max_timestamp,
            header.leader_epoch,
            header,
        )
    offset = _PREFIX.unpack_from(view, at)[0]
    stamp = _TIMESTAMP.unpack_from(view, at + _LEGACY_TIMESTAMP_AT)[0] if magic else -1
    return StoredBatch(position, length + OVERHEAD, magic, offset, offset, stamp, -1, None)


def checksum_ok(batch: StoredBatch, content: bytes | memoryview) -> bool:
    """Whether the content of one entry is what its checksum was computed from."""
    if batch.magic == 2:
        return crc_ok(content)
    (stored,) = Struct(">I").unpack_from(content, _LEGACY_CRC_AT)
    return bool(crc32(memoryview(content)[_LEGACY_CRC_AT + 4 : batch.size]) == stored)


def walk_headers(file: File, start: int, end: int) -> Iterator[StoredBatch]:
    """Each entry in [start, end), reading little more than headers; CorruptBatch at a bad one."""
    position = start
    while position < end:
        chunk = file.pread(min(PEEK_BYTES, end - position), position)
        at = 0
        while True:
            batch = parse(chunk, at, position + at)
            if batch.next_position > end:
                raise CorruptBatch("entry extends past the end of the file", batch.position)
            yield batch
            at += batch.size
            if len(chunk) - at < HEADER_SIZE:
                break
        position += at


def walk_whole(file: File, start: int, end: int) -> Iterator[tuple[StoredBatch, memoryview]]:
    """Each entry in [start, end) with its bytes; CorruptBatch at a bad one."""
    position, chunk = start, memoryview(b"")
    at = 0
    while position < end:
        if len(chunk) - at < HEADER_SIZE:
            chunk, at = _read(file, position, end, CHUNK_BYTES), 0
        batch = parse(chunk, at, position)
        if batch.next_position > end:
            raise CorruptBatch("entry extends past the end of the file", position)
        if at + batch.size > len(chunk):
            chunk, at = _read(file, position, end, max(batch.size, CHUNK_BYTES)), 0
        if batch.size > len(chunk):
            raise CorruptBatch("file ends before the expected size", position)
        yield batch, chunk[at : at + batch.size]
        at += batch.size
        position += batch.size


def _read(file: File, position: int, end: int, size: int) -> memoryview:
    return memoryview(file.pread(min(size, end - position), position))
