"""One consumer group: its records make it what it is."""

from __future__ import annotations

import pytest

from ottla.coordinator.group.consumer.group import ConsumerGroup, GroupState
from ottla.coordinator.group.consumer.member import MemberAssignment, MemberProfile, MemberState
from ottla.coordinator.group.consumer.records import (
    ConsumerGroupChange,
    EpochSet,
    PatternSet,
    ProfileSet,
    Resolved,
    StandingSet,
    TargetEpochSet,
    TargetSet,
)
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode
from tests.coordinator.group.consumer.scene import parts
from tests.coordinator.group.scene import code_of


def group_of(*records: ConsumerGroupChange) -> ConsumerGroup:
    group = ConsumerGroup("g")
    for what in records:
        group.apply(what)
    return group


MEMBER = (
    ProfileSet("g", "m", MemberProfile(instance_id="i", topics=("t",))),
    StandingSet("g", "m", MemberAssignment(1, 0, MemberState.STABLE, parts("t", 0), parts("t", 1))),
)


@pytest.mark.parametrize(
    ("epoch", "target_epoch", "standing", "state"),
    [
        (2, 1, MemberAssignment(1), GroupState.ASSIGNING),
        (2, 2, MemberAssignment(1), GroupState.RECONCILING),
        (2, 2, MemberAssignment(2, 1, MemberState.UNRELEASED), GroupState.RECONCILING),
        (2, 2, MemberAssignment(2), GroupState.STABLE),
    ],
)
def test_the_state_follows_from_epochs_and_members(
    epoch: int, target_epoch: int, standing: MemberAssignment, state: GroupState
) -> None:
    group = group_of(
        EpochSet("g", epoch), TargetEpochSet("g", target_epoch), StandingSet("g", "m", standing)
    )
    assert group.state is state
    group.apply(ProfileSet("g", "m", None))
    assert group.state is GroupState.EMPTY


def test_a_partition_is_held_until_it_is_neither_assigned_nor_being_given_up() -> None:
    group = group_of(*MEMBER)
    assert not group.is_free(next(iter(parts("t", 1))), "other")
    assert group.is_free(next(iter(parts("t", 1))), "m")
    group.apply(StandingSet("g", "m", MemberAssignment(2, 1, MemberState.STABLE, parts("t", 0))))
    assert group.owners == dict.fromkeys(parts("t", 0), "m")
    group.apply(StandingSet("g", "m", None))
    assert not group.owners


def test_a_static_member_is_found_by_its_name() -> None:
    group = group_of(*MEMBER)
    assert group.require_member("m", "i").id == "m"
    assert code_of(group.require_member, "m", "j") is ErrorCode.unknown_member_id
    assert code_of(group.require_member, "n", "i") is ErrorCode.fenced_instance_id
    assert code_of(group.require_member, "n") is ErrorCode.unknown_member_id
    group.apply(ProfileSet("g", "m", None))
    assert not group.static


def test_patterns_widen_a_subscription() -> None:
    group = group_of(
        ProfileSet("g", "m", MemberProfile(topics=("a",), pattern="b.*")),
        PatternSet("g", "b.*", Resolved(frozenset({"b1"}), 0, WallMs(0))),
    )
    assert group.subscribed() == {"a", "b1"}
    assert group.patterns_in_use() == {"b.*"}
    group.apply(PatternSet("g", "b.*", None))
    assert group.subscribed() == {"a"}


def test_most_members_choose_the_assignor() -> None:
    group = group_of(
        *(ProfileSet("g", name, MemberProfile(assignor="range")) for name in "ab"),
        ProfileSet("g", "c", MemberProfile(assignor="uniform")),
        ProfileSet("g", "d", MemberProfile()),
    )
    assert group.preferred_assignor() == "range"
    assert ConsumerGroup("g").preferred_assignor() is None


def test_a_copy_is_changed_alone() -> None:
    group = group_of(*MEMBER, TargetSet("g", "m", parts("t", 0)))
    twin = group.copy()
    for what in (StandingSet("g", "m", None), TargetSet("g", "m", None), EpochSet("g", 9)):
        twin.apply(what)
    assert group.owners and group.target and group.epoch == 0
    assert not twin.owners and not twin.target and twin.epoch == 9


def test_tombstones_of_what_is_not_there_do_no_harm() -> None:
    group = group_of(
        StandingSet("g", "m", None), TargetSet("g", "m", None), ProfileSet("g", "m", None)
    )
    assert not group.members
