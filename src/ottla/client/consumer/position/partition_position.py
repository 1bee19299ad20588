"""One assigned partition: where its reader is, and what is known of its log.

Owns the position. Never asks a broker. `version` changes whenever the position jumps; whatever was
asked or fetched for an older one is worthless.

Two threads meet here when the synchronous face reads: the user's thread writes `offset`, `epoch`
and `finished` as it takes records; everything else is the event loop's. While the user's thread
waits for a call, the loop may write all of it.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from ottla.model.ids import TopicPartition

UNKNOWN: Final = -1
MOST_CHUNKS: Final = 2
"""Fetched and not yet read through: one that is being read, one that will be next."""


class PositionPhase(Enum):
    """How far a partition is on the way to being read."""

    UNPLACED = "unplaced"
    """Newly assigned: is there a committed offset?"""
    RESETTING = "resetting"
    """No offset: the broker is asked for one by time."""
    UNCHECKED = "unchecked"
    """The leader changed: does its log still hold what was read so far?"""
    READY = "ready"
    STUCK = "stuck"
    """There is no place to read from, and only the user can name one."""


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
        self.leader_epoch = UNKNOWN  # of the leader that the position was checked against
        self.fetch_offset = UNKNOWN
        self.reset_to = UNKNOWN
        self.fault: Exception | None = None  # why it is stuck
        self.paused = False
        self.leaving = False  # it will be given up: nothing more is fetched
        self.arrived = 0
        self.finished = 0
        self.high_watermark = UNKNOWN
        self.stable_offset = UNKNOWN
        self.log_start = UNKNOWN
        self.replica = UNKNOWN
        self.replica_until_ms = 0

    @property
    def has_position(self) -> bool:
        return self.phase in (PositionPhase.READY, PositionPhase.UNCHECKED)

    @property
    def is_fetchable(self) -> bool:
        return self._is_read and self.arrived - self.finished < MOST_CHUNKS

    @property
    def is_full(self) -> bool:
        """It would be fetched, had the user read what is there."""
        return self._is_read and self.arrived - self.finished >= MOST_CHUNKS

    @property
    def _is_read(self) -> bool:
        return self.phase is PositionPhase.READY and not self.paused and not self.leaving

    def is_at_end(self, read_committed: bool) -> bool:
        """Whether all was fetched that could be when a broker last spoke of it."""
        end = self.stable_offset if read_committed else self.high_watermark
        return end != UNKNOWN and self.fetch_offset >= end

    def seek(self, offset: int, epoch: int = UNKNOWN) -> None:
        """Read on from here. With an epoch the leader is asked whether it knows the place."""
        self._jump()
        self.offset = self.fetch_offset = offset
        self.epoch = epoch
        self.phase = PositionPhase.READY if epoch == UNKNOWN else PositionPhase.UNCHECKED

    def reset(self, timestamp: int) -> None:
        """Read on from where ListOffsets says this time is (-1 the end, -2 the start)."""
        self._jump()
        self.reset_to = timestamp
        self.phase = PositionPhase.RESETTING

    def mark_stuck(self, fault: Exception) -> None:
        """Only a seek helps: every poll says so until there is one."""
        self._jump()
        self.fault = fault
        self.phase = PositionPhase.STUCK

    def on_leader_epoch(self, leader_epoch: int) -> None:
        """Metadata names the leader's epoch: another one than before is checked first."""
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

    def checked(self) -> None:
        """The leader's log holds what was read so far."""
        assert self.phase is PositionPhase.UNCHECKED, self.phase
        self.phase = PositionPhase.READY

    def prefer(self, replica: int, until_ms: int) -> None:
        """The leader would rather have another replica read from, for a while."""
        self.replica = replica
        self.replica_until_ms = until_ms

    def source(self, leader: int, now_ms: int) -> int:
        """The broker to fetch from."""
        if self.replica == UNKNOWN:
            return leader
        if now_ms >= self.replica_until_ms:
            self.replica = UNKNOWN
            return leader
        return self.replica

    def lag(self, read_committed: bool) -> int | None:
        """How many offsets lie between the position and the end that may be read."""
        end = self.stable_offset if read_committed else self.high_watermark
        if end == UNKNOWN or not self.has_position:
            return None
        return max(0, end - self.offset)

    def _jump(self) -> None:
        self.version += 1
        self.arrived = self.finished = 0
        self.replica = UNKNOWN
