"""The Produce request, and its response by partition.

Owns which batch belongs to which topic and partition. Never copies a batch, and never sends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ottla.client.cluster_view import ClusterView
from ottla.client.producer.buffer.batch import Batch
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol.encode import ms
from ottla.protocol.hot.produce_request import FIRST_BY_ID, encode_produce
from ottla.protocol.records.compression import Bytes
from ottla.protocol.schema import KioMessage, KioStruct

PRODUCE: Final = 0
FIRST_IMPLICIT_TXN: Final = 12
"""From this version on brokers add partitions to a transaction implicitly."""


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
    by_topic: dict[str, list[tuple[int, Bytes]]] = {}
    for batch in batches:
        assert batch.encoded is not None
        by_topic.setdefault(batch.tp.topic, []).append((batch.tp.partition, batch.encoded))
    topics = [
        (view.topics[topic].id if version >= FIRST_BY_ID else topic, partitions)
        for topic, partitions in by_topic.items()
    ]
    return encode_produce(version, transactional_id, *acks_and_timeout, topics)


def results(
    reply: KioMessage, batches: Sequence[Batch], view: ClusterView
) -> Iterator[tuple[Batch, PartitionResult]]:
    """Each batch with its result; one that is missing in the response fails."""
    by_partition: dict[TopicPartition, KioStruct] = {}
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


def _result(row: KioStruct) -> PartitionResult:
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
