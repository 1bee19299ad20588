"""The records inside a batch, in plain Python: reading, checking and writing them.

Owns the record encoding and its variable-length integers. `columns` reads the same bytes with a
native kernel and finds the same errors; this module is used where numba is not installed, and where
records are needed one by one.
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
    """A record's header. Bytes that are not UTF-8 are lone surrogates in `key`."""

    key: str
    value: bytes | None


Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]


class Record(NamedTuple):
    """One record with its offset."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class NewRecord(NamedTuple):
    """One record without an offset."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: int = NO_TIMESTAMP


class Summary(NamedTuple):
    """The result of checking a batch's records."""

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


def decode_varint(data: Bytes, position: int, bits: int = 32) -> tuple[int, int]:
    """An int32 and the position after it; CorruptBatch beyond five bytes, or 32 bits."""
    try:
        byte = data[position]
        if byte < 0x80:  # one byte, or two, is what most of them take
            return (byte >> 1) ^ -(byte & 1), position + 1
        second = data[position + 1]
    except IndexError:
        raise CorruptBatch("record runs past the end", position) from None
    if second < 0x80:
        value = byte & 0x7F | second << 7
        return (value >> 1) ^ -(value & 1), position + 2
    return _decode_long(data, position, bits)


def decode_varlong(data: Bytes, position: int) -> tuple[int, int]:
    """An int64 and the position after it; CorruptBatch beyond ten bytes, or 64 bits."""
    return decode_varint(data, position, 64)


def _decode_long(data: Bytes, start: int, bits: int) -> tuple[int, int]:
    position, shift, value = start, 0, 0
    try:
        while (byte := data[position]) > 0x7F:
            value |= (byte & 0x7F) << shift
            shift += 7
            position += 1
            if shift >= bits:
                raise CorruptBatch("variable-length integer is too long", start)
    except IndexError:
        raise CorruptBatch("record runs past the end", start) from None
    value |= byte << shift
    if value >> bits:
        raise CorruptBatch("variable-length integer is too large", start)
    return (value >> 1) ^ -(value & 1), position + 1


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
    """The bytes of a batch's records, decompressed if needed."""
    if len(batch) < header.size or header.size < HEADER_SIZE:
        raise CorruptBatch(f"batch has invalid length {header.length}", 8)
    section = memoryview(batch)[HEADER_SIZE : header.size]
    codec = header.codec
    return decompress(codec, section, max_bytes) if codec else section


def read_records(batch: Bytes, *, max_bytes: int = MAX_INFLATED_BYTES) -> Iterator[Record]:
    """Each record of one v2 batch; CorruptBatch at the first malformed one."""
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
    """Check every record of an uncompressed section; CorruptBatch at the first malformed one.

    `dense` requires the offset deltas 0, 1, 2 and so on, as a producer must send them; otherwise
    they may have gaps, as after compaction.
    """
    data = bytes(section)
    base_timestamp = header.base_timestamp
    lowest, highest, highest_delta, null_key = INT64_MAX, INT64_MIN, -1, -1
    for index, (timestamp_delta, offset_delta, key_at, *_) in enumerate(_walk(data, header)):
        if dense and offset_delta != index:
            raise CorruptBatch(f"record {index} has invalid offset delta {offset_delta}")
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
    """The positions of the parts of each record, with all checks that need no more context."""
    position, last_delta = 0, -1
    if header.count < 0:
        raise CorruptBatch(f"batch has invalid record count {header.count}", 57)
    for index in range(header.count):
        length, start = decode_varint(data, position)
        end = start + length
        if length < 0 or end > len(data):
            raise CorruptBatch(f"record {index} has invalid length {length}", position)
        spans = _spans(data, start, end)
        if not last_delta < spans[1] <= header.last_offset_delta:
            raise CorruptBatch(f"record {index} has invalid offset delta {spans[1]}", position)
        if not INT64_MIN <= header.base_timestamp + spans[0] <= INT64_MAX:
            raise CorruptBatch(f"record {index} has a timestamp out of range", position)
        last_delta = spans[1]
        yield spans
        position = end
    if position != len(data):
        raise CorruptBatch(f"bytes after the last of {header.count} records", position)


def _spans(data: bytes, start: int, end: int) -> Spans:
    """One record's parts: deltas, key, value (start -1 for null) and the start of the headers."""
    timestamp_delta, position = decode_varlong(data, start + 1)  # the attributes byte means nothing
    offset_delta, position = decode_varint(data, position)
    key_at, key_end = _sized_field(data, position, end)
    value_at, value_end = _sized_field(data, key_end, end)
    position = value_end
    if data[position : position + 1] == b"\0":
        position += 1
    else:
        position = _check_headers(data, position, end)
    if position != end:
        raise CorruptBatch("record length does not match its contents", start)
    return timestamp_delta, offset_delta, key_at, key_end, value_at, value_end, value_end


def _sized_field(data: bytes, position: int, end: int) -> tuple[int, int]:
    """The start of a length-prefixed field (-1 for null), and the position after it."""
    length, start = decode_varint(data, position)
    after = start + length
    if length >= 0 and after <= end:
        return start, after
    if length == -1 and start <= end:
        return -1, start
    raise CorruptBatch(f"field of a record has invalid length {length}", position)


def _check_headers(data: bytes, start: int, end: int) -> int:
    """The position after a record's headers."""
    count, position = decode_varint(data, start)
    if not 0 <= count <= (end - position) // 2:  # a header has at least its two lengths
        raise CorruptBatch(f"record has invalid number of headers {count}", start)
    for _ in range(count):
        key, position = _sized_field(data, position, end)
        if key < 0:
            raise CorruptBatch("record header has no key", position)
        _, position = _sized_field(data, position, end)
    return position


def _headers(data: bytes, position: int) -> Headers:
    """The headers at `position`, which `_spans` has checked."""
    count, position = decode_varint(data, position)
    headers = []
    for _ in range(count):
        length, position = decode_varint(data, position)
        key = data[position : position + length].decode("utf-8", "surrogateescape")
        length, position = decode_varint(data, position + length)
        value = None if length < 0 else data[position : position + length]
        position += max(length, 0)
        headers.append(Header(key, value))
    return tuple(headers)
