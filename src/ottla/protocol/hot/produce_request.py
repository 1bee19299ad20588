"""The Produce request: decoded in place by brokers, encoded without a copy by clients.

Owns the layout of versions 3 to 13. Record sets stay slices of the frame, or buffers of their own,
so the size of the records does not matter. Never reads a record set.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from ottla.model.errors import Disconnect
from ottla.protocol.hot.parts import INT16, INT32, put_count, put_string, topic_bytes
from ottla.protocol.length_check import (
    MAX_STRING_BYTES,
    MAX_TAGS,
    TooManyValues,
    read_uvarint,
    skip_tags,
)
from ottla.protocol.records.compression import Bytes
from ottla.protocol.wire import Call

MAX_PARTITIONS: Final = 25_000  # in one Produce request

FIRST_FLEXIBLE: Final = 9
FIRST_BY_ID: Final = 13  # topics by id, by name before

_ACKS_TIMEOUT: Final = Struct(">hi")
_ACKS_TIMEOUT_BYTE: Final = Struct(">hiB")
_ACKS_TIMEOUT_COUNT: Final = Struct(">hii")
_INDEX_SIZE: Final = Struct(">ii")
_INDEX_BYTE: Final = Struct(">iB")

ProducePartition: TypeAlias = tuple[int, memoryview | None]
ProduceTopic: TypeAlias = tuple[str | None, UUID | None, list[ProducePartition]]


class ProduceRequest(NamedTuple):
    """A Produce request; record sets are slices of its frame."""

    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: list[ProduceTopic]


def decode_produce(
    call: Call, frame: memoryview, max_partitions: int = MAX_PARTITIONS
) -> ProduceRequest:
    """A Produce request, versions 3 to 13; TooManyValues if it has too many partitions."""
    if not 3 <= call.version <= 13:
        raise Disconnect(f"unsupported version {call.version} of Produce")
    try:
        decode = _flexible if call.flexible else _plain
        return decode(call, frame, max_partitions)
    except (IndexError, StructError):
        raise Disconnect("message is cut short") from None
    except ValueError:  # text that is not UTF-8, an incomplete topic id
        raise Disconnect("topic name is not UTF-8, or topic id is incomplete") from None


def _plain(call: Call, frame: memoryview, max_partitions: int) -> ProduceRequest:
    """Versions 3 to 8: fixed-width lengths."""
    transactional_id, position = _plain_string(frame, call.body_at)
    acks, timeout_ms, topic_count = _ACKS_TIMEOUT_COUNT.unpack_from(frame, position)
    position += 10
    partitions_left = max_partitions - topic_count
    if partitions_left < 0 or topic_count < 0:
        raise _bad_length(topic_count)
    topics: list[ProduceTopic] = []
    for _ in range(topic_count):
        name, position = _plain_string(frame, position)
        if name is None:
            raise Disconnect("topic name is null")
        (count,) = INT32.unpack_from(frame, position)
        position += 4
        partitions_left -= count
        if partitions_left < 0 or count < 0:
            raise _bad_length(count)
        partitions: list[ProducePartition] = []
        for _ in range(count):
            index, size = _INDEX_SIZE.unpack_from(frame, position)
            position += 8
            if size >= 0:
                partitions.append((index, frame[position : position + size]))
                position += size
            elif size == -1:
                partitions.append((index, None))
            else:
                raise Disconnect(f"negative length ({size})")
        topics.append((name, None, partitions))
    if position > len(frame):
        raise Disconnect("message is cut short")
    return ProduceRequest(transactional_id, acks, timeout_ms, topics)


def _bad_length(count: int) -> Disconnect:
    kind = TooManyValues if 0 <= count <= MAX_PARTITIONS else Disconnect
    return kind(f"invalid array length ({count})")


def _plain_string(frame: memoryview, position: int) -> tuple[str | None, int]:
    (size,) = INT16.unpack_from(frame, position)
    position += 2
    if size < 0:
        if size == -1:
            return None, position
        raise Disconnect(f"negative length ({size})")
    return str(frame[position : position + size], "utf-8"), position + size


def _flexible(call: Call, frame: memoryview, max_partitions: int) -> ProduceRequest:
    """Versions 9 to 13: compact lengths, tagged fields, from 13 on topic ids.

    Lengths are nearly always one byte, which is read together with the number before it.
    """
    by_id = call.version >= FIRST_BY_ID
    transactional_id, position = None, call.body_at + 1
    if frame[position - 1]:
        transactional_id, position = _compact_string(frame, position - 1)
    acks, timeout_ms, count = _ACKS_TIMEOUT_BYTE.unpack_from(frame, position)
    position += 7
    if count > 0x7F:
        count, position = read_uvarint(frame, position - 1)
    partitions_left, tags = max_partitions - count, MAX_TAGS
    if partitions_left < 0 or not count:
        raise _bad_length(count - 1)
    topics: list[ProduceTopic] = []
    for _ in range(count - 1):
        name, topic_id = None, None
        if by_id:
            topic_id, position = UUID(bytes=bytes(frame[position : position + 16])), position + 16
        else:
            name, position = _compact_string(frame, position)
            if name is None:
                raise Disconnect("topic name is null")
        count = frame[position]
        position += 1
        if count > 0x7F:
            count, position = read_uvarint(frame, position - 1)
        partitions_left -= count
        if partitions_left < 0 or not count:
            raise _bad_length(count - 1)
        partitions, position, tags = _flexible_partitions(frame, position, count - 1, tags)
        topics.append((name, topic_id, partitions))
        position, tags = (
            _skip_tags(frame, position, tags) if frame[position] else (position + 1, tags)
        )
    position, _ = _skip_tags(frame, position, tags) if frame[position] else (position + 1, tags)
    if position > len(frame):
        raise Disconnect("message is cut short")
    return ProduceRequest(transactional_id, acks, timeout_ms, topics)


def _skip_tags(frame: memoryview, position: int, allowed: int) -> tuple[int, int]:
    """The position after tagged fields, and how many more the request may have."""
    position, count = skip_tags(frame, position, allowed)
    return position, allowed - count


def _flexible_partitions(
    frame: memoryview, position: int, count: int, tags: int
) -> tuple[list[ProducePartition], int, int]:
    partitions: list[ProducePartition] = []
    for _ in range(count):
        index, size = _INDEX_BYTE.unpack_from(frame, position)
        position += 5
        if size > 0x7F:
            size, position = read_uvarint(frame, position - 1)
        if size:
            end = position + size - 1
            partitions.append((index, frame[position:end]))
            position = end
        else:
            partitions.append((index, None))
        if frame[position]:
            position, tags = _skip_tags(frame, position, tags)
        else:
            position += 1
    return partitions, position, tags


def _compact_string(frame: memoryview, position: int) -> tuple[str | None, int]:
    size = frame[position]
    position += 1
    if size > 0x7F:
        size, position = read_uvarint(frame, position - 1)
    if not size:
        return None, position
    if size > MAX_STRING_BYTES + 1:
        raise Disconnect(f"string is too long ({size})")
    end = position + size - 1
    return str(frame[position:end], "utf-8"), end


def encode_produce(
    version: int,
    transactional_id: str | None,
    acks: int,
    timeout_ms: int,
    topics: Sequence[tuple[str | UUID, Sequence[tuple[int, Bytes]]]],
) -> list[Bytes]:
    """The body of a request as parts, the record sets unchanged among them."""
    flexible = version >= FIRST_FLEXIBLE
    end = b"\0" if flexible else b""  # no tagged fields
    out = bytearray()
    put_string(out, transactional_id, flexible)
    out += _ACKS_TIMEOUT.pack(acks, timeout_ms)
    put_count(out, len(topics), flexible)
    parts: list[Bytes] = []
    for topic, partitions in topics:
        out += topic_bytes(topic, flexible)
        put_count(out, len(partitions), flexible)
        for index, records in partitions:
            out += INT32.pack(index)
            put_count(out, len(records), flexible)
            parts += (bytes(out), records)
            out = bytearray(end)
        out += end
    out += end
    parts.append(bytes(out))
    return parts
