"""The records inside a batch, in plain Python: reading, checking and writing them.

Owns the record encoding and its variable-length integers. `columns` walks the same bytes with a
native kernel and gives the same verdicts; this module is what runs where numba is not installed,
and where records are wanted one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

from ottla.protocol.records.compression import Bytes, decompress
from ottla.protocol.records.header import (
    HEADER_SIZE,
    NO_TIMESTAMP,
    BatchHeader,
    CorruptBatch,
    read_header,
)

MAX_INFLATED_BYTES: Final = 64 * 1024 * 1024
INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1


class Header(NamedTuple):
    """A record's header. Bytes that are not UTF-8 survive in `key` as lone surrogates."""

    key: str
    value: bytes | None


Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]


class Record(NamedTuple):
    """One record at its place in the log."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class NewRecord(NamedTuple):
    """One record before it has a place."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: int = NO_TIMESTAMP


class Summary(NamedTuple):
    """What a walk over a batch's records learns."""

    min_timestamp: int
    max_timestamp: int
    max_timestamp_delta: int  # offset delta of the first record that has it; -1 without records
    first_null_key: int  # index of the record; -1 when all have keys


def encode_varint(value: int) -> bytes:
    """Zigzag, then seven bits a byte, low bits first: int32 and int64 alike."""
    rest = (value << 1) ^ (value >> 63)
    if rest < 0x80:
        return _ONE_BYTE[rest]
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


_ONE_BYTE: Final = tuple(bytes((byte,)) for byte in range(0x80))


def decode_varint(data: Bytes, at: int, bits: int = 32) -> tuple[int, int]:
    """An int32 and the position after it; CorruptBatch beyond five bytes, or 32 bits."""
    try:
        byte = data[at]
        if byte < 0x80:  # one byte, or two, is what most of them take
            return (byte >> 1) ^ -(byte & 1), at + 1
        second = data[at + 1]
    except IndexError:
        raise CorruptBatch("record runs past the end", at) from None
    if second < 0x80:
        value = byte & 0x7F | second << 7
        return (value >> 1) ^ -(value & 1), at + 2
    return _decode_long(data, at, bits)


def decode_varlong(data: Bytes, at: int) -> tuple[int, int]:
    """An int64 and the position after it; CorruptBatch beyond ten bytes, or 64 bits."""
    return decode_varint(data, at, 64)


def _decode_long(data: Bytes, start: int, bits: int) -> tuple[int, int]:
    at, shift, value = start, 0, 0
    try:
        while (byte := data[at]) > 0x7F:
            value |= (byte & 0x7F) << shift
            shift += 7
            at += 1
            if shift >= bits:
                raise CorruptBatch("variable-length integer is too long", start)
    except IndexError:
        raise CorruptBatch("record runs past the end", start) from None
    value |= byte << shift
    if value >> bits:
        raise CorruptBatch("variable-length integer is too large", start)
    return (value >> 1) ^ -(value & 1), at + 1


def encode_record(offset_delta: int, timestamp_delta: int, record: Record | NewRecord) -> bytes:
    """One record with its length in front."""
    parts = [b"\0", encode_varint(timestamp_delta), encode_varint(offset_delta)]
    _append_bytes(parts, record.key)
    _append_bytes(parts, record.value)
    parts.append(encode_varint(len(record.headers)))
    for key, value in record.headers:
        _append_bytes(parts, key.encode("utf-8", "surrogateescape"))
        _append_bytes(parts, value)
    body = b"".join(parts)
    return encode_varint(len(body)) + body


def _append_bytes(parts: list[bytes], value: bytes | None) -> None:
    if value is None:
        parts.append(b"\x01")
    else:
        parts.append(encode_varint(len(value)))
        parts.append(value)


def records_section(
    batch: Bytes, header: BatchHeader, max_bytes: int = MAX_INFLATED_BYTES
) -> bytes | memoryview:
    """The bytes of a batch's records, inflated if they are compressed."""
    if len(batch) < header.size or header.size < HEADER_SIZE:
        raise CorruptBatch("batch length does not fit", 8)
    section = memoryview(batch)[HEADER_SIZE : header.size]
    codec = header.codec
    return decompress(codec, section, max_bytes) if codec else section


def read_records(batch: Bytes, *, max_bytes: int = MAX_INFLATED_BYTES) -> Iterator[Record]:
    """Each record of one v2 batch; CorruptBatch at the first that is not what it should be."""
    header = read_header(batch)
    data = bytes(records_section(batch, header, max_bytes))  # indexing bytes is twice as fast
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    append_time = header.max_timestamp if header.timestamp_type else None
    for spans in _walk(data, header):
        timestamp_delta, offset_delta, key_at, key_end, value_at, value_end, headers_at = spans
        yield Record(
            base_offset + offset_delta,
            base_timestamp + timestamp_delta if append_time is None else append_time,
            None if key_at < 0 else data[key_at:key_end],
            None if value_at < 0 else data[value_at:value_end],
            _headers(data, headers_at) if data[headers_at] else (),
        )


def validate_records(section: Bytes, header: BatchHeader, *, dense: bool) -> Summary:
    """Check every record of an uncompressed section and say what was seen.

    `dense` demands the offset deltas 0, 1, 2 and so on, as a producer must send them; otherwise
    they may have gaps, as compaction leaves them.
    """
    data = bytes(section)
    base_timestamp = header.base_timestamp
    lowest, highest, highest_delta, null_key = INT64_MAX, INT64_MIN, -1, -1
    for index, (timestamp_delta, offset_delta, key_at, *_) in enumerate(_walk(data, header)):
        if dense and offset_delta != index:
            raise CorruptBatch(f"record {index} has offset delta {offset_delta}")
        timestamp = base_timestamp + timestamp_delta
        lowest = min(lowest, timestamp)
        if timestamp > highest:
            highest, highest_delta = timestamp, offset_delta
        if key_at < 0 and null_key < 0:
            null_key = index
    if header.count == 0:
        return Summary(NO_TIMESTAMP, NO_TIMESTAMP, -1, -1)
    return Summary(lowest, highest, highest_delta, null_key)


def record_sizes(section: Bytes, header: BatchHeader) -> Iterator[tuple[int, int, int]]:
    """Timestamp, size of the key and size of the value (-1 for null) of each record."""
    append_time = header.max_timestamp if header.timestamp_type else None
    for timestamp_delta, _, key_at, key_end, value_at, value_end, _ in _walk(
        bytes(section), header
    ):
        yield (
            header.base_timestamp + timestamp_delta if append_time is None else append_time,
            -1 if key_at < 0 else key_end - key_at,
            -1 if value_at < 0 else value_end - value_at,
        )


Spans: TypeAlias = tuple[int, int, int, int, int, int, int]


def _walk(data: bytes, header: BatchHeader) -> Iterator[Spans]:
    """Where the parts of each record lie, everything checked that can be without more context."""
    at, last_delta = 0, -1
    if header.count < 0:
        raise CorruptBatch(f"batch counts {header.count} records", 57)
    for index in range(header.count):
        length, start = decode_varint(data, at)
        end = start + length
        if length < 0 or end > len(data):
            raise CorruptBatch(f"record {index} has length {length}", at)
        spans = _spans(data, start, end)
        if not last_delta < spans[1] <= header.last_offset_delta:
            raise CorruptBatch(f"record {index} has offset delta {spans[1]}", at)
        if not INT64_MIN <= header.base_timestamp + spans[0] <= INT64_MAX:
            raise CorruptBatch(f"record {index} has a timestamp out of range", at)
        last_delta = spans[1]
        yield spans
        at = end
    if at != len(data):
        raise CorruptBatch(f"bytes after the last of {header.count} records", at)


def _spans(data: bytes, start: int, end: int) -> Spans:
    """One record's parts: deltas, key, value (start -1 for null) and where the headers begin."""
    timestamp_delta, at = decode_varlong(data, start + 1)  # the attributes byte means nothing
    offset_delta, at = decode_varint(data, at)
    key_at, key_end = _sized(data, at, end)
    value_at, value_end = _sized(data, key_end, end)
    at = value_end
    if data[at : at + 1] == b"\0":
        at += 1
    else:
        at = _check_headers(data, at, end)
    if at != end:
        raise CorruptBatch("record length does not match its contents", start)
    return timestamp_delta, offset_delta, key_at, key_end, value_at, value_end, value_end


def _sized(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Where a length-prefixed field starts (-1 for null), and what comes after it."""
    length, start = decode_varint(data, at)
    after = start + length
    if length >= 0 and after <= end:
        return start, after
    if length == -1 and start <= end:
        return -1, start
    raise CorruptBatch(f"field of a record has length {length}", at)


def _check_headers(data: bytes, start: int, end: int) -> int:
    """The position after a record's headers."""
    count, at = decode_varint(data, start)
    if not 0 <= count <= (end - at) // 2:  # a header has at least its two lengths
        raise CorruptBatch(f"record has {count} headers", start)
    for _ in range(count):
        key, at = _sized(data, at, end)
        if key < 0:
            raise CorruptBatch("record header has no key", at)
        _, at = _sized(data, at, end)
    return at


def _headers(data: bytes, at: int) -> Headers:
    """The headers at `at`, which `_spans` has checked."""
    count, at = decode_varint(data, at)
    headers = []
    for _ in range(count):
        length, at = decode_varint(data, at)
        key = data[at : at + length].decode("utf-8", "surrogateescape")
        length, at = decode_varint(data, at + length)
        value = None if length < 0 else data[at : at + length]
        at += max(length, 0)
        headers.append(Header(key, value))
    return tuple(headers)
