"""Appends to an internal topic and waits until the records are committed.

Owns the format and timeout of such an append, and the error that a client of the coordinator gets
when it fails. Never interprets the records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from ottla.coordinator.deferred_reply import Commit, DeferredReply
from ottla.coordinator.outcome import CoordinatorRecord
from ottla.log.validate import CODECS
from ottla.model.errors import ErrorCode
from ottla.model.ids import Offset, ProducerId
from ottla.protocol.records.batch import HEADER_SIZE, build, build_plain
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.header import TRANSACTIONAL_BIT
from ottla.protocol.records.record import NewRecord
from ottla.replica.hosted_partitions import HostedPartitions
from ottla.replica.internal_append import InternalAppender
from ottla.replica.partition import HostedPartition

RECORD_OVERHEAD: Final = 32
"""An upper bound of a record's lengths and deltas, in bytes."""
FEW: Final = 64
FEW_BYTES: Final = 1 << 19
"""Fewer records than this, of the sizes coordinators write, fit without counting their bytes."""

CLIENT_ERRORS: Final = {
    ErrorCode.unknown_topic_or_partition: ErrorCode.coordinator_not_available,
    ErrorCode.not_enough_replicas: ErrorCode.coordinator_not_available,
    ErrorCode.not_enough_replicas_after_append: ErrorCode.coordinator_not_available,
    ErrorCode.request_timed_out: ErrorCode.coordinator_not_available,
    ErrorCode.not_leader_or_follower: ErrorCode.not_coordinator,
    ErrorCode.kafka_storage_error: ErrorCode.not_coordinator,
    ErrorCode.message_too_large: ErrorCode.unknown_server_error,
    ErrorCode.record_list_too_large: ErrorCode.unknown_server_error,
}
"""The error a client gets when an append to an internal topic fails; other codes are unchanged."""


class TransactionalWriter(Protocol):
    """The producer in whose transaction records are written."""

    @property
    def id(self) -> ProducerId: ...

    @property
    def epoch(self) -> int: ...


class RecordProducer(NamedTuple):
    """The id and epoch of a producer."""

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
        """The records split into batches no larger than the topic's `max.message.bytes`."""
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
        compression = partition.log.config.compression_type
        # In the topic's own codec: otherwise the append would have to recompress the batch.
        codec = self._codec if compression == "producer" else CODECS[compression]
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
        """Append now; settled when the high watermark passes the batch, or with an error.

        `appended` is called with the first offset before anything else runs, unless the append is
        refused.
        """
        commit: Commit = DeferredReply()
        self._appends.append(
            partition,
            batch,
            self._timeout_ms,
            lambda code: commit.settle(CLIENT_ERRORS.get(code, code)),
            appended,
        )
        return commit

    def settled(self, partition: HostedPartition) -> Commit | None:
        """Settled when everything in the log now is committed; None if it is already."""
        end = partition.log.end_offset
        if partition.acknowledged(partition.leader_epoch, end) is ErrorCode.none:
            return None
        commit: Commit = DeferredReply()
        self._appends.commits.wait(
            partition,
            end,
            self._timeout_ms,
            lambda code: commit.settle(CLIENT_ERRORS.get(code, code)),
        )
        return commit
