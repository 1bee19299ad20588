"""Heartbeats, leaving, and members that are not heard of any more."""

from __future__ import annotations

import pytest

from ottla.coordinator.group.classic.heartbeat import MemberIdentity
from ottla.coordinator.group.classic.member import GroupPhase
from ottla.model.errors import ErrorCode
from tests.coordinator.group.scene import Scene, code_of


@pytest.mark.spec("GRP-43", "GRP-44", "DLY-34")
def test_a_member_that_is_heard_of_stays_and_one_that_is_not_goes() -> None:
    scene = Scene()
    leader, silent = scene.stable(2)
    for _ in range(3):
        scene.pass_ms(5_000)
        code = scene.heartbeat(leader)
    assert code is ErrorCode.rebalance_in_progress
    assert set(scene.group.members) == {leader.member_id}
    assert scene.heartbeat(silent) is ErrorCode.unknown_member_id


@pytest.mark.spec("GRP-43")
def test_a_heartbeat_that_does_not_fit_is_refused() -> None:
    scene = Scene()
    [leader] = scene.stable(instance="i")
    assert scene.heartbeat(leader, instance="i") is ErrorCode.none
    assert scene.heartbeat(leader, generation=0) is ErrorCode.illegal_generation
    assert scene.heartbeat(leader, member_id="x") is ErrorCode.unknown_member_id
    assert scene.heartbeat(leader, member_id="x", instance="i") is ErrorCode.fenced_instance_id
    assert Scene().heartbeat(leader) is ErrorCode.unknown_member_id


@pytest.mark.spec("GRP-43")
def test_members_hear_of_a_rebalance_with_their_heartbeat() -> None:
    scene = Scene()
    waiting = scene.start_join()
    scene.pass_ms(1)
    assert scene.group.phase.value == "CompletingRebalance"
    assert scene.heartbeat(waiting[0]) is ErrorCode.none, "it has joined, and waits"
    scene.start_join()
    assert scene.group.phase.value == "PreparingRebalance"
    assert scene.heartbeat(waiting[0]) is ErrorCode.rebalance_in_progress


@pytest.mark.spec("GRP-45", "GRP-46")
def test_a_member_that_leaves_starts_a_rebalance_at_once() -> None:
    scene = Scene()
    leader, other = scene.stable(2)
    assert scene.leave(MemberIdentity(other.member_id)) == [ErrorCode.none]
    assert scene.group.phase is GroupPhase.PREPARING
    assert scene.start_join(leader.member_id)[0].generation == 2


@pytest.mark.spec("GRP-45")
def test_an_id_that_was_only_given_out_can_be_given_back() -> None:
    scene = Scene()
    [told] = scene.start_join(needs_known_id=True)
    assert scene.leave(MemberIdentity(told.member_id)) == [ErrorCode.none]
    assert (scene.group.pending, scene.group.phase) == (set(), GroupPhase.EMPTY)


@pytest.mark.spec("GRP-45", "GRP-48")
def test_several_leave_together_and_static_ones_by_their_name() -> None:
    scene = Scene()
    waiting = [scene.start_join(instance=name) for name in ("a", "b")] + [scene.start_join()]
    scene.pass_ms(1)
    codes = scene.leave(
        MemberIdentity("", "a"),
        MemberIdentity("wrong", "b"),
        MemberIdentity("", "nobody"),
        MemberIdentity("nobody"),
        MemberIdentity(waiting[2][0].member_id),
    )
    assert codes == [
        ErrorCode.none,
        ErrorCode.fenced_instance_id,
        ErrorCode.unknown_member_id,
        ErrorCode.unknown_member_id,
        ErrorCode.none,
    ]
    assert set(scene.group.static) == {"b"}
    assert code_of(Scene().leave, MemberIdentity("x")) is ErrorCode.unknown_member_id


@pytest.mark.spec("GRP-44", "GRP-33")
def test_a_new_member_waits_for_its_first_generation_no_longer_than_five_minutes() -> None:
    scene = Scene()
    scene.stable(rebalance_ms=1_000_000, session_ms=1_000_000)
    newcomer = scene.start_join(rebalance_ms=1_000_000)
    scene.pass_ms(299_999)
    assert newcomer == []
    scene.pass_ms(1)
    assert newcomer[0].error is ErrorCode.unknown_member_id


@pytest.mark.spec("GRP-44")
def test_a_member_that_waits_for_an_answer_need_not_be_heard_of() -> None:
    scene = Scene()
    leader, slow = scene.stable(2, rebalance_ms=60_000)
    waiting = scene.start_join(leader.member_id)
    for _ in range(5):
        scene.pass_ms(8_000)
        scene.heartbeat(slow)
    assert waiting == []
    assert scene.start_join(slow.member_id)[0].generation == 2
    assert len(scene.group.members) == 2
