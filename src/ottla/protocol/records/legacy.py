"""Message formats v0 and v1: written by brokers before 0.11.

Only read, never written by a broker: logs taken over from an old Kafka are served unchanged, and
this module is used to index, compact and dump them. A compressed set is one message whose value is
the whole set; offsets inside it are relative (v1) or absolute (v0).
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
    """One message of a log, or one compressed set of messages."""

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
    """Each complete entry of a buffer; an incomplete one at the end is ignored.

    Raises CorruptBatch at an entry of another format or with an invalid size.
    """
    position, end = 0, len(view)
    while end - position > MAGIC_AT:
        offset, length = _HEAD.unpack_from(view, position)
        magic = view[position + MAGIC_AT]
        if magic not in MIN_SIZE:
            raise CorruptBatch(f"message has unsupported magic {magic}", position)
        if length < MIN_SIZE[magic]:
            raise CorruptBatch(f"message has invalid size {length}", position)
        if length + OVERHEAD > end - position:
            return
        yield _entry(
            memoryview(view)[position : position + OVERHEAD + length], position, offset, magic
        )
        position += OVERHEAD + length


def _entry(view: memoryview, position: int, offset: int, magic: int) -> LegacyEntry:
    fixed = _FIXED[magic]
    crc, _, attributes, *rest = fixed.unpack_from(view, OVERHEAD)
    if attributes & CODEC_BITS >= len(CODECS):
        raise CorruptBatch(f"unknown codec {attributes & CODEC_BITS}", position)
    key, field_at = _sized_field(view, OVERHEAD + fixed.size, position)
    value, field_at = _sized_field(view, field_at, position)
    if field_at != len(view):
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


def _sized_field(view: memoryview, field_at: int, position: int) -> tuple[bytes | None, int]:
    if field_at + 4 > len(view):
        raise CorruptBatch("message is cut short", position)
    (length,) = _INT32.unpack_from(view, field_at)
    start = field_at + 4
    if length == -1:
        return None, start
    if length < 0 or start + length > len(view):
        raise CorruptBatch(f"field of a message has invalid length {length}", position)
    return bytes(view[start : start + length]), start + length


def records(entry: LegacyEntry, *, max_bytes: int = MAX_INFLATED_BYTES) -> list[Record]:
    """The messages of one entry with their absolute offsets."""
    if entry.codec is Codec.NONE:
        return [Record(entry.offset, entry.timestamp, entry.key, entry.value)]
    if entry.value is None:
        raise CorruptBatch("compressed message set has no value", entry.position)
    data = decompress(entry.codec, entry.value, max_bytes, old_lz4=entry.magic == 0)
    inner = list(entries(data))
    if not inner or sum(message.size for message in inner) != len(data):
        raise CorruptBatch("compressed message set has an incomplete message", entry.position)
    for message in inner:
        if message.magic != entry.magic or message.codec is not Codec.NONE:
            raise CorruptBatch(
                "compressed message set has a message of another format, or a compressed one",
                entry.position,
            )
    # v1 has relative offsets inside a set, and the last absolute offset outside; v0 is absolute.
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
    """The messages as an old producer, or with `append_time` an old broker, would write them."""
    records = [
        message if isinstance(message, Record) else Record(base_offset + index, *_place(message))
        for index, message in enumerate(messages)
    ]
    type_bit = 0 if append_time is None else LOG_APPEND_TIME_BIT
    if codec is Codec.NONE:
        return b"".join(
            _message(
                magic,
                type_bit,
                message if append_time is None else message._replace(timestamp=append_time),
            )
            for message in records
        )
    relative = records[0].offset if magic else 0
    inner = b"".join(
        _message(magic, 0, message._replace(offset=message.offset - relative))
        for message in records
    )
    newest = max(message.timestamp for message in records) if append_time is None else append_time
    wrapper = Record(records[-1].offset, newest, None, compress(codec, inner))
    return _message(magic, codec | type_bit, wrapper)


def _place(message: NewRecord) -> tuple[int, bytes | None, bytes | None]:
    return message.timestamp, message.key, message.value


def _message(magic: int, attributes: int, message: Record) -> bytes:
    stamp = (message.timestamp,) if magic else ()
    body = _FIXED[magic].pack(0, magic, attributes, *stamp)[4:]
    for field in (message.key, message.value):
        body += _INT32.pack(-1) if field is None else _INT32.pack(len(field)) + field
    return _HEAD.pack(message.offset, len(body) + 4) + crc32(body).to_bytes(4, "big") + body
