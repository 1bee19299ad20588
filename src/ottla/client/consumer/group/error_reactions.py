"""The reaction to each error code of a coordinator.

Pure: one table for JoinGroup, SyncGroup and Heartbeat, one for OffsetCommit. A code that is not
listed is final: the user gets it as an exception.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from ottla.model.errors import ErrorCode


class ErrorReaction(Enum):
    """What to do next."""

    GO_ON = "go on"
    JOIN_AGAIN = "join again"
    JOIN_ANEW = "join anew"
    """The group no longer knows this member: its id, its generation, its partitions are lost."""
    FIND_COORDINATOR = "find coordinator"
    TRY_LATER = "try later"
    GIVE_UP = "give up"


MEMBERSHIP_REACTIONS: Final[Mapping[ErrorCode, ErrorReaction]] = {
    ErrorCode.none: ErrorReaction.GO_ON,
    ErrorCode.member_id_required: ErrorReaction.JOIN_AGAIN,
    ErrorCode.rebalance_in_progress: ErrorReaction.JOIN_AGAIN,
    ErrorCode.unknown_member_id: ErrorReaction.JOIN_ANEW,
    ErrorCode.illegal_generation: ErrorReaction.JOIN_ANEW,
    ErrorCode.fenced_member_epoch: ErrorReaction.JOIN_ANEW,
    ErrorCode.not_coordinator: ErrorReaction.FIND_COORDINATOR,
    ErrorCode.coordinator_not_available: ErrorReaction.FIND_COORDINATOR,
    ErrorCode.coordinator_load_in_progress: ErrorReaction.TRY_LATER,
    ErrorCode.network_exception: ErrorReaction.TRY_LATER,
    ErrorCode.request_timed_out: ErrorReaction.TRY_LATER,
}

COMMIT_REACTIONS: Final[Mapping[ErrorCode, ErrorReaction]] = {
    ErrorCode.none: ErrorReaction.GO_ON,
    ErrorCode.rebalance_in_progress: ErrorReaction.JOIN_AGAIN,
    ErrorCode.unknown_member_id: ErrorReaction.JOIN_ANEW,
    ErrorCode.illegal_generation: ErrorReaction.JOIN_ANEW,
    ErrorCode.not_coordinator: ErrorReaction.FIND_COORDINATOR,
    ErrorCode.coordinator_not_available: ErrorReaction.FIND_COORDINATOR,
    ErrorCode.request_timed_out: ErrorReaction.FIND_COORDINATOR,
    ErrorCode.coordinator_load_in_progress: ErrorReaction.TRY_LATER,
    ErrorCode.unknown_topic_or_partition: ErrorReaction.TRY_LATER,
    ErrorCode.unstable_offset_commit: ErrorReaction.TRY_LATER,
    ErrorCode.stale_member_epoch: ErrorReaction.TRY_LATER,  # the next heartbeat brings the epoch
}


def membership_reaction(code: ErrorCode) -> ErrorReaction:
    return MEMBERSHIP_REACTIONS.get(code, ErrorReaction.GIVE_UP)


def commit_reaction(code: ErrorCode) -> ErrorReaction:
    return COMMIT_REACTIONS.get(code, ErrorReaction.GIVE_UP)
