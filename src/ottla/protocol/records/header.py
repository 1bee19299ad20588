"""The 61 bytes in front of a record batch (message format v2).

The first 16 (offset, length, leader epoch) are not in the checksum, so that a leader can assign
offsets without changing what the producer sent. Never reads the records.
"""

from __future__ import annotations

from struct import Struct, error
from typing import Final, NamedTuple

from ottla.protocol.records.compression import Bytes, Codec


class CorruptBatch(Exception):
    """Bytes that are not a valid record batch: the reason, and the position in the buffer."""

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
        """The codec of the records; CorruptBatch for an unknown codec number."""
        try:
            return Codec(self.attributes & CODEC_BITS)
        except ValueError:
            raise CorruptBatch(f"unknown codec {self.attributes & CODEC_BITS}") from None

    @property
    def timestamp_type(self) -> int:
        """0: the producer's timestamps; 1: the time of the append, which is `max_timestamp`."""
        return self.attributes >> 3 & 1

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def has_delete_horizon(self) -> bool:
        """`base_timestamp` is the time from which tombstones and markers may be removed."""
        return bool(self.attributes & DELETE_HORIZON_BIT)

    @property
    def last_sequence(self) -> int:
        """The last record's sequence; -1 without one. After 2^31-1 comes 0."""
        if self.base_sequence < 0:
            return self.base_sequence
        return (self.base_sequence + self.last_offset_delta) & MAX_SEQUENCE


def magic_at(view: Bytes, position: int = 0) -> int:
    """The format of the entry at `position`; in all formats it is the byte at 16."""
    try:
        return view[position + MAGIC_AT]
    except IndexError:
        raise CorruptBatch("too short for a magic byte", position) from None


def read_header(view: Bytes, position: int = 0) -> BatchHeader:
    """The v2 header at `position`; the caller has checked that it is v2 (`magic_at`)."""
    try:
        return BatchHeader._make(HEADER.unpack_from(view, position))
    except error:
        raise CorruptBatch("batch header is cut short", position) from None
