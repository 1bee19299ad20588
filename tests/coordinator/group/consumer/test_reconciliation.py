"""From what a member holds towards its target: give up first, then take what is free."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.coordinator.group.consumer.member import MemberAssignment, MemberState
from ottla.coordinator.group.consumer.reconciliation import TargetAssignment, reconcile
from ottla.coordinator.group.consumer.topic_partitions import NO_PARTS, Parts
from ottla.model.errors import KafkaError
from tests.coordinator.group.consumer.scene import parts


def moved(
    now: MemberAssignment, aim: Parts, owned: Parts | None, taken: Parts = NO_PARTS
) -> MemberAssignment:
    return reconcile(now, TargetAssignment(7, aim), owned, lambda part: part not in taken)


def test_one_that_has_its_target_stays_as_it_is() -> None:
    now = MemberAssignment(7, 6, MemberState.STABLE, parts("t", 0))
    assert moved(now, parts("t", 0), None) is now


def test_what_is_free_is_taken_at_once() -> None:
    now = MemberAssignment(6, 5, MemberState.STABLE, parts("t", 0))
    after = moved(now, parts("t", 0, 1), parts("t", 0))
    assert after == MemberAssignment(7, 6, MemberState.STABLE, parts("t", 0, 1))


def test_what_another_holds_is_waited_for() -> None:
    now = MemberAssignment(6, 5, MemberState.STABLE, parts("t", 0))
    waits = moved(now, parts("t", 0, 1, 2), None, parts("t", 1))
    assert waits == MemberAssignment(7, 6, MemberState.UNRELEASED, parts("t", 0, 2))
    assert moved(waits, parts("t", 0, 1, 2), None).state is MemberState.STABLE


def test_nothing_is_given_to_one_that_has_not_given_up_its_own() -> None:
    now = MemberAssignment(6, 5, MemberState.STABLE, parts("t", 0, 1))
    told = moved(now, parts("t", 1, 2), parts("t", 0, 1))
    assert told == MemberAssignment(6, 6, MemberState.UNREVOKED, parts("t", 1), parts("t", 0))
    assert moved(told, parts("t", 1, 2), parts("t", 0, 1)) is told
    assert moved(told, parts("t", 1, 2), None) is told  # it says nothing: it may hold it still
    done = moved(told, parts("t", 1, 2), parts("t", 1))
    assert done == MemberAssignment(7, 6, MemberState.STABLE, parts("t", 1, 2))


def test_one_that_holds_nothing_has_nothing_to_give_up() -> None:
    now = MemberAssignment(6, 5, MemberState.STABLE, parts("t", 0))
    assert moved(now, parts("t", 1), NO_PARTS) == MemberAssignment(
        7, 6, MemberState.STABLE, parts("t", 1)
    )


def test_one_that_gave_up_what_it_had_to_may_be_told_to_give_up_more() -> None:
    now = MemberAssignment(3, 2, MemberState.UNREVOKED, parts("t", 1), parts("t", 0))
    after = moved(now, NO_PARTS, parts("t", 1))
    assert after == MemberAssignment(4, 3, MemberState.UNREVOKED, NO_PARTS, parts("t", 1))


def test_a_state_of_a_later_release_is_left_by_rejoining() -> None:
    now = MemberAssignment(6, 5, MemberState.UNKNOWN, parts("t", 0))
    with pytest.raises(KafkaError):
        moved(now, parts("t", 0), parts("t", 0))
    assert moved(now, parts("t", 0), NO_PARTS).state is MemberState.STABLE


some = st.frozensets(st.integers(0, 5)).map(lambda found: parts("t", *found))


@given(
    st.sampled_from([MemberState.STABLE, MemberState.UNREVOKED, MemberState.UNRELEASED]),
    some,
    some,
    some,
    some,
    some,
)
def test_nobody_gets_what_another_holds_nor_loses_what_it_was_not_told_to_give_up(
    state: MemberState, assigned: Parts, revoking: Parts, aim: Parts, owned: Parts, taken: Parts
) -> None:
    revoking -= assigned
    taken -= assigned | revoking
    now = MemberAssignment(
        5, 4, state, assigned, revoking if state is MemberState.UNREVOKED else NO_PARTS
    )
    after = moved(now, aim, owned, taken)
    assert after.assigned.isdisjoint(taken)
    assert after.assigned.isdisjoint(after.revoking)
    held = (now.assigned | now.revoking) & owned
    assert held <= after.assigned | after.revoking
    assert now.epoch <= after.epoch <= 7
    assert (after.state is MemberState.STABLE) == (after.epoch == 7 and after.assigned == aim)
