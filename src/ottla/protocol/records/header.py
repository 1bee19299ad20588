"""The 61 bytes in front of a record batch (message format v2).

The first 16 (offset, length, leader epoch) are outside the checksum, so that a leader can place a
batch without touching what the producer sent. Never looks at the records.
"""

from __future__ import annotations

from struct import Struct, error
from typing import Final, NamedTuple

from ottla.protocol.records.compression import Bytes, Codec


class CorruptBatch(Exception):
    """Bytes that are not a record batch: why, and at which byte of what was being read."""

    def __init__(self, reason: str, position: int = 0) -> None:
        super().__init__(f"{reason} (at byte {position})")
        self.reason = reason
        self.position = position


HEADER: Final = Struct(">qiibIhiqqqhii")
HEADER_SIZE: Final = 61
OVERHEAD: Final = 12  # offset and length, in every format
MAGIC_AT: Final = 16
CRC_AT: Final = 17
ATTRIBUTES_AT: Final = 21  # where the checksum begins to count

CODEC_BITS: Final = 0x07
LOG_APPEND_TIME_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40

MAX_SEQUENCE: Final = 0x7FFF_FFFF
NO_TIMESTAMP: Final = -1


class BatchHeader(NamedTuple):
    """A batch's header; the order of the fields is their order on the wire."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # type: ignore[assignment]  # Kafka's word for it

    @property
    def size(self) -> int:
        return self.length + OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> Codec:
        """How the records are compressed; CorruptBatch for a number that names no codec."""
        try:
            return Codec(self.attributes & CODEC_BITS)
        except ValueError:
            raise CorruptBatch(f"unknown codec {self.attributes & CODEC_BITS}") from None

    @property
    def timestamp_type(self) -> int:
        """0: the producer's time; 1: the time of the append, which is `max_timestamp`."""
        return self.attributes >> 3 & 1

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def has_delete_horizon(self) -> bool:
        """`base_timestamp` says when tombstones and markers in here may be dropped."""
        return bool(self.attributes & DELETE_HORIZON_BIT)

    @property
    def last_sequence(self) -> int:
        """The last record's sequence; -1 without one. After 2^31-1 comes 0."""
        if self.base_sequence < 0:
            return self.base_sequence
        return (self.base_sequence + self.last_offset_delta) & MAX_SEQUENCE


def magic_at(view: Bytes, at: int = 0) -> int:
    """The format of the entry at `at`; in all formats it is the byte at 16."""
    try:
        return view[at + MAGIC_AT]
    except IndexError:
        raise CorruptBatch("too short to have a format", at) from None


def read_header(view: Bytes, at: int = 0) -> BatchHeader:
    """The v2 header at `at`; whether it is v2 (`magic_at`) the caller has looked at."""
    try:
        return BatchHeader._make(HEADER.unpack_from(view, at))
    except error:
        raise CorruptBatch("batch header is cut short", at) from None
