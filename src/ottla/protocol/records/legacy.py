"""Message formats v0 and v1: what brokers before 0.11 wrote.

Only read, never written by a broker: logs taken over from an old Kafka are served as they are, and
this is how they are indexed, compacted and dumped. A compressed set is one message whose value is
the whole set; offsets inside it count from zero (v1) or are absolute (v0).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

from ottla.protocol.records.compression import Bytes, Codec, compress, decompress
from ottla.protocol.records.header import (
    CODEC_BITS,
    LOG_APPEND_TIME_BIT,
    MAGIC_AT,
    NO_TIMESTAMP,
    OVERHEAD,
    CorruptBatch,
)
from ottla.protocol.records.record import MAX_INFLATED_BYTES, NewRecord, Record

MIN_SIZE: Final = {0: 14, 1: 22}  # of a message, after offset and size
CODECS: Final = (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)

_HEAD: Final = Struct(">qi")
_INT32: Final = Struct(">i")
_FIXED: Final = {0: Struct(">Ibb"), 1: Struct(">Ibbq")}


class LegacyEntry(NamedTuple):
    """One message, or one compressed set of them, as it lies in a log."""

    position: int
    size: int  # with offset and size in front
    offset: int  # of the last message, where it is a set
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    crc_ok: bool

    @property
    def codec(self) -> Codec:
        return CODECS[self.attributes & CODEC_BITS]

    @property
    def timestamp_type(self) -> int:
        return self.attributes >> 3 & 1 if self.magic else 0


def entries(view: Bytes) -> Iterator[LegacyEntry]:
    """Each whole entry of a buffer; a tail that is cut short is left out.

    Raises CorruptBatch where an entry of another format, or an impossible size, stands.
    """
    at, end = 0, len(view)
    while end - at > MAGIC_AT:
        offset, length = _HEAD.unpack_from(view, at)
        magic = view[at + MAGIC_AT]
        if magic not in MIN_SIZE:
            raise CorruptBatch(f"message has magic {magic}", at)
        if length < MIN_SIZE[magic]:
            raise CorruptBatch(f"message has size {length}", at)
        if length + OVERHEAD > end - at:
            return
        yield _entry(memoryview(view)[at : at + OVERHEAD + length], at, offset, magic)
        at += OVERHEAD + length


def _entry(view: memoryview, position: int, offset: int, magic: int) -> LegacyEntry:
    fixed = _FIXED[magic]
    crc, _, attributes, *rest = fixed.unpack_from(view, OVERHEAD)
    if attributes & CODEC_BITS >= len(CODECS):
        raise CorruptBatch(f"unknown codec {attributes & CODEC_BITS}", position)
    key, at = _sized(view, OVERHEAD + fixed.size, position)
    value, at = _sized(view, at, position)
    if at != len(view):
        raise CorruptBatch("message size does not match its contents", position)
    return LegacyEntry(
        position=position,
        size=len(view),
        offset=offset,
        magic=magic,
        attributes=attributes,
        timestamp=rest[0] if rest else NO_TIMESTAMP,
        key=key,
        value=value,
        crc_ok=crc32(view[MAGIC_AT:]) == crc,
    )


def _sized(view: memoryview, at: int, position: int) -> tuple[bytes | None, int]:
    if at + 4 > len(view):
        raise CorruptBatch("message is cut short", position)
    (length,) = _INT32.unpack_from(view, at)
    start = at + 4
    if length == -1:
        return None, start
    if length < 0 or start + length > len(view):
        raise CorruptBatch(f"field of a message has length {length}", position)
    return bytes(view[start : start + length]), start + length


def records(entry: LegacyEntry, *, max_bytes: int = MAX_INFLATED_BYTES) -> list[Record]:
    """The messages of one entry with their absolute offsets."""
    if entry.codec is Codec.NONE:
        return [Record(entry.offset, entry.timestamp, entry.key, entry.value)]
    if entry.value is None:
        raise CorruptBatch("compressed set without a value", entry.position)
    data = decompress(entry.codec, entry.value, max_bytes, old_lz4=entry.magic == 0)
    inner = list(entries(data))
    if not inner or sum(message.size for message in inner) != len(data):
        raise CorruptBatch("compressed set does not hold whole messages", entry.position)
    for message in inner:
        if message.magic != entry.magic or message.codec is not Codec.NONE:
            raise CorruptBatch("compressed set holds what it may not", entry.position)
    # v1 counts from zero inside a set and lets the set carry its last offset; v0 is absolute.
    base = entry.offset - inner[-1].offset if entry.magic else 0
    stamped = entry.timestamp if entry.timestamp_type else None
    return [
        Record(
            base + message.offset,
            message.timestamp if stamped is None else stamped,
            message.key,
            message.value,
        )
        for message in inner
    ]


def build(
    messages: Iterable[Record | NewRecord],
    *,
    magic: int,
    base_offset: int = 0,
    codec: Codec = Codec.NONE,
    append_time: int | None = None,
) -> bytes:
    """The messages as an old producer, or with `append_time` an old broker, wrote them."""
    placed = [
        message if isinstance(message, Record) else Record(base_offset + at, *_place(message))
        for at, message in enumerate(messages)
    ]
    type_bit = 0 if append_time is None else LOG_APPEND_TIME_BIT
    if codec is Codec.NONE:
        return b"".join(
            _message(
                magic,
                type_bit,
                message if append_time is None else message._replace(timestamp=append_time),
            )
            for message in placed
        )
    relative = placed[0].offset if magic else 0
    inner = b"".join(
        _message(magic, 0, message._replace(offset=message.offset - relative)) for message in placed
    )
    newest = max(message.timestamp for message in placed) if append_time is None else append_time
    wrapper = Record(placed[-1].offset, newest, None, compress(codec, inner))
    return _message(magic, codec | type_bit, wrapper)


def _place(message: NewRecord) -> tuple[int, bytes | None, bytes | None]:
    return message.timestamp, message.key, message.value


def _message(magic: int, attributes: int, message: Record) -> bytes:
    stamp = (message.timestamp,) if magic else ()
    body = _FIXED[magic].pack(0, magic, attributes, *stamp)[4:]
    for field in (message.key, message.value):
        body += _INT32.pack(-1) if field is None else _INT32.pack(len(field)) + field
    return _HEAD.pack(message.offset, len(body) + 4) + crc32(body).to_bytes(4, "big") + body
