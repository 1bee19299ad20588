"""Whole record batches (message format v2): checksum, walking a buffer of them, building one.

Owns the operations on whole batches. Never decompresses or reads records, except to write new ones
in `build`; never reads a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from struct import Struct
from typing import Final, TypeAlias

from ottla.protocol.records.compression import Bytes, Codec, compress
from ottla.protocol.records.crc import crc32c
from ottla.protocol.records.header import (
    ATTRIBUTES_AT,
    CONTROL_BIT,
    CRC_AT,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_SIZE,
    NO_TIMESTAMP,
    OVERHEAD,
    TRANSACTIONAL_BIT,
    BatchHeader,
    CorruptBatch,
    magic_at,
    read_header,
)
from ottla.protocol.records.record import NewRecord, Record, encode_record, encode_varint

__all__ = [
    "HEADER",
    "HEADER_SIZE",
    "OVERHEAD",
    "BatchHeader",
    "CorruptBatch",
    "Pair",
    "build",
    "build_plain",
    "compute_crc",
    "crc_ok",
    "magic_at",
    "read_header",
    "set_offsets",
    "stamp",
    "walk",
]

HEAD: Final = Struct(">qii")
LENGTH: Final = Struct(">i")
CRC: Final = Struct(">I")
ATTRIBUTES: Final = Struct(">h")
PRODUCER: Final = Struct(">qhi")
PRODUCER_AT: Final = 43
CURRENT_MAGIC: Final = 2
_HEAD: Final = Struct(">qiibI")  # the header up to the checksum
_CHECKED: Final = Struct(">hiqqqhii")  # and the rest of it

Pair: TypeAlias = "tuple[bytes, bytes | None]"
"""A key and its value; None is a tombstone."""


class _Sizes(dict[int, bytes]):
    """Encoded sizes; most of them are computed in advance."""

    def __missing__(self, size: int) -> bytes:
        return encode_varint(size)


_SIZES: Final = _Sizes((size, encode_varint(size)) for size in range(256))


def compute_crc(batch: Bytes) -> int:
    """CRC-32C of one whole batch, from its attributes to its end."""
    return crc32c(memoryview(batch)[ATTRIBUTES_AT:])


def crc_ok(batch: Bytes) -> bool:
    """Whether a batch matches its checksum."""
    (stored,) = CRC.unpack_from(batch, CRC_AT)
    return bool(crc32c(memoryview(batch)[ATTRIBUTES_AT:]) == stored)


def walk(view: Bytes) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each complete batch; an incomplete batch at the end is ignored.

    Raises CorruptBatch at a batch of another format or with an invalid length.
    """
    position, end = 0, len(view)
    while end - position >= HEADER_SIZE:
        header = BatchHeader._make(HEADER.unpack_from(view, position))
        if header.magic != CURRENT_MAGIC:
            raise CorruptBatch(f"batch has unsupported magic {header.magic}", position)
        size = header.length + OVERHEAD
        if size < HEADER_SIZE:
            raise CorruptBatch(f"batch has invalid length {header.length}", position)
        if size > end - position:
            return
        yield position, header
        position += size


def set_offsets(head: bytearray | memoryview, base_offset: int, leader_epoch: int) -> None:
    """Set base offset and leader epoch of the batch that starts with `head` (at least 16 bytes)."""
    HEAD.pack_into(head, 0, base_offset, LENGTH.unpack_from(head, 8)[0], leader_epoch)


def stamp(
    batch: bytearray | memoryview,
    *,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    transactional: bool = False,
    checksum: Callable[[Bytes], int] = compute_crc,
) -> None:
    """Set the producer's id, epoch and sequence in a finished batch, and its checksum.

    `checksum` may be a faster function, if the checksum of the records is known.
    """
    (attributes,) = ATTRIBUTES.unpack_from(batch, ATTRIBUTES_AT)
    attributes &= ~TRANSACTIONAL_BIT
    attributes |= TRANSACTIONAL_BIT if transactional else 0
    ATTRIBUTES.pack_into(batch, ATTRIBUTES_AT, attributes)
    PRODUCER.pack_into(batch, PRODUCER_AT, producer_id, producer_epoch, base_sequence)
    CRC.pack_into(batch, CRC_AT, checksum(batch))


def build(  # noqa: PLR0913 - the fields of a header, by name
    records: Iterable[Record | NewRecord],
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    timestamp_type: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    delete_horizon_ms: int | None = None,
    last_offset_delta: int | None = None,
    max_timestamp: int | None = None,
) -> bytes:
    """One batch of these records.

    A `Record` keeps its offset, which may leave gaps; a `NewRecord` takes the next one. The last
    two arguments override the records: compaction keeps a last offset, a leader sets its time.
    """
    records = list(records)
    first_timestamp = records[0].timestamp if records else NO_TIMESTAMP
    base_timestamp = first_timestamp if delete_horizon_ms is None else delete_horizon_ms
    section, delta = _encode_records(records, base_offset, base_timestamp)
    codec = codec if records else Codec.NONE
    section = compress(codec, section, level) if codec else section
    attributes = (
        codec
        | timestamp_type << 3
        | (TRANSACTIONAL_BIT if transactional else 0)
        | (CONTROL_BIT if control else 0)
        | (0 if delete_horizon_ms is None else DELETE_HORIZON_BIT)
    )
    checked = _CHECKED.pack(
        attributes,
        delta if last_offset_delta is None else last_offset_delta,
        base_timestamp,
        _newest(records) if max_timestamp is None else max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    return _assemble(base_offset, leader_epoch, checked + section)


def build_plain(
    pairs: Iterable[Pair],
    timestamp: int,
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    attributes: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
) -> bytes:
    """One uncompressed batch of keys and values with one timestamp; at least one.

    The same bytes as those of `build`, in a third of the time: a broker writes three such batches
    for a transaction. Hot: benchmarks/transactions.py.
    """
    sizes = _SIZES
    parts: list[bytes] = []
    count = 0
    for key, value in pairs:
        encoded_value = b"\1" if value is None else sizes[len(value)] + value
        body = b"".join((b"\0\0", sizes[count], sizes[len(key)], key, encoded_value, b"\0"))
        parts += (sizes[len(body)], body)
        count += 1
    checked = _CHECKED.pack(
        attributes, count - 1, timestamp, timestamp, producer_id, producer_epoch, -1, count
    )
    return _assemble(base_offset, leader_epoch, b"".join((checked, *parts)))


def _assemble(base_offset: int, leader_epoch: int, checked: bytes) -> bytes:
    """A batch of everything that its checksum covers."""
    length = ATTRIBUTES_AT - OVERHEAD + len(checked)
    return _HEAD.pack(base_offset, length, leader_epoch, CURRENT_MAGIC, crc32c(checked)) + checked


def _encode_records(
    records: Sequence[Record | NewRecord], base_offset: int, base_timestamp: int
) -> tuple[bytes, int]:
    """The records' bytes and the last offset delta, -1 without records."""
    encoded: list[bytes] = []
    delta = -1
    for record in records:
        delta = record.offset - base_offset if isinstance(record, Record) else delta + 1
        encoded.append(encode_record(delta, record.timestamp - base_timestamp, record))
    return b"".join(encoded), delta


def _newest(records: Sequence[Record | NewRecord]) -> int:
    return max((record.timestamp for record in records), default=NO_TIMESTAMP)
