"""Appending to an internal topic, and waiting until what stands there is committed.

Owns the terms of such an append and what a failed one means to a client of the coordinator. Never
knows what is appended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from ottla.coordinator.deferred_reply import Commit, DeferredReply
from ottla.coordinator.outcome import CoordinatorRecord
from ottla.log.validate import CODECS
from ottla.model.errors import ErrorCode
from ottla.model.ids import Offset, ProducerId
from ottla.protocol.records.batch import HEADER_SIZE, build
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.header import TRANSACTIONAL_BIT
from ottla.protocol.records.record import NewRecord
from ottla.protocol.records.small_batch import build_plain
from ottla.replica.hosted_partitions import HostedPartitions
from ottla.replica.internal_append import InternalAppender
from ottla.replica.partition import HostedPartition

RECORD_OVERHEAD: Final = 32
"""More than a record's lengths and deltas can take."""
FEW: Final = 64
FEW_BYTES: Final = 1 << 19
"""So many records, of the sizes ours have, need no counting."""

SAID: Final = {
    ErrorCode.unknown_topic_or_partition: ErrorCode.coordinator_not_available,
    ErrorCode.not_enough_replicas: ErrorCode.coordinator_not_available,
    ErrorCode.not_enough_replicas_after_append: ErrorCode.coordinator_not_available,
    ErrorCode.request_timed_out: ErrorCode.coordinator_not_available,
    ErrorCode.not_leader_or_follower: ErrorCode.not_coordinator,
    ErrorCode.kafka_storage_error: ErrorCode.not_coordinator,
    ErrorCode.message_too_large: ErrorCode.unknown_server_error,
    ErrorCode.record_list_too_large: ErrorCode.unknown_server_error,
}
"""What a client hears when an internal topic could not be written; any other code as it is."""


class TransactionalWriter(Protocol):
    """In whose transaction records are written."""

    @property
    def id(self) -> ProducerId: ...

    @property
    def epoch(self) -> int: ...


class Producer(NamedTuple):
    """A producer, known by no more than that."""

    id: ProducerId
    epoch: int


class InternalTopicLog:
    def __init__(
        self, hosted: HostedPartitions, *, timeout_ms: int, codec: Codec = Codec.NONE
    ) -> None:
        self._appends = InternalAppender(hosted)
        self._clock = hosted.environment.clock
        self._timeout_ms = timeout_ms
        self._codec = codec

    def parts(
        self, partition: HostedPartition, records: Sequence[CoordinatorRecord]
    ) -> list[Sequence[CoordinatorRecord]]:
        """One part, unless the topic's largest batch cannot hold them all."""
        room = partition.log.config.max_message_bytes - HEADER_SIZE
        if len(records) < FEW and room > FEW_BYTES:
            return [records]
        parts: list[list[CoordinatorRecord]] = [[]]
        left = room
        for record in records:
            size = RECORD_OVERHEAD + len(record.key) + len(record.value or b"")
            if size > left and parts[-1]:
                parts.append([])
                left = room
            parts[-1].append(record)
            left -= size
        return list(parts)

    def batch(
        self,
        partition: HostedPartition,
        records: Iterable[CoordinatorRecord],
        producer: TransactionalWriter | None,
    ) -> bytes:
        now = self._clock.wall_ms()
        wanted = partition.log.config.compression_type
        # In the codec the topic asks for, or the append would have to wait for a rewrite.
        codec = self._codec if wanted == "producer" else CODECS[wanted]
        producer_id = -1 if producer is None else producer.id
        producer_epoch = -1 if producer is None else producer.epoch
        if codec is Codec.NONE:
            return build_plain(
                [(key, value) for _, key, value in records],
                now,
                attributes=0 if producer is None else TRANSACTIONAL_BIT,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
            )
        return build(
            [NewRecord(record.key, record.value, (), now) for record in records],
            codec=codec,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transactional=producer is not None,
        )

    def append(
        self,
        partition: HostedPartition,
        batch: bytes,
        appended: Callable[[Offset], None] | None = None,
    ) -> Commit:
        """Append now; it is settled with the high watermark, or with a refusal.

        `appended` is told the first offset before anything else may happen, unless it is refused.
        """
        commit: Commit = DeferredReply()
        self._appends.append(
            partition,
            batch,
            self._timeout_ms,
            lambda code: commit.settle(SAID.get(code, code)),
            appended,
        )
        return commit

    def settled(self, partition: HostedPartition) -> Commit | None:
        """Settled when all that stands in the log now is committed; None when it is."""
        end = partition.log.end_offset
        if partition.acknowledged(partition.leader_epoch, end) is ErrorCode.none:
            return None
        commit: Commit = DeferredReply()
        self._appends.commits.wait(
            partition, end, self._timeout_ms, lambda code: commit.settle(SAID.get(code, code))
        )
        return commit
