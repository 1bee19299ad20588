"""Batches to test with: any legal one, and every kind of fault a record can have."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

from ottla.protocol.records.batch import build
from ottla.protocol.records.header import HEADER_SIZE, BatchHeader, read_header
from ottla.protocol.records.record import NewRecord, encode_varint

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
new_records = st.builds(
    NewRecord,
    key=st.none() | st.binary(max_size=200),
    value=st.none() | st.binary(max_size=200),
    headers=st.lists(st.tuples(texts, st.none() | st.binary(max_size=9)), max_size=3).map(tuple),
    timestamp=st.integers(-1, 2**45),
)


def section_of(batch: bytes) -> tuple[bytes, BatchHeader]:
    return batch[HEADER_SIZE:], read_header(batch)


def header_for(count: int, base_timestamp: int = 1) -> BatchHeader:
    plain = read_header(build([NewRecord(None, None, timestamp=base_timestamp)]))
    return plain._replace(count=count, last_offset_delta=max(count - 1, 0))


def raw(*parts: int | bytes) -> bytes:
    """One record: numbers are written as variable-length integers, the length is put in front."""
    body = b"\0" + b"".join(encode_varint(p) if isinstance(p, int) else p for p in parts)
    return encode_varint(len(body)) + body


GOOD: Final = raw(0, 0, 1, b"k", 1, b"v", 0)
# What is wrong, how many records the header counts, and their bytes.
FAULTS: Final[dict[str, tuple[int, bytes]]] = {
    "fewer records than counted": (2, GOOD),
    "more records than counted": (1, GOOD + raw(0, 1, 1, b"k", 1, b"v", 0)),
    "bytes after the last": (1, GOOD + b"\0"),
    "nothing at all": (1, b""),
    "a negative count": (-1, b""),
    "more than nothing": (0, GOOD),
    "record length past the end": (1, encode_varint(100) + GOOD[1:]),
    "record length negative": (1, encode_varint(-1) + GOOD[1:]),
    "record length too small": (1, encode_varint(5) + GOOD[1:]),
    "record cut short": (1, GOOD[:-1]),
    "record of no bytes": (1, b"\0"),
    "only attributes": (1, b"\x02\0"),
    "key past the end": (1, raw(0, 0, 50, b"k", 1, b"v", 0)),
    "key length -2": (1, raw(0, 0, -2, 1, b"v", 0)),
    "value past the end": (1, raw(0, 0, 1, b"k", 50, b"v", 0)),
    "value length -2": (1, raw(0, 0, 1, b"k", -2, 0)),
    "huge value": (1, raw(0, 0, 1, b"k", 2**31 - 1, b"v", 0)),
    "header count -1": (1, raw(0, 0, 1, b"k", 1, b"v", -1)),
    "header count huge": (1, raw(0, 0, 1, b"k", 1, b"v", 2**31 - 1)),
    "header count beyond the bytes": (1, raw(0, 0, 1, b"k", 1, b"v", 2, 1, b"h", 0)),
    "no header count": (1, raw(0, 0, 1, b"k", 1, b"v")),
    "null header key": (1, raw(0, 0, 1, b"k", 1, b"v", 1, -1, -1)),
    "header key past the end": (1, raw(0, 0, 1, b"k", 1, b"v", 1, 9, b"h", -1)),
    "header value past the end": (1, raw(0, 0, 1, b"k", 1, b"v", 1, 1, b"h", 9)),
    "header value length -2": (1, raw(0, 0, 1, b"k", 1, b"v", 1, 1, b"h", -2)),
    "bytes after the headers": (1, raw(0, 0, 1, b"k", 1, b"v", 0, b"??")),
    "six-byte integer": (1, raw(0, b"\x80\x80\x80\x80\x80\x01", 1, b"k", 1, b"v", 0)),
    "integer above 32 bits": (1, raw(0, b"\xff\xff\xff\xff\x1f", 1, b"k", 1, b"v", 0)),
    "eleven-byte integer": (1, raw(b"\x80" * 10 + b"\x01", 0, 1, b"k", 1, b"v", 0)),
    "integer above 64 bits": (1, raw(b"\xff" * 9 + b"\x02", 0, 1, b"k", 1, b"v", 0)),
    "integer without an end": (1, raw(b"\xff")),
    "negative offset delta": (1, raw(0, -1, 1, b"k", 1, b"v", 0)),
    "offset delta beyond the last": (1, raw(0, 1, 1, b"k", 1, b"v", 0)),
    "offset delta twice": (2, GOOD + GOOD),
    "timestamp out of range": (1, raw(2**63 - 1, 0, 1, b"k", 1, b"v", 0)),
}
