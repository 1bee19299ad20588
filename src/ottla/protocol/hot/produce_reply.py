"""The Produce reply, encoded by brokers.

Clients decode it by kio: a reply has a few numbers for each partition. Hot: benchmarks/wire.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple
from uuid import UUID

from ottla.model.errors import ErrorCode
from ottla.protocol.hot.parts import (
    FRAME,
    INT32,
    Endpoint,
    put_count,
    put_endpoints,
    put_string,
    tagged,
    topic_bytes,
)
from ottla.protocol.wire import Call


class ProducedPartition(NamedTuple):
    """The result of one record set."""

    index: int  # type: ignore[assignment]  # Kafka's word for it
    error_code: ErrorCode = ErrorCode.none
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: Sequence[tuple[int, str | None]] = ()
    error_message: str | None = None
    current_leader: tuple[int, int] | None = None  # leader id and epoch


_PRODUCED_3: Final = Struct(">ihqq")
_PRODUCED_5: Final = Struct(">ihqqq")
_PRODUCED_9: Final = Struct(">ihqqqBBB")
_LEADER: Final = Struct(">iiB")
_ONE_HEAD: Final = Struct(">iiBB")  # size, correlation id, no tags, one topic
_ONE_GOOD: Final = Struct(">BihqqqBBBBiB")  # one partition, its end, the throttle time, no tags
_ONE_SIZE: Final = _ONE_HEAD.size + _ONE_GOOD.size - 4


def produce_reply(
    call: Call,
    topics: Sequence[tuple[str | UUID, Sequence[ProducedPartition]]],
    throttle_ms: int = 0,
    endpoints: Sequence[Endpoint] = (),
) -> bytes:
    """A framed Produce reply, versions 3 to 13; topics by id in version 13, by name before."""
    flexible = call.flexible
    if flexible and len(topics) == 1 and not (throttle_ms or endpoints):
        topic, partitions = topics[0]
        if len(partitions) == 1:
            small_reply = _one_good(call.correlation_id, topic_bytes(topic, True), partitions[0])
            if small_reply is not None:
                return small_reply
    out = bytearray(9 if flexible else 8)
    put_count(out, len(topics), flexible)
    for topic, partitions in topics:
        out += topic_bytes(topic, flexible)
        put_count(out, len(partitions), flexible)
        for partition in partitions:
            _put_produced(out, partition, call.version)
        if flexible:
            out += b"\0"
    out += INT32.pack(throttle_ms)
    if endpoints and call.version >= 10:
        put_endpoints(out, endpoints)
    elif flexible:
        out += b"\0"
    FRAME.pack_into(out, 0, len(out) - 4, call.correlation_id)
    return bytes(out)


def _one_good(correlation_id: int, topic: bytes, partition: ProducedPartition) -> bytes | None:
    """The reply to a small producer: one partition, nothing wrong. Hot: benchmarks/wire.py."""
    index, error, base, time, start, record_errors, message, current_leader = partition
    if error or message is not None or record_errors or current_leader:
        return None
    size = _ONE_SIZE + len(topic)
    return (
        _ONE_HEAD.pack(size, correlation_id, 0, 2)
        + topic
        + _ONE_GOOD.pack(2, index, 0, base, time, start, 1, 0, 0, 0, 0, 0)
    )


def _put_produced(out: bytearray, partition: ProducedPartition, version: int) -> None:
    index, error, base, time, start, record_errors, error_message, current_leader = partition
    if version >= 9 and error_message is None and not (record_errors or current_leader):
        # No errors of records, no message, no tagged fields: nearly every reply.
        out += _PRODUCED_9.pack(index, error, base, time, start, 1, 0, 0)
        return
    if version < 5:
        out += _PRODUCED_3.pack(index, error, base, time)
        return
    out += _PRODUCED_5.pack(index, error, base, time, start)
    if version < 8:
        return
    flexible = version >= 9
    put_count(out, len(record_errors), flexible)
    for position, message in record_errors:
        out += INT32.pack(position)
        put_string(out, message, flexible)
        if flexible:
            out += b"\0"
    put_string(out, error_message, flexible)
    if flexible and version >= 10 and current_leader is not None:
        out += b"\x01" + tagged(0, _LEADER.pack(*current_leader, 0))
    elif flexible:
        out += b"\0"
