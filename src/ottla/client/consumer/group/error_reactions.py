"""What each refusal of a coordinator leads to.

Pure: one table for JoinGroup, SyncGroup and Heartbeat, one for OffsetCommit. What is not listed
ends the matter: the user hears of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from ottla.model.errors import ErrorCode


class After(Enum):
    """What to do now."""

    GO_ON = "go on"
    JOIN_AGAIN = "join again"
    JOIN_ANEW = "join anew"
    """The group no longer knows this member: its id, its generation, its partitions are lost."""
    FIND_COORDINATOR = "find coordinator"
    TRY_LATER = "try later"
    GIVE_UP = "give up"


MEMBERSHIP: Final[Mapping[ErrorCode, After]] = {
    ErrorCode.none: After.GO_ON,
    ErrorCode.member_id_required: After.JOIN_AGAIN,
    ErrorCode.rebalance_in_progress: After.JOIN_AGAIN,
    ErrorCode.unknown_member_id: After.JOIN_ANEW,
    ErrorCode.illegal_generation: After.JOIN_ANEW,
    ErrorCode.fenced_member_epoch: After.JOIN_ANEW,
    ErrorCode.not_coordinator: After.FIND_COORDINATOR,
    ErrorCode.coordinator_not_available: After.FIND_COORDINATOR,
    ErrorCode.coordinator_load_in_progress: After.TRY_LATER,
    ErrorCode.network_exception: After.TRY_LATER,
    ErrorCode.request_timed_out: After.TRY_LATER,
}

COMMITTING: Final[Mapping[ErrorCode, After]] = {
    ErrorCode.none: After.GO_ON,
    ErrorCode.rebalance_in_progress: After.JOIN_AGAIN,
    ErrorCode.unknown_member_id: After.JOIN_ANEW,
    ErrorCode.illegal_generation: After.JOIN_ANEW,
    ErrorCode.not_coordinator: After.FIND_COORDINATOR,
    ErrorCode.coordinator_not_available: After.FIND_COORDINATOR,
    ErrorCode.request_timed_out: After.FIND_COORDINATOR,
    ErrorCode.coordinator_load_in_progress: After.TRY_LATER,
    ErrorCode.unknown_topic_or_partition: After.TRY_LATER,
    ErrorCode.unstable_offset_commit: After.TRY_LATER,
    ErrorCode.stale_member_epoch: After.TRY_LATER,  # the next heartbeat brings the epoch
}


def after_membership(code: ErrorCode) -> After:
    return MEMBERSHIP.get(code, After.GIVE_UP)


def after_commit(code: ErrorCode) -> After:
    return COMMITTING.get(code, After.GIVE_UP)
