"""Record batches with one thing wrong, and the right ones beside them.

Owns: packing a header around any bytes, checksum included. `DAMAGED` pairs what is wrong with the
code it must be refused with.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from typing import Any, Final

from ottla.model.errors import ErrorCode
from ottla.protocol.records import legacy
from ottla.protocol.records.batch import HEADER, HEADER_SIZE, BatchHeader, build, compute_crc
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.header import OVERHEAD
from ottla.protocol.records.record import NewRecord, encode_record, encode_varint
from tests.raw_requests import NOW_MS, batch

CORRUPT: Final = ErrorCode.corrupt_message
INVALID: Final = ErrorCode.invalid_record
UNSUPPORTED: Final = ErrorCode.unsupported_compression_type


def packed(section: bytes, *, count: int = 1, **fields: Any) -> bytes:
    """A batch around any record section, with whatever its header shall say."""
    header = BatchHeader(
        base_offset=0,
        length=HEADER_SIZE - OVERHEAD + len(section),
        leader_epoch=-1,
        magic=2,
        crc=0,
        attributes=0,
        last_offset_delta=count - 1,
        base_timestamp=NOW_MS,
        max_timestamp=NOW_MS,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        count=count,
    )._replace(**fields)
    content = bytearray(HEADER.pack(*header) + section)
    if "crc" not in fields:
        struct.pack_into(">I", content, 17, compute_crc(content))
    return bytes(content)


def record(*, delta: int = 0, key: bytes | None = b"k", value: bytes = b"v") -> bytes:
    return encode_record(delta, 0, NewRecord(key, value, (), NOW_MS))


def body(*parts: bytes) -> bytes:
    """A record with its length, of parts that need not fit together."""
    joined = b"".join(parts)
    return encode_varint(len(joined)) + joined


START: Final = b"\0\0\0"  # attributes, timestamp delta, offset delta
KEY_AND_VALUE: Final = encode_varint(1) + b"k" + encode_varint(1) + b"v"
LONG_VARINT: Final = b"\xff\xff\xff\xff\xff\x01"


def with_length(length: int) -> bytes:
    content = bytearray(batch("v"))
    struct.pack_into(">i", content, 8, length)
    return bytes(content)


def with_magic(magic: int) -> bytes:
    content = bytearray(batch("v"))
    content[16] = magic
    return bytes(content)


def flipped() -> bytes:
    content = bytearray(batch("value"))
    content[-2] ^= 1
    return bytes(content)


def bomb(codec: Codec, inflated_bytes: int = 200 << 20) -> bytes:
    """A small batch that asks for a great deal of memory."""
    import cramjam

    zeros = bytes(1 << 20)
    if codec is Codec.GZIP:
        deflate = zlib.compressobj(9, zlib.DEFLATED, 31)
        section = b"".join(deflate.compress(zeros) for _ in range(inflated_bytes >> 20))
        section += deflate.flush()
    elif codec is Codec.ZSTD:
        section = bytes(cramjam.zstd.compress(bytes(inflated_bytes)))
    elif codec is Codec.LZ4:
        section = bytes(cramjam.lz4.compress(bytes(inflated_bytes)))
    else:
        section = bytes(cramjam.snappy.compress_raw(bytes(inflated_bytes * 3 // 4)))
    return packed(section, attributes=int(codec))


DAMAGED: Final[dict[str, tuple[bytes | None, ErrorCode]]] = {
    "no records": (None, INVALID),
    "no bytes": (b"", INVALID),
    "a few bytes": (b"\0" * 11, INVALID),
    "two batches": (batch("a") + batch("b"), INVALID),
    "magic 0": (legacy.build([NewRecord(b"k", b"v", (), NOW_MS)], magic=0), INVALID),
    "magic 1": (legacy.build([NewRecord(b"k", b"v", (), NOW_MS)], magic=1), INVALID),
    "magic 3": (with_magic(3), CORRUPT),
    "magic -1": (with_magic(255), CORRUPT),
    "length -1": (with_length(-1), CORRUPT),
    "length 0": (with_length(0), CORRUPT),
    "length of half a header": (with_length(30), CORRUPT),
    "length past the end": (with_length(10_000), INVALID),
    "length of all memory": (with_length(2**31 - 1), INVALID),
    "wrong checksum": (flipped(), CORRUPT),
    "base offset 7": (packed(record(), base_offset=7), INVALID),
    "base offset -1": (packed(record(), base_offset=-1), INVALID),
    "count above the offsets": (packed(record(), last_offset_delta=4), INVALID),
    "count 0": (packed(b"", count=0), INVALID),
    "count -1": (packed(record(), count=-1, last_offset_delta=-2), INVALID),
    "count of a billion": (packed(record(), count=10**9), INVALID),
    "fewer records than counted": (packed(record(), count=3), INVALID),
    "more records than counted": (packed(record() + record(delta=1), count=1), INVALID),
    "deltas out of order": (packed(record(delta=1) + record(delta=0), count=2), INVALID),
    "the same delta twice": (packed(record() + record(), count=2), INVALID),
    "record length past the end": (packed(encode_varint(500) + b"\0\0\0"), INVALID),
    "record length -1": (packed(encode_varint(-1) + b"\0\0\0"), INVALID),
    "record length of six bytes": (packed(LONG_VARINT + b"\0\0\0"), INVALID),
    "record longer than its contents": (packed(body(START, KEY_AND_VALUE, b"\0", b"?")), INVALID),
    "key past the end": (packed(body(START, encode_varint(900), b"k")), INVALID),
    "key length -2": (packed(body(START, encode_varint(-2), b"k")), INVALID),
    "value past the end": (packed(body(START, b"\1", encode_varint(900), b"v")), INVALID),
    "header count -1": (packed(body(START, KEY_AND_VALUE, encode_varint(-1))), INVALID),
    "header count huge": (packed(body(START, KEY_AND_VALUE, encode_varint(2**31 - 1))), INVALID),
    "null header key": (
        packed(body(START, KEY_AND_VALUE, encode_varint(1), encode_varint(-1), b"\0")),
        INVALID,
    ),
    "header value past the end": (
        packed(body(START, KEY_AND_VALUE, encode_varint(1), b"\2h", encode_varint(99))),
        INVALID,
    ),
    "control batch": (packed(record(), attributes=0x20), INVALID),
    "producer without a sequence": (packed(record(), producer_id=5, producer_epoch=0), INVALID),
    "codec 5": (packed(record(), attributes=5), UNSUPPORTED),
    "codec 7": (packed(record(), attributes=7), UNSUPPORTED),
    "gzip of nothing": (packed(b"", attributes=int(Codec.GZIP)), INVALID),
    "gzip that is none": (packed(record(), attributes=int(Codec.GZIP)), INVALID),
    "gzip cut": (packed(gzip.compress(record())[:-9], attributes=int(Codec.GZIP)), INVALID),
    "snappy that is none": (packed(record(), attributes=int(Codec.SNAPPY)), INVALID),
    "lz4 that is none": (packed(record(), attributes=int(Codec.LZ4)), INVALID),
    "zstd that is none": (packed(record(), attributes=int(Codec.ZSTD)), INVALID),
    "too large": (batch("." * (1 << 20)), ErrorCode.message_too_large),
}


def without_key() -> bytes:
    return build([NewRecord(b"k", b"1", (), NOW_MS), NewRecord(None, b"2", (), NOW_MS)])
