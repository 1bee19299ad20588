"""The Produce request, and its response by partition.

Owns the bytes of the request: batches are included as they are, without a copy through kio. Tested
byte for byte against kio. Never sends.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from ottla.client.cluster_view import ClusterView
from ottla.client.producer.buffer.batch import Batch
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol.encode import ms, uvarint
from ottla.protocol.records.compression import Bytes

PRODUCE: Final = 0
FIRST_FLEXIBLE: Final = 9
FIRST_BY_ID: Final = 13
FIRST_IMPLICIT_TXN: Final = 12
"""From this version on brokers add partitions to a transaction implicitly."""
_ACKS: Final = struct.Struct(">hi")
_INT32: Final = struct.Struct(">i")
_INT16: Final = struct.Struct(">h")


class PartitionResult(NamedTuple):
    """The result of one batch in a response."""

    code: ErrorCode
    message: str | None
    base_offset: int
    append_time_ms: int
    log_start: int
    leader: tuple[int, int] | None  # the current leader and its epoch


def body(
    version: int,
    view: ClusterView,
    batches: Sequence[Batch],
    transactional_id: str | None,
    acks_and_timeout: tuple[int, int],
) -> list[Bytes]:
    """The parts of a request with these batches, at most one per partition."""
    flexible = version >= FIRST_FLEXIBLE
    by_topic: dict[str, list[Batch]] = {}
    for batch in batches:
        by_topic.setdefault(batch.tp.topic, []).append(batch)
    parts: list[Bytes] = [
        _string(transactional_id, flexible),
        _ACKS.pack(*acks_and_timeout),
        _count(len(by_topic), flexible),
    ]
    for topic, members in by_topic.items():
        named = view.topics[topic].id.bytes if version >= FIRST_BY_ID else _string(topic, flexible)
        parts += (named, _count(len(members), flexible))
        for batch in members:
            assert batch.encoded is not None
            size = len(batch.encoded)
            parts.append(_INT32.pack(batch.tp.partition) + _count(size, flexible))
            parts.append(batch.encoded)
            if flexible:
                parts.append(b"\0")
        if flexible:
            parts.append(b"\0")
    if flexible:
        parts.append(b"\0")
    return parts


def results(
    reply: Any, batches: Sequence[Batch], view: ClusterView
) -> Iterator[tuple[Batch, PartitionResult]]:
    """Each batch with its result; one that is missing in the response fails."""
    by_partition: dict[TopicPartition, Any] = {}
    names = {view.topics[batch.tp.topic].id: batch.tp.topic for batch in batches}
    for topic in reply.responses:
        name = topic.name or names.get(topic.topic_id, "")
        for partition in topic.partition_responses:
            by_partition[TopicPartition(name, partition.index)] = partition
    for batch in batches:
        row = by_partition.get(batch.tp)
        if row is None:
            yield (
                batch,
                PartitionResult(ErrorCode.unknown_topic_or_partition, None, -1, -1, -1, None),
            )
        else:
            yield batch, _result(row)


def _result(row: Any) -> PartitionResult:
    leader = row.current_leader
    has_leader = leader is not None and leader.leader_id >= 0
    return PartitionResult(
        row.error_code,
        row.error_message,
        row.base_offset,
        ms(row.log_append_time),
        row.log_start_offset,
        (leader.leader_id, leader.leader_epoch) if has_leader else None,
    )


def _count(count: int, flexible: bool) -> bytes:
    return uvarint(count + 1) if flexible else _INT32.pack(count)


def _string(text: str | None, flexible: bool) -> bytes:
    if text is None:
        return b"\0" if flexible else b"\xff\xff"
    data = text.encode()
    return (uvarint(len(data) + 1) if flexible else _INT16.pack(len(data))) + data
