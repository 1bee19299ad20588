"""Requests as bytes, built once before a measurement: so a client in Python saturates a broker.

Owns: the few messages that `raw` sends: Produce v7, Fetch v11, and the batches inside.
Never: shares code with the broker it measures; both brokers get exactly these bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

import crc32c

PRODUCE_VERSION: Final = 7
FETCH_VERSION: Final = 11
NO_SESSION: Final = (0, -1)
NEW_SESSION: Final = (0, 0)
_BATCH: Final = struct.Struct(">qiibIhiqqqhii")
_CRC_FROM: Final = 21  # the checksum covers everything from the attributes on


def record(value: bytes, offset_delta: int) -> bytes:
    """One v2 record without key and headers."""
    body = b"\0" + _varint(0) + _varint(offset_delta) + _varint(-1)
    body += _varint(len(value)) + value + _varint(0)
    return _varint(len(body)) + body


def batch(value_bytes: int, count: int, *, now_ms: int) -> bytes:
    """`count` records of `value_bytes` each, uncompressed, from no particular producer."""
    value = bytes(i * 31 % 251 for i in range(value_bytes))
    records = b"".join(record(value, delta) for delta in range(count))
    length = _BATCH.size - 12 + len(records)
    head = _BATCH.pack(0, length, -1, 2, 0, 0, count - 1, now_ms, now_ms, -1, -1, -1, count)
    crc = crc32c.crc32c(head[_CRC_FROM:] + records)
    head = _BATCH.pack(0, length, -1, 2, crc, 0, count - 1, now_ms, now_ms, -1, -1, -1, count)
    return head + records


def produce(topic: str, partition: int, records: bytes, acks: int) -> bytes:
    """A framed Produce request for one partition, as librdkafka sends them."""
    body = struct.pack(">hhih", 0, PRODUCE_VERSION, 1, -1)
    body += struct.pack(">hhii", -1, acks, 30_000, 1) + string(topic)
    body += struct.pack(">iii", 1, partition, len(records))
    return struct.pack(">i", len(body) + len(records)) + body + records


def produce_reply_size(topic: str) -> int:
    """Replies to these requests all have one size, so counting bytes counts replies."""
    return 4 + 4 + 4 + len(string(topic)) + 4 + (4 + 2 + 8 + 8 + 8) + 4


def produce_error(reply: bytes, topic: str) -> int:
    """The error code inside one whole reply."""
    at = 4 + 4 + 4 + len(string(topic)) + 4 + 4
    (code,) = struct.unpack_from(">h", reply, at)
    return int(code)


def fetch(
    topic: str,
    offsets: Sequence[tuple[int, int]],
    *,
    partition_max_bytes: int,
    session: tuple[int, int] = NO_SESSION,
) -> bytes:
    """A framed Fetch request for (partition, offset) pairs; a session is its id and epoch."""
    body = struct.pack(">hhih", 1, FETCH_VERSION, 1, -1)
    body += struct.pack(">iiiibii", -1, 500, 1, 50 << 20, 0, *session)
    body += struct.pack(">i", 1) + string(topic) + struct.pack(">i", len(offsets))
    for partition, offset in offsets:
        body += struct.pack(">iiqqi", partition, -1, offset, -1, partition_max_bytes)
    body += struct.pack(">i", 0) + string("")
    return struct.pack(">i", len(body)) + body


def session_id(reply: bytes) -> int:
    """The session in the reply to a Fetch request."""
    _, _, _, session = struct.unpack_from(">iihi", reply)
    return int(session)


def request(key: int, version: int, body: bytes, *, flexible: bool = False) -> bytes:
    """Any request, framed, from a client without a name."""
    tags = b"\0" if flexible else b""
    head = struct.pack(">hhih", key, version, 1, -1) + tags
    return struct.pack(">i", len(head) + len(body)) + head + body


def string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def compact(data: bytes) -> bytes:
    """A string or bytes in a flexible version of a message."""
    return _unsigned(len(data) + 1) + data


def _varint(value: int) -> bytes:
    return _unsigned((value << 1) ^ (value >> 31))


def _unsigned(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
