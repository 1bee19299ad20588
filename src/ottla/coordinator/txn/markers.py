"""Writes transaction markers to the partitions of a transaction.

Owns the append of control batches to partitions led by this broker. Never decides that a
transaction ends, and never retries: the result is one error code for each partition.

Markers on `__consumer_offsets` go through the group coordinator, which applies them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, NamedTuple, Protocol, TypeAlias

from ottla.coordinator.deferred_reply import Commit, DeferredReply
from ottla.coordinator.txn.end_transaction import EPOCH_PER_TRANSACTION
from ottla.coordinator.txn.state import Producer
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import CONSUMER_OFFSETS, ProducerId, TopicPartition
from ottla.protocol.records.control import ControlType, EndTxnMarker, build_marker
from ottla.replica.hosted_partitions import HostedPartitions
from ottla.replica.internal_append import InternalAppender

TIMEOUT_MS: Final = 30_000
AS_PARTITION_CODE: Final = {
    ErrorCode.coordinator_load_in_progress: ErrorCode.not_leader_or_follower,
    ErrorCode.coordinator_not_available: ErrorCode.not_leader_or_follower,
    ErrorCode.not_coordinator: ErrorCode.not_leader_or_follower,
}
"""Errors of the group coordinator, as results of its partition of `__consumer_offsets`: for the
sender of a marker, "coordinator" means the transaction coordinator."""

Codes: TypeAlias = Mapping[TopicPartition, ErrorCode]


class OffsetMarkers(Protocol):
    """The part of the group coordinator used here."""

    def end_transaction(self, index: int, producer: Producer, marker: EndTxnMarker) -> Commit: ...


class TransactionEnd(NamedTuple):
    """The outcome of one transaction, as its markers record it."""

    producer: Producer
    commit: bool
    coordinator_epoch: int
    version: int = 0

    @property
    def marker(self) -> EndTxnMarker:
        kind = ControlType.COMMIT if self.commit else ControlType.ABORT
        return EndTxnMarker(kind, self.coordinator_epoch)


class MarkerAppender:
    """`on_marker` is called for each partition and producer before a marker is written."""

    def __init__(
        self,
        hosted: HostedPartitions,
        offsets: OffsetMarkers,
        on_marker: Callable[[TopicPartition, ProducerId], None],
    ) -> None:
        self._appends = InternalAppender(hosted)
        self._hosted = hosted
        self._clock = hosted.environment.clock
        self._offsets = offsets
        self._on_marker = on_marker

    def write(
        self, marking: TransactionEnd, partitions: Iterable[TopicPartition]
    ) -> DeferredReply[Codes]:
        """Append to each partition now; settled when every append is committed or has failed."""
        plain: list[TopicPartition] = []
        offsets: list[TopicPartition] = []
        codes: dict[TopicPartition, ErrorCode] = {}
        for key in partitions:
            if self._is_taken(key, marking):
                codes[key] = ErrorCode.invalid_producer_epoch
                continue
            self._on_marker(key, marking.producer.id)
            if key.topic == CONSUMER_OFFSETS:
                offsets.append(key)
            else:
                plain.append(key)
        writing = _Writing(codes, len(plain) + len(offsets))
        if plain:
            self._append(marking, plain, writing)
        for key in offsets:
            self._end_offsets(marking, key, writing)
        return writing.all_written

    def _append(
        self, marking: TransactionEnd, keys: list[TopicPartition], writing: _Writing
    ) -> None:
        batch = build_marker(
            marking.marker,
            producer_id=marking.producer.id,
            producer_epoch=marking.producer.epoch,
            timestamp=self._clock.wall_ms(),
        )

        for key in keys:
            try:
                partition = self._hosted.get(key)
            except KafkaError as refusal:
                writing.add_result(key, refusal.code)
            else:
                record_result = partial(writing.add_result, key)
                self._appends.append(partition, batch, TIMEOUT_MS, record_result)

    def _end_offsets(self, marking: TransactionEnd, key: TopicPartition, writing: _Writing) -> None:
        def record_result(code: ErrorCode) -> None:
            writing.add_result(key, AS_PARTITION_CODE.get(code, code))

        try:
            ended = self._offsets.end_transaction(key.partition, marking.producer, marking.marker)
        except KafkaError as refusal:
            record_result(refusal.code)
        else:
            ended.then(record_result)

    def _is_taken(self, key: TopicPartition, marking: TransactionEnd) -> bool:
        """Whether the next transaction has started in this partition under the marker's epoch.

        Where every end raises the epoch, a transaction's records have a lower epoch than its
        marker: a marker with the epoch of an open transaction is a delayed one of the transaction
        before, and must not end this one.
        """
        partition = self._hosted.find(key)
        if partition is None or marking.version < EPOCH_PER_TRANSACTION:
            return False
        state = partition.log.producers.get(ProducerId(marking.producer.id))
        if state is None or state.epoch != marking.producer.epoch:
            return False
        return state.txn_first_offset is not None


class _Writing:
    """The markers of one transaction being written: the results, and how many are outstanding."""

    __slots__ = ("_codes", "_markers_left", "all_written")

    def __init__(self, codes: dict[TopicPartition, ErrorCode], markers_left: int) -> None:
        self._codes = codes
        self._markers_left = markers_left
        self.all_written: DeferredReply[Codes] = DeferredReply()
        if not markers_left:
            self.all_written.settle(codes)

    def add_result(self, key: TopicPartition, code: ErrorCode) -> None:
        self._codes[key] = code
        self._markers_left -= 1
        if not self._markers_left:
            self.all_written.settle(self._codes)
