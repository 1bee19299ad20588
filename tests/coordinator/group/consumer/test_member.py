"""One member."""

from __future__ import annotations

import pytest

from ottla.coordinator.group.consumer.member import Member, MemberAssignment, MemberState


@pytest.mark.parametrize(
    ("standing", "settled"),
    [
        (MemberAssignment(5), True),
        (MemberAssignment(4), False),
        (MemberAssignment(5, 4, MemberState.UNRELEASED), False),
        (MemberAssignment(4, 4, MemberState.UNREVOKED), False),
    ],
)
def test_a_member_has_settled_when_it_is_stable_in_the_targets_epoch(
    standing: MemberAssignment, settled: bool
) -> None:
    assert Member("m", standing=standing).has_settled(5) is settled
