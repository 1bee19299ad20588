from __future__ import annotations

import pytest

from ottla.client.consumer.group.error_reactions import After, after_commit, after_membership
from ottla.model.errors import ErrorCode


@pytest.mark.spec("CON-28")
@pytest.mark.parametrize(
    ("code", "after"),
    [
        (ErrorCode.none, After.GO_ON),
        (ErrorCode.unknown_member_id, After.JOIN_ANEW),
        (ErrorCode.illegal_generation, After.JOIN_ANEW),
        (ErrorCode.not_coordinator, After.FIND_COORDINATOR),
        (ErrorCode.coordinator_not_available, After.FIND_COORDINATOR),
        (ErrorCode.member_id_required, After.JOIN_AGAIN),
        (ErrorCode.rebalance_in_progress, After.JOIN_AGAIN),
        (ErrorCode.coordinator_load_in_progress, After.TRY_LATER),
        (ErrorCode.fenced_member_epoch, After.JOIN_ANEW),
        (ErrorCode.fenced_instance_id, After.GIVE_UP),
        (ErrorCode.group_authorization_failed, After.GIVE_UP),
        (ErrorCode.inconsistent_group_protocol, After.GIVE_UP),
    ],
)
def test_what_each_refusal_of_a_member_leads_to(code: ErrorCode, after: After) -> None:
    assert after_membership(code) is after


@pytest.mark.spec("CON-43")
@pytest.mark.parametrize(
    ("code", "after"),
    [
        (ErrorCode.none, After.GO_ON),
        (ErrorCode.illegal_generation, After.JOIN_ANEW),
        (ErrorCode.rebalance_in_progress, After.JOIN_AGAIN),
        (ErrorCode.not_coordinator, After.FIND_COORDINATOR),
        (ErrorCode.coordinator_load_in_progress, After.TRY_LATER),
        (ErrorCode.stale_member_epoch, After.TRY_LATER),
        (ErrorCode.offset_metadata_too_large, After.GIVE_UP),
    ],
)
def test_what_each_refusal_of_a_commit_leads_to(code: ErrorCode, after: After) -> None:
    assert after_commit(code) is after
