"""One followed partition: when it may be fetched, and what each reply means for its log.

Pure: owns the state of a follower between two replies and the decisions on a reply. Never touches a
log, a clock or the network: log positions and the time are arguments, `fetcher_loop` performs what
is decided.

A follower truncates by leader epoch, never by high watermark: the leader compares the epoch of the
follower's last batch with its own history, and names the last epoch both have in common. Only a log
without any epoch (of an old format) is truncated to its high watermark.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from ottla.log.leader_epochs import LeaderEpochs
from ottla.model.clock import MonoMs
from ottla.model.errors import ErrorCode
from ottla.model.ids import LeaderEpoch, Offset, TopicId, TopicPartition

FAILED_RETRY_MS: Final = 30_000
"""A partition that failed is tried again after this; it counts as failed until then."""


NOT_LEADER_YET: Final = frozenset(
    {
        ErrorCode.not_leader_or_follower,
        ErrorCode.unknown_leader_epoch,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.unknown_topic_id,
    }
)
"""The controller tells all brokers at once: the new leader may hear of it after its followers."""
FIRST_RETRY_MS: Final = 5
"""Then twice as long each time, up to the usual pause: acks=all waits for the first fetches."""


class LogState(NamedTuple):
    """The local log of a followed partition, as far as decisions need it."""

    start: Offset
    end: Offset
    high_watermark: Offset
    epochs: LeaderEpochs


class LeaderBounds(NamedTuple):
    """The first offset of the leader's log and the offset after its last."""

    start: Offset
    end: Offset


class Append(NamedTuple):
    """Append the records of the reply, and take over high watermark and log start offset."""


class Truncate(NamedTuple):
    """Remove everything from `offset` on, then fetch from there."""

    offset: Offset


class Restart(NamedTuple):
    """Remove everything: the leader's log begins at `offset`, after the end of this one.

    Or it begins inside of a batch, which it has sent and which begins at `offset`.
    """

    offset: Offset


class AskBounds(NamedTuple):
    """The position is outside of the leader's log: ask where that begins and ends."""


class Delay(NamedTuple):
    """Not now: fetch it again at `until_ms`."""

    until_ms: MonoMs
    code: ErrorCode


class Ignore(NamedTuple):
    """The reply is about a position that the log no longer has."""


Decision: TypeAlias = Append | Truncate | Restart | AskBounds | Delay | Ignore


class FollowedPartition:
    """What a fetcher remembers of one partition; a new leader epoch begins a new one."""

    __slots__ = (
        "corrupt_at",
        "delayed_until_ms",
        "failed",
        "key",
        "lag",
        "leader_epoch",
        "refusals",
        "requested_offset",
        "topic_id",
    )

    def __init__(self, key: TopicPartition, topic_id: TopicId, leader_epoch: LeaderEpoch) -> None:
        self.key = key
        self.topic_id = topic_id
        self.leader_epoch = leader_epoch
        self.requested_offset: Offset | None = None
        """The offset of the request that a reply answers; None while it is not being fetched."""
        self.delayed_until_ms = MonoMs(0)
        self.corrupt_at: Offset | None = None
        """The offset at which the last reply was corrupt."""
        self.failed = False
        self.lag: Offset = 0
        self.refusals = 0
        """How often the broker said that it does not lead the partition."""

    def is_delayed(self, now_ms: MonoMs) -> bool:
        return now_ms < self.delayed_until_ms

    def delay(self, until_ms: MonoMs) -> None:
        self.delayed_until_ms = until_ms
        self.requested_offset = None

    def pause_ms(self, code: ErrorCode, backoff_ms: int) -> int:
        """How long not to fetch it after this answer."""
        if code not in NOT_LEADER_YET:
            return backoff_ms
        self.refusals += 1
        return min(backoff_ms, FIRST_RETRY_MS << min(self.refusals - 1, 16))

    def on_corrupt(self, offset: Offset, now_ms: MonoMs, backoff_ms: int) -> bool:
        """The records at `offset` cannot be appended; whether that is so for the second time."""
        repeated = self.corrupt_at == offset
        self.corrupt_at = offset
        self.failed = self.failed or repeated
        self.delay(MonoMs(now_ms + (FAILED_RETRY_MS if repeated else backoff_ms)))
        return repeated

    def on_appended(self, end: Offset, leader_high_watermark: Offset) -> None:
        self.requested_offset = None
        self.corrupt_at = None
        self.failed = False
        self.refusals = 0
        self.lag = max(0, leader_high_watermark - end)


def first_truncation(log: LogState) -> Offset | None:
    """Where a new follower truncates before its first fetch, if the leader could not tell it."""
    if log.epochs.latest >= 0 or log.end <= log.high_watermark:
        return None
    return log.high_watermark


def on_reply(
    requested_offset: Offset | None,
    log: LogState,
    code: ErrorCode,
    diverging: tuple[int, int] | None,
    retry_at_ms: MonoMs,
) -> Decision:
    """What to do with the reply for one partition, fetched from `requested_offset` on."""
    if requested_offset is None or requested_offset != log.end:
        return Ignore()
    if code is ErrorCode.offset_out_of_range:
        return AskBounds()
    if code is not ErrorCode.none:
        return Delay(retry_at_ms, code)
    if diverging is not None:
        return Truncate(truncation_offset(log, diverging))
    return Append()


def truncation_offset(log: LogState, diverging: tuple[int, int]) -> Offset:
    """Where to truncate, given the leader's largest epoch up to ours, and where it ended.

    If this log does not have that epoch, it is cut where its next smaller one ended; the fetch that
    follows compares again.
    """
    epoch, end = diverging
    if epoch < 0:
        return min(log.high_watermark, log.end)
    own_epoch, own_end = log.epochs.end_offset(epoch, log.end)
    if own_epoch < 0:
        return min(end, log.end)
    if own_epoch != epoch:
        return min(own_end, log.end)
    return min(own_end, end, log.end)


def on_bounds(log: LogState, leader: LeaderBounds) -> Decision:
    """What to do when the leader's log does not have the offset that was fetched."""
    if leader.end < log.end:
        return Truncate(leader.end)
    if leader.start > log.end:
        return Restart(leader.start)
    return Append()  # it has it again
