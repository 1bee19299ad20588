"""Fetch: the reply, as parts with the records of files between them.

A reply is a list: encoded bytes, and the callers' record sources unchanged, which the connection
sends directly from their files. Never reads a source; its size is enough.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from struct import Struct
from typing import Final, NamedTuple, Protocol, TypeAlias
from uuid import UUID

from ottla.model.errors import ErrorCode
from ottla.protocol.hot.parts import (
    FRAME,
    INT32,
    Endpoint,
    put_count,
    put_endpoints,
    tagged,
    topic_bytes,
)
from ottla.protocol.wire import Call

SLICE: Final = 500
"""Partitions that `fetch_reply_in_slices` encodes at a time."""
INLINE_BYTES: Final = 16 * 1024  # records in memory below this are copied into their neighbours
IN_MEMORY: Final = (bytes, memoryview)
_TOP_7: Final = Struct(">ihi")
PARTITION_4: Final = Struct(">ihqq")
PARTITION_5: Final = Struct(">ihqqq")
_NOTHING_11: Final = Struct(">ihqqqiii")
_NOTHING_12: Final = Struct(">ihqqqBiBB")
ABORTED: Final = Struct(">qq")
_ABORTED_FLEXIBLE: Final = Struct(">qqB")
_EPOCH_END: Final = Struct(">iqB")
LEADER: Final = Struct(">iiB")


class Sized(Protocol):
    """Records that are not in memory, for example in a file: a reply needs only their size."""

    @property
    def size(self) -> int: ...


class FetchedPartition(NamedTuple):
    """The result of one partition."""

    index: int  # type: ignore[assignment]  # Kafka's word for it
    error_code: ErrorCode = ErrorCode.none
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    aborted: Sequence[tuple[int, int]] | None = None  # producer id, first offset
    preferred_read_replica: int = -1
    diverging_epoch: tuple[int, int] | None = None  # epoch, end offset
    current_leader: tuple[int, int] | None = None  # leader id, epoch
    records: Sized | bytes | memoryview | None = b""


Part: TypeAlias = bytes | memoryview | Sized
Topics: TypeAlias = Sequence[tuple[str | UUID, Sequence[FetchedPartition]]]


def fetch_reply(
    call: Call,
    throttle_ms: int,
    error: ErrorCode,
    session_id: int,
    topics: Topics,
    *,
    endpoints: Sequence[Endpoint] = (),
) -> list[Part]:
    """A framed Fetch reply, versions 4 to 18; topics by id from version 13, by name before."""
    flexible = call.flexible
    parts = _head(call, throttle_ms, error, session_id, len(topics))
    for topic, partitions in topics:
        out = _last(parts)
        out += topic_bytes(topic, flexible)
        put_count(out, len(partitions), flexible)
        _put_partitions(parts, partitions, call.version, flexible)
        if flexible:
            _last(parts).append(0)
    return _framed(call, parts, endpoints)


def fetch_reply_in_slices(
    call: Call, session_id: int, topics: Topics, *, endpoints: Sequence[Endpoint] = ()
) -> Generator[None, None, list[Part]]:
    """As `fetch_reply`, for thousands of partitions; yields between slices."""
    flexible = call.flexible
    parts = _head(call, 0, ErrorCode.none, session_id, len(topics))
    slice_left = SLICE
    for topic, partitions in topics:
        out = _last(parts)
        out += topic_bytes(topic, flexible)
        put_count(out, len(partitions), flexible)
        start = 0
        while start < len(partitions):
            some = partitions[start : start + slice_left]
            _put_partitions(parts, some, call.version, flexible)
            start += slice_left
            slice_left -= len(some)
            if not slice_left:
                slice_left = SLICE
                yield
        if flexible:
            _last(parts).append(0)
    return _framed(call, parts, endpoints)


def _head(
    call: Call, throttle_ms: int, error: ErrorCode, session_id: int, topic_count: int
) -> list[bytearray | Part]:
    """The first part of a reply, with room for the frame; later parts follow in this list."""
    out = bytearray(9 if call.flexible else 8)
    if call.version >= 7:
        out += _TOP_7.pack(throttle_ms, error, session_id)
    else:
        out += INT32.pack(throttle_ms)
    put_count(out, topic_count, call.flexible)
    return [out]


def _last(parts: list[bytearray | Part]) -> bytearray:
    """Where to append."""
    out = parts[-1]
    assert type(out) is bytearray
    return out


def _put_partitions(
    parts: list[bytearray | Part],
    partitions: Sequence[FetchedPartition],
    version: int,
    flexible: bool,
) -> None:
    out = _last(parts)
    for partition in partitions:
        if version >= 11 and _has_no_news(partition):
            out += _without_news(partition, flexible)
            continue
        _put_partition(out, partition, version)
        outside = _put_records(out, partition.records, flexible)
        if outside is not None:
            out = bytearray()
            parts += (outside, out)
        if flexible:
            _put_tags(out, partition)


def _framed(call: Call, parts: list[bytearray | Part], endpoints: Sequence[Endpoint]) -> list[Part]:
    first, last = parts[0], _last(parts)
    assert type(first) is bytearray
    if endpoints and call.version >= 16:
        put_endpoints(last, endpoints)
    elif call.flexible:
        last.append(0)
    sizes = [len(part) if isinstance(part, bytearray) else _size(part) for part in parts]
    FRAME.pack_into(first, 0, sum(sizes) - 4, call.correlation_id)
    return [bytes(part) if isinstance(part, bytearray) else part for part in parts]


def _has_no_news(partition: FetchedPartition) -> bool:
    """Only watermarks, as most partitions in the reply to a consumer that is caught up."""
    return (
        partition[9] == b"" and not partition[5] and partition[7] is None and partition[8] is None
    )


def _without_news(partition: FetchedPartition, flexible: bool) -> bytes:
    index, error, high_watermark, stable, start, aborted, preferred, *_ = partition
    none = aborted is None
    if flexible:
        return _NOTHING_12.pack(
            index, error, high_watermark, stable, start, 0 if none else 1, preferred, 1, 0
        )
    return _NOTHING_11.pack(
        index, error, high_watermark, stable, start, -1 if none else 0, preferred, 0
    )


def _put_records(
    out: bytearray, records: Sized | bytes | memoryview | None, flexible: bool
) -> Sized | bytes | memoryview | None:
    """Append their size, and the records if they are small; otherwise return the records."""
    if records is None:
        out += b"\0" if flexible else b"\xff\xff\xff\xff"
        return None
    size = _size(records)
    put_count(out, size, flexible)
    if isinstance(records, IN_MEMORY) and size < INLINE_BYTES:
        out += records
        return None
    return records if size else None


def _size(records: Sized | bytes | memoryview) -> int:
    return len(records) if isinstance(records, IN_MEMORY) else records.size


def _put_partition(out: bytearray, partition: FetchedPartition, version: int) -> None:
    out += PARTITION_5.pack(*partition[:5]) if version >= 5 else PARTITION_4.pack(*partition[:4])
    flexible, aborted = version >= 12, partition.aborted
    if aborted is None:
        out += b"\0" if flexible else b"\xff\xff\xff\xff"
    else:
        put_count(out, len(aborted), flexible)
        for producer_id, first_offset in aborted:
            if flexible:
                out += _ABORTED_FLEXIBLE.pack(producer_id, first_offset, 0)
            else:
                out += ABORTED.pack(producer_id, first_offset)
    if version >= 11:
        out += INT32.pack(partition.preferred_read_replica)


def _put_tags(out: bytearray, partition: FetchedPartition) -> None:
    if partition.diverging_epoch is None and partition.current_leader is None:
        out += b"\0"
        return
    present = []
    if partition.diverging_epoch is not None:
        present.append(tagged(0, _EPOCH_END.pack(*partition.diverging_epoch, 0)))
    if partition.current_leader is not None:
        present.append(tagged(1, LEADER.pack(*partition.current_leader, 0)))
    out.append(len(present))
    out += b"".join(present)
