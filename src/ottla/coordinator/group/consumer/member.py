"""One member of a group: what it says of itself, and how it stands.

Owns nothing but data. The two halves are persisted apart, because a member's subscription changes
seldom and its standing with every rebalance.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from ottla.coordinator.group.classic.member import Protocol
from ottla.coordinator.group.consumer.topic_partitions import NO_PARTS, Parts

JOINS: Final = 0
LEAVES: Final = -1
LEAVES_FOR_A_WHILE: Final = -2
"""Epochs by which a member says what it wants; the last is for static members alone."""


class MemberState(Enum):
    """By the numbers they are persisted with."""

    STABLE = 0
    """It holds what it shall hold, as of its epoch."""
    UNREVOKED = 1
    """It has been told to give something up, and has not said that it did."""
    UNRELEASED = 2
    """It waits for something that another has not given up."""
    UNKNOWN = 127
    """What a later release may have written."""


class ClassicProtocolState(NamedTuple):
    """What only a member that speaks the classic protocol says."""

    session_timeout_ms: int
    protocols: tuple[Protocol, ...]


@dataclass(frozen=True, slots=True)
class MemberProfile:
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ClassicProtocolState | None = None


class MemberAssignment(NamedTuple):
    epoch: int = 0
    previous_epoch: int = 0
    """A reply may be lost: the member then comes back with the epoch it had before."""
    state: MemberState = MemberState.STABLE
    assigned: Parts = NO_PARTS
    revoking: Parts = NO_PARTS


NEW: Final = MemberAssignment()


@dataclass(frozen=True, slots=True)
class Member:
    id: str
    profile: MemberProfile = MemberProfile()
    standing: MemberAssignment = NEW

    @property
    def epoch(self) -> int:
        return self.standing.epoch

    @property
    def classic(self) -> ClassicProtocolState | None:
        return self.profile.classic

    def has_settled(self, target_epoch: int) -> bool:
        """Whether it has reached the target of that epoch."""
        standing = self.standing
        return standing.state is MemberState.STABLE and standing.epoch == target_epoch
