"""Transaction markers: how the end of a transaction is written into the partitions it touched.

Owns the append of control batches to partitions led here. Never decides that a transaction ends,
and never tries twice: what became of each partition is the answer.

Markers on `__consumer_offsets` go through the coordinator of groups, which must act on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
"""What the coordinator of groups refuses, as a result of its partition of `__consumer_offsets`:
to whoever asks for a marker, "coordinator" is the coordinator of the transaction."""

Codes: TypeAlias = Mapping[TopicPartition, ErrorCode]


class OffsetMarkers(Protocol):
    """All that this needs of the coordinator of groups."""

    def end_transaction(self, index: int, producer: Producer, marker: EndTxnMarker) -> Commit: ...


class TransactionEnd(NamedTuple):
    """One transaction's end."""

    producer: Producer
    commit: bool
    coordinator_epoch: int
    version: int = 0

    @property
    def marker(self) -> EndTxnMarker:
        kind = ControlType.COMMIT if self.commit else ControlType.ABORT
        return EndTxnMarker(kind, self.coordinator_epoch)


class MarkerAppender:
    def __init__(self, hosted: HostedPartitions, offsets: OffsetMarkers) -> None:
        self._appends = InternalAppender(hosted)
        self._hosted = hosted
        self._clock = hosted.environment.clock
        self._offsets = offsets

    def write(
        self, marking: TransactionEnd, partitions: Iterable[TopicPartition]
    ) -> DeferredReply[Codes]:
        """Append to each now; how that went is known once each is committed or not."""
        plain: list[TopicPartition] = []
        offsets: list[TopicPartition] = []
        codes: dict[TopicPartition, ErrorCode] = {}
        for key in partitions:
            if self._is_taken(key, marking):
                codes[key] = ErrorCode.invalid_producer_epoch
            elif key.topic == CONSUMER_OFFSETS:
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
                writing.note(key, refusal.code)
            else:
                noted = partial(writing.note, key)
                self._appends.append(partition, batch, TIMEOUT_MS, noted)

    def _end_offsets(self, marking: TransactionEnd, key: TopicPartition, writing: _Writing) -> None:
        def noted(code: ErrorCode) -> None:
            writing.note(key, AS_PARTITION_CODE.get(code, code))

        try:
            ended = self._offsets.end_transaction(key.partition, marking.producer, marking.marker)
        except KafkaError as refusal:
            noted(refusal.code)
        else:
            ended.then(noted)

    def _is_taken(self, key: TopicPartition, marking: TransactionEnd) -> bool:
        """Whether the next transaction has begun here under the very epoch of this marker.

        Where every end raises the epoch, a transaction's own records have a lower one than its
        marker: this one was delayed beyond its time, and must not end what is not its own.
        """
        partition = self._hosted.find(key)
        if partition is None or marking.version < EPOCH_PER_TRANSACTION:
            return False
        state = partition.log.producers.get(ProducerId(marking.producer.id))
        if state is None or state.epoch != marking.producer.epoch:
            return False
        return state.txn_first_offset is not None


class _Writing:
    """One transaction's markers on their way: how each went, and how many are still out."""

    __slots__ = ("_codes", "_left", "all_written")

    def __init__(self, codes: dict[TopicPartition, ErrorCode], left: int) -> None:
        self._codes = codes
        self._left = left
        self.all_written: DeferredReply[Codes] = DeferredReply()
        if not left:
            self.all_written.settle(codes)

    def note(self, key: TopicPartition, code: ErrorCode) -> None:
        self._codes[key] = code
        self._left -= 1
        if not self._left:
            self.all_written.settle(self._codes)
