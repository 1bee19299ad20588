"""One hosted partition: its log, its role and its high watermark.

The one writer of one partition's state. Never sends a request, waits, or touches another
partition; what must be told to others after a change (waiting operations, the store) is the
caller's to tell.

Where the flush policy asks for it, an acks=all append holds the high watermark until the disk has
it: what a reader has seen and what a producer was told then survive a power cut alike.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ottla.log.log import Appended, Log, Origin
from ottla.log.validate import Analysis
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_BROKER, NO_EPOCH, BrokerId, LeaderEpoch, Offset, TopicPartition
from ottla.replica.environment import ReplicaEnvironment
from ottla.replica.leader import LeaderAssignment, Leadership
from ottla.replica.topic_metrics import TopicMetrics


class HostedPartition:
    """A partition this broker holds a replica of."""

    __slots__ = (
        "_around",
        "_flush_from",
        "_flush_to",
        "flushed_at_ms",
        "flushing",
        "leader_epoch",
        "leader_id",
        "leadership",
        "log",
        "rewriting",
        "traffic",
        "unled",
    )

    def __init__(self, log: Log, around: ReplicaEnvironment, traffic: TopicMetrics) -> None:
        self.log = log
        self.traffic = traffic
        self.leader_epoch: LeaderEpoch = NO_EPOCH
        self.leader_id: BrokerId = NO_BROKER
        self.leadership: Leadership | None = None
        self.unled = ErrorCode.not_leader_or_follower
        """What clients hear while it is not led here."""
        self.flushed_at_ms = around.clock.mono_ms()
        self.flushing = False
        self.rewriting: deque[Callable[[], None]] | None = None
        """Appends that wait behind one being rewritten off the loop; None when there is none."""
        self._around = around
        self._flush_from: Offset | None = None
        self._flush_to: Offset = 0

    @property
    def key(self) -> TopicPartition:
        return self.log.partition

    # Roles

    def lead(self, assigned: LeaderAssignment) -> None:
        """Begin to lead under a new epoch; positions of followers are unknown again."""
        if assigned.leader_epoch > self.leader_epoch:
            self.log.epochs.assign(assigned.leader_epoch, self.log.end_offset)
        self.leader_epoch = assigned.leader_epoch
        self.leader_id = assigned.leader
        self.leadership = Leadership(
            assigned,
            me=self._around.me,
            epoch_start=self.log.end_offset,
            now_ms=self._around.clock.mono_ms(),
        )
        self._hold_uncommitted()
        self.advance()

    def follow(self, assigned: LeaderAssignment) -> None:
        self.leader_epoch = assigned.leader_epoch
        self.leader_id = assigned.leader
        self.leadership = None
        self._flush_from = None

    def led(self, epoch: int = -1) -> Leadership:
        """The leadership held here, or the refusal a client must hear."""
        leadership = self.leadership
        if epoch >= 0 and epoch != self.leader_epoch:
            fenced = epoch < self.leader_epoch
            raise KafkaError(
                ErrorCode.fenced_leader_epoch if fenced else ErrorCode.unknown_leader_epoch
            )
        if leadership is None:
            raise KafkaError(self.unled)
        return leadership

    # Appending

    def append(self, analysis: Analysis, acks: int, origin: Origin, now_ms: int) -> Appended:
        """Append as leader. With acks=all too small an in-sync set refuses before writing."""
        leadership = self.leadership
        if leadership is None:
            raise KafkaError(self.unled)
        if acks == -1 and self._too_few(leadership):
            raise KafkaError(ErrorCode.not_enough_replicas)
        appended = self.log.append(
            analysis,
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
            origin=origin,
        )
        if acks == -1 and self.flushes_before_ack(leadership):
            self._hold(appended.first_offset, appended.last_offset + 1)
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
    def waits_for_flush(self) -> bool:
        return self._flush_from is not None

    def flushed(self) -> None:
        """Everything below the log's recovery point is on the disk."""
        self.flushed_at_ms = self._around.clock.mono_ms()
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
        if start < end and self.flushes_before_ack(self.led()):
            self._hold(start, end)

    # Watermarks

    def advance(self) -> bool:
        """Move the high watermark as far as it may go; True when it moved."""
        leadership = self.leadership
        if leadership is None:
            return False
        log = self.log
        own_end = log.end_offset if self._flush_from is None else self._flush_from
        if own_end <= log.high_watermark:
            return False
        if not leadership.followers:  # nobody else to wait for
            return log.raise_high_watermark(own_end)
        around = self._around
        watermark = leadership.high_watermark(
            own_end,
            min_isr=log.config.min_insync_replicas,
            now_ms=around.clock.mono_ms(),
            lag_max_ms=around.lag_max_ms,
        )
        return watermark is not None and log.raise_high_watermark(watermark)

    def acknowledged(self, epoch: LeaderEpoch, required: Offset) -> ErrorCode | None:
        """How an acks=all append stands: None while it waits, else what to answer."""
        leadership = self.leadership
        if leadership is None or leadership.epoch != epoch:
            return self.unled
        if self.log.high_watermark < required:
            return None
        if self._flush_from is not None and self._flush_from < required:
            return None  # committed by lesser acks before the disk had it
        if self._too_few(leadership):
            return ErrorCode.not_enough_replicas_after_append
        return ErrorCode.none

    # Followers

    def isr_is(self, isr: frozenset[BrokerId], version: int) -> None:
        """The store has taken this in-sync set."""
        leadership = self.led()
        leadership.isr = isr
        leadership.version = version
        self._hold_uncommitted()

    def follower_asked(
        self, broker: BrokerId, offset: Offset, log_start: Offset
    ) -> frozenset[BrokerId] | None:
        """Note a follower's position; the answer is the in-sync set to propose, if it grew."""
        leadership = self.led()
        log = self.log
        now_ms = self._around.clock.mono_ms()
        follower = leadership.followers[broker]
        follower.asked(offset, log_start, leader_end=log.end_offset, now_ms=now_ms)
        return leadership.to_add(broker, high_watermark=log.high_watermark)
