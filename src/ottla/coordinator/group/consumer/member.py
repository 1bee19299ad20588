"""One member of a consumer group: its profile (subscription) and its current assignment.

Owns only data. The two parts are persisted separately, because a member's subscription changes
seldom and its assignment with every rebalance.
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
"""Member epochs of requests to join and leave; the last is for static members only."""


class MemberState(Enum):
    """By the numbers they are persisted with."""

    STABLE = 0
    """It owns its target assignment of its epoch."""
    UNREVOKED = 1
    """It has to revoke partitions and has not confirmed that."""
    UNRELEASED = 2
    """It waits for partitions that other members have not released."""
    UNKNOWN = 127
    """A state written by a newer release."""


class ClassicProtocolState(NamedTuple):
    """Fields that only members of the classic protocol have."""

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
    """Accepted as well: if a reply is lost, the member still has the epoch before."""
    state: MemberState = MemberState.STABLE
    assigned: Parts = NO_PARTS
    revoking: Parts = NO_PARTS


NEW: Final = MemberAssignment()

MEMBER_BYTES: Final = 1_500
"""Memory counted for a member without names: its objects, its timers."""
NAME_BYTES: Final = 64
"""And for each name besides its characters."""


def profile_bytes(profile: MemberProfile) -> int:
    """Memory counted for a member with this profile."""
    names = (
        profile.instance_id or "",
        profile.rack_id or "",
        profile.client_id,
        profile.client_host,
        profile.pattern or "",
        *profile.topics,
    )
    protocols = () if profile.classic is None else profile.classic.protocols
    stored = sum(len(name) + len(metadata) for name, metadata in protocols)
    return MEMBER_BYTES + sum(map(len, names)) + NAME_BYTES * len(profile.topics) + stored


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
