"""What is known of a partition's producers at one offset: the `<offset>.snapshot` file.

Version, CRC-32C of what follows, count, and 46 bytes for each producer. Only the last of a
producer's remembered batches is kept. A file that fails its checksum is refused: the state is
derived again from an older snapshot and the batches after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

from ottla.model.ids import Offset
from ottla.protocol.records.crc import crc32c

SUFFIX: Final = ".snapshot"
VERSION: Final = 1
HEAD: Final = Struct(">hI")
COUNT: Final = Struct(">i")
ENTRY: Final = Struct(">qhiqiqiq")


class CorruptSnapshot(Exception):
    """A snapshot that is not what was written."""


class ProducerEntry(NamedTuple):
    """One producer; -1 where there is no sequence, offset, coordinator or open transaction."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: Offset
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    txn_first_offset: Offset


def encode(entries: Sequence[ProducerEntry]) -> bytes:
    body = COUNT.pack(len(entries)) + b"".join(ENTRY.pack(*entry) for entry in entries)
    return HEAD.pack(VERSION, crc32c(body)) + body


def decode(content: bytes) -> list[ProducerEntry]:
    if len(content) < HEAD.size + COUNT.size:
        raise CorruptSnapshot("snapshot is truncated")
    version, crc = HEAD.unpack_from(content)
    body = content[HEAD.size :]
    if version != VERSION:
        raise CorruptSnapshot(f"snapshot has unsupported version {version}")
    if crc32c(body) != crc:
        raise CorruptSnapshot("snapshot has an invalid checksum")
    (count,) = COUNT.unpack_from(body)
    if len(body) != COUNT.size + count * ENTRY.size:
        raise CorruptSnapshot(f"snapshot size does not match its {count} producers")
    return [ProducerEntry._make(fields) for fields in ENTRY.iter_unpack(body[COUNT.size :])]
