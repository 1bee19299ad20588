"""The leader's assignment is stored, and each member is told its part."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.coordinator.group.classic.member import GroupPhase, JoinReply
from ottla.model.errors import ErrorCode
from tests.coordinator.group.scene import Scene, code_of


def joined(scene: Scene, count: int = 2, **ask: Any) -> list[JoinReply]:
    waiting = [scene.start_join(**ask) for _ in range(count)]
    scene.pass_ms(1)
    return [replies[0] for replies in waiting]


@pytest.mark.spec("GRP-41", "GRP-57", "GRP-22")
def test_members_wait_for_the_leader_and_each_gets_its_own_part() -> None:
    scene = Scene()
    leader, other = joined(scene)
    waiting = scene.start_sync(other)
    assert waiting == []
    [own] = scene.start_sync(leader, {other.member_id: b"part"})
    assert (own.assignment, waiting[0].assignment) == (b"", b"part")
    assert (own.protocol_type, own.protocol) == ("consumer", "range")
    assert scene.group.phase is GroupPhase.STABLE
    after = scene.crash().group
    assert (after.phase, after.generation, after.leader) == (GroupPhase.STABLE, 1, leader.member_id)
    assert after.members[other.member_id].assignment == b"part"


@pytest.mark.spec("GRP-40")
def test_a_member_may_ask_again_in_a_stable_group() -> None:
    scene = Scene()
    [leader] = scene.stable()
    assert scene.start_sync(leader)[0].assignment == leader.member_id.encode()


@pytest.mark.spec("GRP-38", "GRP-39", "GRP-40")
def test_a_sync_that_does_not_fit_is_refused() -> None:
    scene = Scene()
    leader, _ = joined(scene)
    refusals = {
        code_of(scene.start_sync, leader, member_id="nobody"): ErrorCode.unknown_member_id,
        code_of(scene.start_sync, leader, generation=7): ErrorCode.illegal_generation,
        code_of(scene.start_sync, leader, type="connect"): ErrorCode.inconsistent_group_protocol,
    }
    assert all(got is expected for got, expected in refusals.items())
    assert (
        code_of(scene.start_sync, leader, protocol="sticky")
        is ErrorCode.inconsistent_group_protocol
    )
    assert code_of(Scene().start_sync, leader) is ErrorCode.unknown_member_id
    scene.start_join()
    assert code_of(scene.start_sync, leader) is ErrorCode.rebalance_in_progress


@pytest.mark.spec("GRP-41")
def test_an_assignment_that_cannot_be_stored_reaches_nobody() -> None:
    scene = Scene()
    leader, other = joined(scene)
    waiting = scene.start_sync(other)
    scene.refuse = ErrorCode.coordinator_not_available
    [own] = scene.start_sync(leader, {other.member_id: b"part"})
    assert own.error is waiting[0].error is ErrorCode.coordinator_not_available
    assert scene.group.phase is GroupPhase.PREPARING
    assert all(not member.assignment for member in scene.group.members.values())


@pytest.mark.spec("GRP-42")
def test_an_assignment_stored_after_the_next_rebalance_began_reaches_nobody() -> None:
    scene = Scene()
    leader, other = joined(scene)
    waiting = scene.start_sync(other)
    scene.held = []
    own = scene.start_sync(leader, {other.member_id: b"part"})
    assert (own, scene.group.phase) == ([], GroupPhase.COMPLETING)
    scene.start_join()
    assert own[0].error is waiting[0].error is ErrorCode.rebalance_in_progress
    scene.commit_held()
    assert scene.group.phase is GroupPhase.PREPARING


@pytest.mark.spec("GRP-42")
def test_an_assignment_stored_while_the_next_generation_waits_for_its_own_reaches_nobody() -> None:
    scene = Scene()
    leader, other = joined(scene)
    scene.held = []
    scene.start_sync(leader, {other.member_id: b"old part"})
    scene.start_join()
    rejoined = [scene.start_join(one.member_id) for one in (leader, other)]
    scene.pass_ms(1)
    assert (scene.phase(), scene.group.generation) == (GroupPhase.COMPLETING, 2)
    waiting = scene.start_sync(rejoined[1][0])
    scene.commit_held()
    assert (waiting, scene.phase()) == ([], GroupPhase.COMPLETING)
    scene.start_sync(rejoined[0][0], {other.member_id: b"new part"})
    assert waiting[0].assignment == b"new part"


@pytest.mark.spec("GRP-40")
@pytest.mark.parametrize("generation", [0, 2])
def test_a_stable_group_gives_its_assignments_to_nobody_of_another_generation(
    generation: int,
) -> None:
    scene = Scene()
    [leader] = scene.stable()
    refused = code_of(scene.start_sync, leader, generation=generation)
    assert refused is ErrorCode.illegal_generation


def test_members_that_never_ask_for_their_part_are_out() -> None:
    scene = Scene()
    leader, silent = joined(scene, session_ms=60_000, rebalance_ms=7_000)
    scene.start_sync(leader)
    scene.pass_ms(6_999)
    assert scene.phase() is GroupPhase.STABLE
    scene.pass_ms(1)
    assert scene.phase() is GroupPhase.PREPARING
    assert silent.member_id not in scene.group.members
