"""One assigned partition: its position, and what is known of its log.

Owns the position. Never sends a request. `version` changes whenever the position jumps; responses
to requests made for an older version are discarded.

Two threads share it with the synchronous consumer: the user's thread writes `offset`, `epoch` and
`finished` as it takes records; everything else belongs to the event loop. While the user's thread
waits for a call, the loop may write all of it.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from ottla.model.clock import MonoMs
from ottla.model.ids import TopicPartition

UNKNOWN: Final = -1
MOST_CHUNKS: Final = 2
"""Fetched and not fully read: one that is being read, and the next one."""


class PositionPhase(Enum):
    """How far a partition is from being readable."""

    UNPLACED = "unplaced"
    """Newly assigned: its committed offset is looked up."""
    RESETTING = "resetting"
    """No offset: one is looked up by timestamp."""
    UNCHECKED = "unchecked"
    """The leader changed: the position is validated against its log."""
    READY = "ready"
    STUCK = "stuck"
    """There is no valid position, and only the user can seek to one."""


class AssignedPartition:
    """The state of one assigned partition."""

    __slots__ = (
        "arrived",
        "epoch",
        "fault",
        "fetch_offset",
        "finished",
        "high_watermark",
        "leader_epoch",
        "leaving",
        "log_start",
        "offset",
        "paused",
        "phase",
        "replica",
        "replica_until_ms",
        "reset_to",
        "stable_offset",
        "tp",
        "version",
    )

    def __init__(self, tp: TopicPartition) -> None:
        self.tp = tp
        self.phase = PositionPhase.UNPLACED
        self.version = 0
        self.offset = UNKNOWN
        self.epoch = UNKNOWN  # of the leader that wrote the record before `offset`
        self.leader_epoch = UNKNOWN  # of the leader that the position was validated against
        self.fetch_offset = UNKNOWN
        self.reset_to = UNKNOWN
        self.fault: Exception | None = None  # why it is stuck
        self.paused = False
        self.leaving = False  # being revoked: nothing more is fetched
        self.arrived = 0
        self.finished = 0
        self.high_watermark = UNKNOWN
        self.stable_offset = UNKNOWN
        self.log_start = UNKNOWN
        self.replica = UNKNOWN
        self.replica_until_ms = MonoMs(0)

    @property
    def has_position(self) -> bool:
        return self.phase in (PositionPhase.READY, PositionPhase.UNCHECKED)

    @property
    def is_fetchable(self) -> bool:
        return self._is_read and self.arrived - self.finished < MOST_CHUNKS

    @property
    def is_full(self) -> bool:
        """It is not fetched only because the user has not read the buffered records."""
        return self._is_read and self.arrived - self.finished >= MOST_CHUNKS

    @property
    def _is_read(self) -> bool:
        return self.phase is PositionPhase.READY and not self.paused and not self.leaving

    def is_at_end(self, read_committed: bool) -> bool:
        """Whether everything up to the last known end was fetched."""
        end = self.stable_offset if read_committed else self.high_watermark
        return end != UNKNOWN and self.fetch_offset >= end

    def seek(self, offset: int, epoch: int = UNKNOWN) -> None:
        """Continue from this offset. With an epoch the position is validated by the leader."""
        self._jump()
        self.offset = self.fetch_offset = offset
        self.epoch = epoch
        self.phase = PositionPhase.READY if epoch == UNKNOWN else PositionPhase.UNCHECKED

    def reset(self, timestamp: int) -> None:
        """Continue from the offset of this timestamp in ListOffsets (-1 the end, -2 the start)."""
        self._jump()
        self.reset_to = timestamp
        self.phase = PositionPhase.RESETTING

    def mark_stuck(self, fault: Exception) -> None:
        """Every poll raises `fault` until the user seeks."""
        self._jump()
        self.fault = fault
        self.phase = PositionPhase.STUCK

    def on_leader_epoch(self, leader_epoch: int) -> None:
        """Apply the leader epoch of the metadata: a position is validated against a new leader."""
        if leader_epoch <= self.leader_epoch:
            return
        if (
            self.phase is PositionPhase.READY
            and self.epoch != UNKNOWN
            and self.leader_epoch != UNKNOWN
        ):
            self._jump()
            self.fetch_offset = self.offset
            self.phase = PositionPhase.UNCHECKED
        self.leader_epoch = leader_epoch
        self.replica = UNKNOWN

    def mark_valid(self) -> None:
        """The position is valid in the leader's log."""
        assert self.phase is PositionPhase.UNCHECKED, self.phase
        self.phase = PositionPhase.READY

    def prefer(self, replica: int, until_ms: MonoMs) -> None:
        """Read from the leader's preferred read replica for a while."""
        self.replica = replica
        self.replica_until_ms = until_ms

    def source(self, leader: int, now_ms: MonoMs) -> int:
        """The broker to fetch from."""
        if self.replica == UNKNOWN:
            return leader
        if now_ms >= self.replica_until_ms:
            self.replica = UNKNOWN
            return leader
        return self.replica

    def lag(self, read_committed: bool) -> int | None:
        """The number of offsets between the position and the readable end."""
        end = self.stable_offset if read_committed else self.high_watermark
        if end == UNKNOWN or not self.has_position:
            return None
        return max(0, end - self.offset)

    def _jump(self) -> None:
        self.version += 1
        self.arrived = self.finished = 0
        self.replica = UNKNOWN
