"""A group as it will be."""

from __future__ import annotations

from ottla.coordinator.group.consumer.assignors import AssignmentInput
from ottla.coordinator.group.consumer.group import ConsumerGroup
from ottla.coordinator.group.consumer.member import Member, MemberAssignment, MemberProfile
from ottla.coordinator.group.consumer.pending_group import PendingGroup, select_assignor, tombstones
from ottla.coordinator.group.consumer.records import EpochSet, TargetSet
from ottla.coordinator.group.draft import Draft
from ottla.coordinator.group.settings import GroupSettings
from ottla.model.clock import WallMs
from tests.coordinator.group.consumer.scene import image_of, parts

IMAGE = image_of({"t": 2})


def revision() -> PendingGroup:
    made = PendingGroup(ConsumerGroup("g"), Draft(WallMs(0)), IMAGE)
    made.put(Member("m", MemberProfile(instance_id="i", topics=("t",))))
    return made


def test_what_is_drafted_is_seen_at_once_and_the_group_left_alone() -> None:
    made = revision()
    assert list(made.after.members) == ["m"]
    assert not made.before.members
    assert len(made.draft.records) == 2
    made.put(made.after.members["m"])
    assert len(made.draft.records) == 2, "nothing changed"


def test_the_epoch_rises_with_the_topics_or_when_it_must() -> None:
    made = revision()
    assert made.raise_epoch(always=False)
    assert not made.raise_epoch(always=False)
    assert made.raise_epoch(always=True)
    assert made.after.epoch == 2


def test_a_target_is_made_once_for_each_epoch_and_written_where_it_differs() -> None:
    made, limits = revision(), GroupSettings()
    made.raise_epoch(always=True)
    made.retarget(limits, AssignmentInput.assign)
    assert (made.after.target, made.after.target_epoch) == ({"m": parts("t", 0, 1)}, 1)
    written = len(made.draft.records)
    made.retarget(limits, AssignmentInput.assign)
    assert len(made.draft.records) == written
    made.raise_epoch(always=True)
    made.retarget(limits, AssignmentInput.assign)
    targets = [each for each in made.draft.records if isinstance(each.change, TargetSet)]
    assert len(targets) == 1


def test_a_renamed_member_goes_on_where_the_old_one_was() -> None:
    made = revision()
    made.raise_epoch(always=True)
    made.retarget(GroupSettings(), AssignmentInput.assign)
    old = made.after.members["m"]
    made.rename(old, Member("n", old.profile, MemberAssignment(0, 0)))
    assert made.after.static == {"i": "n"}
    assert made.after.target == {"n": parts("t", 0, 1)}
    assert list(made.after.members) == ["n"]


def test_tombstones_take_everything_away_and_the_group_last() -> None:
    made = revision()
    made.resolve({"x": frozenset({"t"})})
    made.raise_epoch(always=True)
    made.retarget(GroupSettings(), AssignmentInput.assign)
    draft = Draft(WallMs(0))
    tombstones(made.after, draft)
    assert all(each.value is None for each in draft.records)
    assert {each.key for each in made.draft.records} <= {each.key for each in draft.records}
    assert draft.records[-1].change == EpochSet("g", None)
    for each in draft.records:
        made.after.apply(each.change)
    assert not made.after.members and not made.after.target and not made.after.topics


def test_only_patterns_in_use_are_written_down() -> None:
    made = revision()
    assert not made.resolve({"x": frozenset({"t"})})
    made.put(Member("n", MemberProfile(pattern="x")))
    assert made.resolve({"x": frozenset({"t"})})
    assert not made.resolve({"x": frozenset({"t"})})
    made.remove("n")
    assert not made.resolve({})
    assert not made.after.patterns


def test_an_assignor_that_is_not_offered_any_more_gives_way() -> None:
    limits = GroupSettings(assignors=("uniform",))
    assert [select_assignor(name, limits) for name in ("range", None, "uniform")] == ["uniform"] * 3
