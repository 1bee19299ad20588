"""One hosted partition: its log, its role and its high watermark.

The only writer of one partition's state. Never sends a request, waits, or changes another
partition; after a change the caller completes delayed operations and writes the metadata store.

If the flush policy requires it, an acks=all append holds back the high watermark until the data is
on disk: records that were read or acknowledged then survive a power cut.

A producer has up to five batches under way. If one is refused for what passes, as when leadership
is about to begin, those behind it are refused for the same reason although it has passed meanwhile,
and not as out of order: see docs/decisions/0033.
"""

from __future__ import annotations

from asyncio import Future
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from ottla.log.follower_append import append_as_follower
from ottla.log.log import Appended, Log, Origin
from ottla.log.producers.producer_states import is_gap
from ottla.log.validate import Analysis
from ottla.model.clock import MonoMs, WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import (
    NO_BROKER,
    NO_EPOCH,
    BrokerEpoch,
    BrokerId,
    LeaderEpoch,
    Offset,
    TopicPartition,
)
from ottla.replica.environment import ReplicaEnvironment
from ottla.replica.leader import UNKNOWN_EPOCH, LeaderAssignment, Leadership
from ottla.replica.topic_metrics import TopicMetrics

REFUSAL_MS: Final = 1_000
"""How long batches behind a refused one may arrive: they are on their way already."""


class PassingRefusal(NamedTuple):
    """Why a batch was refused that may be sent again, and when."""

    code: ErrorCode
    at_ms: MonoMs


class PartitionWatcher(Protocol):
    """A follower's session that has sent all there is: `fetch/session_partition.py`."""

    def on_change(self) -> None: ...


class PartitionWatchers(dict[BrokerId, PartitionWatcher]):
    """Of each follower, the session that is told of changes."""

    def report_change(self) -> None:
        """The log, its high watermark, the in-sync set or the role may have changed."""
        for watcher in tuple(self.values()):
            watcher.on_change()


def check_epoch(partition: HostedPartition, epoch: int) -> None:
    """KafkaError if the client names another leader epoch than the present one."""
    if epoch >= 0 and epoch != partition.leader_epoch:
        fenced = epoch < partition.leader_epoch
        raise KafkaError(
            ErrorCode.fenced_leader_epoch if fenced else ErrorCode.unknown_leader_epoch
        )


class HostedPartition:
    """A partition this broker holds a replica of."""

    __slots__ = (
        "_environment",
        "_flush_from",
        "_flush_to",
        "_refusal",
        "flushed_at_ms",
        "flushing",
        "leader_epoch",
        "leader_id",
        "leadership",
        "log",
        "not_leader_error",
        "rewriting",
        "topic_metrics",
        "truncating",
        "watchers",
    )

    def __init__(
        self,
        log: Log,
        environment: ReplicaEnvironment,
        topic_metrics: TopicMetrics,
        refused: ErrorCode = ErrorCode.none,
    ) -> None:
        """`refused`: what was replied to producers that came before this."""
        self.log = log
        self.topic_metrics = topic_metrics
        self.leader_epoch: LeaderEpoch = NO_EPOCH
        self.leader_id: BrokerId = NO_BROKER
        self.leadership: Leadership | None = None
        self.not_leader_error = ErrorCode.not_leader_or_follower
        """The error that clients get while this broker is not the leader."""
        self.flushed_at_ms = environment.clock.mono_ms()
        self.flushing = False
        self.rewriting: deque[Callable[[], None]] | None = None
        """Appends that wait behind one being rewritten off the loop; None when there is none."""
        self.truncating: Future[None] | None = None
        """Done when the truncation that is under way is durable; None if there is none."""
        self.watchers = PartitionWatchers()
        self._environment = environment
        self._flush_from: Offset | None = None
        self._flush_to: Offset = 0
        self._refusal: PassingRefusal | None = None
        if refused is not ErrorCode.none:
            self._refuse(refused)

    @property
    def key(self) -> TopicPartition:
        return self.log.partition

    # Roles

    def lead(self, assigned: LeaderAssignment) -> None:
        """Begin to lead under a new epoch; positions of followers are unknown again."""
        before = self.leadership
        if assigned.leader_epoch > self.leader_epoch:
            self.log.epochs.assign(assigned.leader_epoch, self.log.end_offset)
        self.leader_epoch = assigned.leader_epoch
        self.leader_id = assigned.leader
        self.leadership = Leadership(
            assigned,
            broker_id=self._environment.broker_id,
            epoch_start=self.log.end_offset,
            now_ms=self._environment.clock.mono_ms(),
            led_since=None if before is None else before.led_since,
        )
        self._hold_uncommitted()
        self.advance()

    def follow(self, assigned: LeaderAssignment) -> None:
        self.leader_epoch = assigned.leader_epoch
        self.leader_id = assigned.leader
        self.leadership = None
        self._flush_from = None

    def require_leadership(self, epoch: int = -1) -> Leadership:
        """The leadership; KafkaError with the code for the client if there is none."""
        check_epoch(self, epoch)
        leadership = self.leadership
        if leadership is None:
            raise KafkaError(self.not_leader_error)
        return leadership

    # Appending

    def append(self, analysis: Analysis, acks: int, origin: Origin, now_ms: WallMs) -> Appended:
        """Append as leader. With acks=all too small an in-sync set refuses before writing."""
        leadership = self.leadership
        if leadership is None:
            raise self._refuse(self.not_leader_error)
        if acks == -1 and self._too_few(leadership):
            raise self._refuse(ErrorCode.not_enough_replicas)
        if self._refusal is not None:
            self._check_follows_refused(analysis, self._refusal)
        appended = self.log.append(
            analysis,
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
            origin=origin,
        )
        if acks == -1 and self.flushes_before_ack(leadership):
            self._hold(appended.first_offset, appended.last_offset + 1)
        return appended

    def _refuse(self, code: ErrorCode) -> KafkaError:
        """An append is refused for what may pass; the producer's next ones may be on their way."""
        self._refusal = PassingRefusal(code, self._environment.clock.mono_ms())
        return KafkaError(code)

    def _check_follows_refused(self, analysis: Analysis, earlier: PassingRefusal) -> None:
        """KafkaError with the code of the refused batch if this one skips a sequence behind it."""
        if self._environment.clock.mono_ms() - earlier.at_ms >= REFUSAL_MS:
            self._refusal = None
        elif is_gap(self.log.producers, analysis.header):
            header = analysis.header
            raise KafkaError(
                earlier.code,
                f"producer {header.producer_id}: an earlier batch than the one with sequence "
                f"{header.base_sequence} was refused; send both again",
            )

    def append_as_follower(
        self, records: memoryview, leader_high_watermark: Offset, leader_start: Offset
    ) -> Appended | None:
        """Append what the leader sent, and take over its high watermark and log start offset.

        KafkaError if the records are not what should follow here; then nothing is changed.
        """
        hosted_log, appended = self.log, None
        if len(records):
            now_ms = self._environment.clock.wall_ms()
            appended = append_as_follower(hosted_log, records, now_ms)
        hosted_log.raise_high_watermark(leader_high_watermark)
        start = min(leader_start, hosted_log.high_watermark)
        if start > hosted_log.start_offset:
            hosted_log.raise_start_offset(start)
        return appended

    def min_isr(self, leadership: Leadership) -> int:
        return min(self.log.config.min_insync_replicas, len(leadership.replicas))

    def _too_few(self, leadership: Leadership) -> bool:
        in_sync = len(leadership.isr)
        return in_sync < self.log.config.min_insync_replicas and in_sync < self.min_isr(leadership)

    def flushes_before_ack(self, leadership: Leadership) -> bool:
        policy = self.log.config.flush_before_ack
        return policy == "all" or (policy == "auto" and len(leadership.isr) < 2)

    @property
    def is_alone_in_sync(self) -> bool:
        """Whether only this broker's disk decides when records are committed."""
        return self.leadership is not None and len(self.leadership.isr) == 1

    @property
    def waits_for_flush(self) -> bool:
        return self._flush_from is not None

    def flushed(self) -> None:
        """Everything below the log's recovery point is on the disk."""
        self.flushed_at_ms = self._environment.clock.mono_ms()
        durable = self.log.recovery_point
        if self._flush_from is not None:
            self._flush_from = None if durable >= self._flush_to else max(self._flush_from, durable)

    def _hold(self, start: Offset, end: Offset) -> None:
        """Neither commit nor acknowledge from `start` on until all below `end` is on the disk."""
        if end <= self.log.recovery_point:
            return  # a repeat of what is there already
        waiting = self._flush_from
        if waiting is None:
            self._flush_from, self._flush_to = start, end
        else:  # a repeat may lie before what waits
            self._flush_from, self._flush_to = min(waiting, start), max(self._flush_to, end)

    def _hold_uncommitted(self) -> None:
        """Where the disk begins to count, it counts for what is not committed yet as well."""
        start, end = self.log.high_watermark, self.log.end_offset
        if start < end and self.flushes_before_ack(self.require_leadership()):
            self._hold(start, end)

    # Watermarks

    def advance(self) -> bool:
        """Move the high watermark as far as it may go; True when it moved."""
        leadership = self.leadership
        if leadership is None:
            return False
        log = self.log
        own_end = log.end_offset if self._flush_from is None else self._flush_from
        if not leadership.followers:  # nobody else to wait for
            return log.raise_high_watermark(own_end)
        if own_end <= log.high_watermark:
            return False
        environment = self._environment
        watermark = leadership.high_watermark(
            own_end,
            min_isr=log.config.min_insync_replicas,
            now_ms=environment.clock.mono_ms(),
            lag_max_ms=environment.lag_max_ms,
        )
        return watermark is not None and log.raise_high_watermark(watermark)

    def acknowledged(self, epoch: LeaderEpoch, required: Offset) -> ErrorCode | None:
        """How an acks=all append stands: None while it waits, else what to answer.

        It may have been made in an earlier epoch, if this broker has led ever since: then it is
        still where it was.
        """
        leadership = self.leadership
        if leadership is None or epoch < leadership.led_since:
            return self.not_leader_error
        if self.log.high_watermark < required:
            return None
        if self._flush_from is not None and self._flush_from < required:
            return None  # committed by lesser acks before the disk had it
        if self._too_few(leadership):
            return ErrorCode.not_enough_replicas_after_append
        return ErrorCode.none

    # Followers

    @property
    def timeout_code(self) -> ErrorCode:
        """For a client whose records were not committed in time.

        Clients do not look for another leader after REQUEST_TIMED_OUT. They must if this broker has
        lost contact with the metadata store: it would be the last to learn of its successor.
        """
        if self._environment.store_contact.is_overdue:
            return ErrorCode.not_leader_or_follower
        return ErrorCode.request_timed_out

    def set_isr(self, isr: frozenset[BrokerId], version: int) -> None:
        """The controller has accepted this ISR."""
        self.require_leadership().on_committed(isr, version)
        self._hold_uncommitted()

    def record_follower_fetch(
        self,
        broker: BrokerId,
        offset: Offset,
        log_start: Offset,
        broker_epoch: BrokerEpoch = UNKNOWN_EPOCH,
    ) -> frozenset[BrokerId] | None:
        """Record a follower's position; returns the ISR to propose, if the follower may join."""
        leadership = self.require_leadership()
        log = self.log
        now_ms = self._environment.clock.mono_ms()
        follower = leadership.followers[broker]
        follower.broker_epoch = broker_epoch
        follower.on_fetch(offset, log_start, leader_end=log.end_offset, now_ms=now_ms)
        return leadership.isr_with(broker, high_watermark=log.high_watermark, now_ms=now_ms)
