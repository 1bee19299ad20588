"""Handles the fetch response for one partition: records or an error.

Owns the reaction to each error of a partition. Never sends a request, never decodes a record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from ottla.client.cluster import Cluster
from ottla.client.consumer.errors import OffsetOutOfRange
from ottla.client.consumer.fetch.buffer import Buffer
from ottla.client.consumer.fetch.chunk import Chunk
from ottla.client.consumer.position.partition_position import UNKNOWN, AssignedPartition
from ottla.client.consumer.position.reset_policy import ResetPolicy
from ottla.client.errors import KafkaError, RecordTooLarge, refusal
from ottla.config.client import ConsumerConfig
from ottla.model.clock import MonoMs
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol.hot.fetch_response import PartitionResponse
from ottla.protocol.records.header import CorruptBatch

REFRESH_METADATA: Final = frozenset(
    {
        ErrorCode.not_leader_or_follower,
        ErrorCode.replica_not_available,
        ErrorCode.kafka_storage_error,
        ErrorCode.fenced_leader_epoch,
        ErrorCode.unknown_leader_epoch,
        ErrorCode.offset_not_available,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.unknown_topic_id,
        ErrorCode.inconsistent_topic_id,
        ErrorCode.leader_not_available,
        ErrorCode.unknown_server_error,
    }
)
"""Errors after which the metadata is refreshed, and the partition is retried."""


class RequestedPartition(NamedTuple):
    """What was requested, to compare with the response."""

    part: AssignedPartition
    version: int
    offset: int


class FetchErrorReaction(NamedTuple):
    """Callbacks: records arrived, a position is needed, an error is final."""

    arrived: Callable[[], None]
    moved: Callable[[], None]  # some partition needs a new position
    failed: Callable[[Exception], None]


class PartitionResponses:
    """Handles responses, partition by partition."""

    def __init__(self, cluster: Cluster, policy: ResetPolicy, wake: Callable[[], None]) -> None:
        assert isinstance(cluster.config, ConsumerConfig)
        self._config: ConsumerConfig = cluster.config
        self._cluster = cluster
        self._clock = cluster.clock
        self._policy = policy
        self._wake = wake
        self.bytes = 0

    def attach(self, buffer: Buffer, callbacks: FetchErrorReaction) -> None:
        self._buffer = buffer
        self._callbacks = callbacks

    def handle(
        self,
        requested: Mapping[TopicPartition, RequestedPartition],
        tp: TopicPartition,
        fetched: PartitionResponse,
    ) -> bool:
        """Handle one partition; False if the metadata should be refreshed before the next."""
        request = requested.get(tp)
        if request is None or request.part.version != request.version:
            return True  # sought or revoked meanwhile
        part = request.part
        if fetched.error_code:
            return self._on_error(part, fetched)
        part.high_watermark = fetched.high_watermark
        part.stable_offset = fetched.stable_offset
        part.log_start = fetched.log_start
        if fetched.preferred_replica != UNKNOWN:
            until_ms = MonoMs(self._clock.mono_ms() + self._config.metadata_max_age_ms)
            part.prefer(fetched.preferred_replica, until_ms)
            self._wake()  # another broker's task may have to start
            return True
        if len(fetched.records):
            self._buffer_records(request, fetched)
        return True

    def _buffer_records(self, request: RequestedPartition, fetched: PartitionResponse) -> None:
        part = request.part
        try:
            chunk = Chunk(part, request.version, fetched.records, fetched.aborted)
        except CorruptBatch as fault:
            self._callbacks.failed(
                KafkaError(
                    ErrorCode.corrupt_message,
                    f"cannot decode {part.tp} at offset {request.offset}: {fault}",
                )
            )
            return
        if chunk.end < 0:
            self._callbacks.failed(
                RecordTooLarge(
                    f"{part.tp} at offset {request.offset}: the next batch is larger than "
                    f"max.partition.fetch.bytes={self._config.max_partition_fetch_bytes}"
                )
            )
            return
        self.bytes += len(fetched.records)
        part.fetch_offset = chunk.end
        self._buffer.add(chunk)

    def _on_error(self, part: AssignedPartition, fetched: PartitionResponse) -> bool:
        code = ErrorCode(fetched.error_code)
        if code is ErrorCode.offset_out_of_range:
            return self._out_of_range(part)
        if code in REFRESH_METADATA:
            part.replica = UNKNOWN
            return self._has_new_leader(part.tp, fetched.leader)
        self._callbacks.failed(refusal(code, f"fetch of {part.tp} failed: {code.name}"))
        return False

    def _has_new_leader(self, tp: TopicPartition, leader: tuple[int, int] | None) -> bool:
        """Whether the response names a leader newer than the metadata's: fetch from it at once."""
        if leader is None:
            return False
        before = self._cluster.metadata
        self._cluster.metadata = before.with_leader(tp, *leader)
        self._wake()
        return self._cluster.metadata is not before

    def _out_of_range(self, part: AssignedPartition) -> bool:
        if part.replica != UNKNOWN:  # a follower may lag: ask the leader
            part.replica = UNKNOWN
            self._wake()
            return True
        if part.arrived != part.finished:
            return False  # buffered records are read first
        timestamp = self._policy.timestamp(self._clock.wall_ms())
        if timestamp is None:
            part.mark_stuck(OffsetOutOfRange({part.tp: part.offset}))
        else:
            part.reset(timestamp)
            self._callbacks.moved()
        return True
