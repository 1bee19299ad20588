from __future__ import annotations

import pytest

from ottla.client.consumer.group.error_reactions import (
    ErrorReaction,
    commit_reaction,
    membership_reaction,
)
from ottla.model.errors import ErrorCode


@pytest.mark.spec("CON-28")
@pytest.mark.parametrize(
    ("code", "after"),
    [
        (ErrorCode.none, ErrorReaction.GO_ON),
        (ErrorCode.unknown_member_id, ErrorReaction.JOIN_ANEW),
        (ErrorCode.illegal_generation, ErrorReaction.JOIN_ANEW),
        (ErrorCode.not_coordinator, ErrorReaction.FIND_COORDINATOR),
        (ErrorCode.coordinator_not_available, ErrorReaction.FIND_COORDINATOR),
        (ErrorCode.member_id_required, ErrorReaction.JOIN_AGAIN),
        (ErrorCode.rebalance_in_progress, ErrorReaction.JOIN_AGAIN),
        (ErrorCode.coordinator_load_in_progress, ErrorReaction.TRY_LATER),
        (ErrorCode.fenced_member_epoch, ErrorReaction.JOIN_ANEW),
        (ErrorCode.fenced_instance_id, ErrorReaction.GIVE_UP),
        (ErrorCode.group_authorization_failed, ErrorReaction.GIVE_UP),
        (ErrorCode.inconsistent_group_protocol, ErrorReaction.GIVE_UP),
    ],
)
def test_what_each_refusal_of_a_member_leads_to(code: ErrorCode, after: ErrorReaction) -> None:
    assert membership_reaction(code) is after


@pytest.mark.spec("CON-43")
@pytest.mark.parametrize(
    ("code", "after"),
    [
        (ErrorCode.none, ErrorReaction.GO_ON),
        (ErrorCode.illegal_generation, ErrorReaction.JOIN_ANEW),
        (ErrorCode.rebalance_in_progress, ErrorReaction.JOIN_AGAIN),
        (ErrorCode.not_coordinator, ErrorReaction.FIND_COORDINATOR),
        (ErrorCode.coordinator_load_in_progress, ErrorReaction.TRY_LATER),
        (ErrorCode.stale_member_epoch, ErrorReaction.TRY_LATER),
        (ErrorCode.offset_metadata_too_large, ErrorReaction.GIVE_UP),
    ],
)
def test_what_each_refusal_of_a_commit_leads_to(code: ErrorCode, after: ErrorReaction) -> None:
    assert commit_reaction(code) is after
