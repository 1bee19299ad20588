"""One member."""

from __future__ import annotations

import pytest

from ottla.coordinator.group.consumer.member import Member, Standing, State


@pytest.mark.parametrize(
    ("standing", "settled"),
    [
        (Standing(5), True),
        (Standing(4), False),
        (Standing(5, 4, State.UNRELEASED), False),
        (Standing(4, 4, State.UNREVOKED), False),
    ],
)
def test_a_member_has_settled_when_it_is_stable_in_the_targets_epoch(
    standing: Standing, settled: bool
) -> None:
    assert Member("m", standing=standing).has_settled(5) is settled
