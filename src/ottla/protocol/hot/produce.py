"""Produce: the request decoded where it lies, and the reply.

Record sets stay slices of the frame, so a megabyte of records costs as much as none. Never looks
inside a record set.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from ottla.model.errors import Disconnect, ErrorCode
from ottla.protocol.guard import MAX_STRING_BYTES, read_uvarint
from ottla.protocol.hot.parts import (
    FRAME,
    INT16,
    INT32,
    Endpoint,
    put_count,
    put_endpoints,
    put_string,
    put_topic,
    tagged,
)
from ottla.protocol.wire import Call, skip_tags

MAX_PARTITIONS: Final = 100_000  # in one Produce request

_ACKS_TIMEOUT: Final = Struct(">hi")
_ACKS_TIMEOUT_COUNT: Final = Struct(">hii")
_INDEX_SIZE: Final = Struct(">ii")

ProducePartition: TypeAlias = tuple[int, memoryview | None]
ProduceTopic: TypeAlias = tuple[str | None, UUID | None, list[ProducePartition]]


class ProduceRequest(NamedTuple):
    """What a producer asks; record sets are slices of the frame it came in."""

    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: list[ProduceTopic]


def decode_produce(call: Call, frame: memoryview) -> ProduceRequest:
    """A Produce request, versions 3 to 13."""
    if not 3 <= call.version <= 13:
        raise Disconnect(f"Produce v{call.version} is not offered")
    try:
        request, end = (_flexible if call.flexible else _plain)(call, frame)
    except (IndexError, StructError):
        raise Disconnect("message is cut short") from None
    except UnicodeDecodeError:
        raise Disconnect("name is not UTF-8") from None
    if end != len(frame):
        raise Disconnect("message is cut short" if end > len(frame) else "bytes after the message")
    return request


def _plain(call: Call, frame: memoryview) -> tuple[ProduceRequest, int]:
    """Versions 3 to 8: fixed-width lengths."""
    transactional_id, at = _plain_string(frame, call.body_at)
    acks, timeout_ms, topic_count = _ACKS_TIMEOUT_COUNT.unpack_from(frame, at)
    at += 10
    left = _taken(topic_count, MAX_PARTITIONS)
    topics: list[ProduceTopic] = []
    for _ in range(topic_count):
        name, at = _plain_string(frame, at)
        if name is None:
            raise Disconnect("null where a value must be")
        (count,) = INT32.unpack_from(frame, at)
        at += 4
        left = _taken(count, left)
        partitions: list[ProducePartition] = []
        for _ in range(count):
            index, size = _INDEX_SIZE.unpack_from(frame, at)
            at += 8
            if size >= 0:
                partitions.append((index, frame[at : at + size]))
                at += size
            elif size == -1:
                partitions.append((index, None))
            else:
                raise Disconnect(f"negative length ({size})")
        topics.append((name, None, partitions))
    return ProduceRequest(transactional_id, acks, timeout_ms, topics), at


def _plain_string(frame: memoryview, at: int) -> tuple[str | None, int]:
    (size,) = INT16.unpack_from(frame, at)
    at += 2
    if size < 0:
        if size == -1:
            return None, at
        raise Disconnect(f"negative length ({size})")
    return str(frame[at : at + size], "utf-8"), at + size


def _flexible(call: Call, frame: memoryview) -> tuple[ProduceRequest, int]:
    """Versions 9 to 13: compact lengths, tagged fields, from 13 on topic ids."""
    by_id = call.version >= 13
    transactional_id, at = _compact_string(frame, call.body_at)
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(frame, at)
    topic_count, at = read_uvarint(frame, at + 6)
    left = _taken(topic_count - 1, MAX_PARTITIONS)
    topics: list[ProduceTopic] = []
    for _ in range(topic_count - 1):
        name: str | None = None
        topic_id: UUID | None = None
        if by_id:
            topic_id = UUID(bytes=bytes(frame[at : at + 16])) if at + 16 <= len(frame) else None
            at += 16
        else:
            name, at = _compact_string(frame, at)
            if name is None:
                raise Disconnect("null where a value must be")
        count, at = read_uvarint(frame, at)
        left = _taken(count - 1, left)
        partitions: list[ProducePartition] = []
        for _ in range(count - 1):
            (index,) = INT32.unpack_from(frame, at)
            size, at = read_uvarint(frame, at + 4)
            if size:
                end = at + size - 1
                partitions.append((index, frame[at:end]))
                at = end
            else:
                partitions.append((index, None))
            at = skip_tags(frame, at) if frame[at] else at + 1
        topics.append((name, topic_id, partitions))
        at = skip_tags(frame, at) if frame[at] else at + 1
    return ProduceRequest(transactional_id, acks, timeout_ms, topics), skip_tags(frame, at)


def _compact_string(frame: memoryview, at: int) -> tuple[str | None, int]:
    size, at = read_uvarint(frame, at)
    if not size:
        return None, at
    if size > MAX_STRING_BYTES + 1:
        raise Disconnect(f"string is too long ({size})")
    end = at + size - 1
    return str(frame[at:end], "utf-8"), end


def _taken(count: int, left: int) -> int:
    if not 0 <= count <= left:
        raise Disconnect(f"array length ({count})")
    return left - count


class ProducedPartition(NamedTuple):
    """What became of one record set."""

    index: int  # type: ignore[assignment]  # Kafka's word for it
    error_code: ErrorCode = ErrorCode.none
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: Sequence[tuple[int, str | None]] = ()
    error_message: str | None = None
    current_leader: tuple[int, int] | None = None  # leader id and epoch


_PRODUCED: Final = Struct(">ihqq")
_PRODUCED_5: Final = Struct(">ihqqq")
_LEADER: Final = Struct(">iiB")


def produce_reply(
    call: Call,
    topics: Sequence[tuple[str | UUID, Sequence[ProducedPartition]]],
    throttle_ms: int = 0,
    endpoints: Sequence[Endpoint] = (),
) -> bytes:
    """A framed Produce reply, versions 3 to 13; topics by id in version 13, by name before."""
    flexible = call.flexible
    out = bytearray(9 if flexible else 8)
    put_count(out, len(topics), flexible)
    for topic, partitions in topics:
        put_topic(out, topic, flexible)
        put_count(out, len(partitions), flexible)
        for partition in partitions:
            _put_produced(out, partition, call.version)
        if flexible:
            out += b"\0"
    out += INT32.pack(throttle_ms)
    if flexible:
        put_endpoints(out, endpoints if call.version >= 10 else ())
    FRAME.pack_into(out, 0, len(out) - 4, call.correlation_id)
    return bytes(out)


def _put_produced(out: bytearray, partition: ProducedPartition, version: int) -> None:
    if version < 5:
        out += _PRODUCED.pack(*partition[:4])
        return
    out += _PRODUCED_5.pack(*partition[:5])
    if version < 8:
        return
    flexible = version >= 9
    put_count(out, len(partition.record_errors), flexible)
    for index, message in partition.record_errors:
        out += INT32.pack(index)
        put_string(out, message, flexible)
        if flexible:
            out += b"\0"
    put_string(out, partition.error_message, flexible)
    if flexible:
        if version >= 10 and partition.current_leader is not None:
            out += b"\x01" + tagged(0, _LEADER.pack(*partition.current_leader, 0))
        else:
            out += b"\0"
