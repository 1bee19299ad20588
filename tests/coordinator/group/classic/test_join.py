"""Who may join a group, and what that starts."""

from __future__ import annotations

import pytest

from ottla.coordinator.group.classic.member import GroupPhase, JoinReply, Protocol
from ottla.model.errors import ErrorCode
from tests.coordinator.group.scene import RANGE, Scene, code_of

STICKY = Protocol("sticky", b"s")


@pytest.mark.spec("GRP-15", "GRP-28", "GRP-29")
def test_a_new_member_is_told_its_id_and_comes_back_with_it() -> None:
    scene = Scene()
    [told] = scene.start_join(needs_known_id=True)
    assert (told.error, told.member_id) == (ErrorCode.member_id_required, "c-id1")
    assert not scene.group.members
    [joined] = scene.start_join(told.member_id, needs_known_id=True) or wait(scene, told.member_id)
    assert (joined.error, joined.member_id, joined.generation) == (ErrorCode.none, "c-id1", 1)


def wait(scene: Scene, member_id: str) -> list[JoinReply]:
    member = scene.group.members[member_id]
    replies: list[JoinReply] = []
    member.awaits_join = replies.append
    scene.pass_ms(1)
    return replies


@pytest.mark.spec("GRP-28")
def test_an_id_that_nobody_comes_back_with_is_forgotten_after_a_session() -> None:
    scene = Scene()
    [told] = scene.start_join(needs_known_id=True)
    scene.pass_ms(10_001)
    assert not scene.group.pending
    assert code_of(scene.start_join, told.member_id) is ErrorCode.unknown_member_id


@pytest.mark.spec("GRP-15", "GRP-16", "GRP-18", "GRP-22", "GRP-33", "GRP-36")
def test_the_leader_hears_of_all_members_and_the_others_of_none() -> None:
    scene = Scene()
    waiting = [scene.start_join(client=name) for name in ("a", "b")]
    assert waiting == [[], []]
    scene.pass_ms(1)
    [first], [second] = waiting
    assert first.leader == second.leader == first.member_id == "a-id1"
    assert [member.member_id for member in first.members] == ["a-id1", "b-id2"]
    assert first.members[0].metadata == RANGE.metadata
    assert second.members == ()
    assert (first.generation, first.protocol_type, first.protocol) == (1, "consumer", "range")
    assert scene.group.phase is GroupPhase.COMPLETING


@pytest.mark.spec("GRP-24")
@pytest.mark.parametrize("session_ms", [0, 5_999, 1_800_001])
def test_a_session_must_be_neither_too_short_nor_too_long(session_ms: int) -> None:
    code = code_of(Scene().start_join, session_ms=session_ms)
    assert code is ErrorCode.invalid_session_timeout


@pytest.mark.spec("GRP-25", "GRP-79")
def test_nobody_has_an_id_in_a_group_that_does_not_exist() -> None:
    scene = Scene()
    assert code_of(scene.start_join, "c-9") is ErrorCode.unknown_member_id
    assert not scene.shard.groups


@pytest.mark.spec("GRP-28", "GRP-16")
def test_a_member_that_shares_no_protocol_is_refused() -> None:
    scene = Scene()
    scene.stable()
    for ask in ({"protocols": (STICKY,)}, {"type": "connect"}, {"protocols": ()}):
        assert code_of(scene.start_join, **ask) is ErrorCode.inconsistent_group_protocol
    assert code_of(Scene().start_join, protocols=()) is ErrorCode.inconsistent_group_protocol
    assert scene.group.phase is GroupPhase.STABLE


@pytest.mark.spec("GRP-26")
def test_a_full_group_takes_nobody_else_but_those_it_has() -> None:
    scene = Scene(max_size=2)
    joined = scene.stable(2)
    assert code_of(scene.start_join) is ErrorCode.group_max_size_reached
    again = scene.start_join(joined[0].member_id)  # its leader may come back
    assert scene.group.phase is GroupPhase.PREPARING
    assert scene.start_join(joined[1].member_id)[0].generation == 2
    assert again[0].generation == 2


@pytest.mark.spec("GRP-26")
def test_while_members_rejoin_those_who_come_first_are_taken() -> None:
    scene = Scene(max_size=2)
    joined = scene.stable(2)
    scene.start_join(joined[0].member_id)
    newcomer = scene.start_join()
    assert code_of(scene.start_join, joined[1].member_id) is ErrorCode.group_max_size_reached
    assert set(scene.group.members) == {joined[0].member_id, "c-id3"}
    scene.start_join(joined[0].member_id)
    assert newcomer[0].generation == 2


@pytest.mark.spec("GRP-31")
def test_a_member_that_missed_the_answer_gets_it_again() -> None:
    scene = Scene()
    waiting = [scene.start_join() for _ in range(2)]
    scene.pass_ms(1)
    for [reply] in waiting:
        assert scene.start_join(reply.member_id) == [reply]
    assert scene.group.phase is GroupPhase.COMPLETING


@pytest.mark.spec("GRP-27", "GRP-31", "GRP-46")
def test_a_member_with_other_protocols_starts_a_rebalance() -> None:
    scene = Scene()
    leader, other = scene.stable(2)
    assert scene.start_join(other.member_id)[0].generation == 1, "nothing new: no rebalance"
    assert scene.start_join(other.member_id, protocols=(RANGE, STICKY)) == []
    assert scene.group.phase is GroupPhase.PREPARING
    assert scene.start_join(leader.member_id)[0].generation == 2


@pytest.mark.spec("GRP-31")
def test_changed_protocols_while_assignments_are_made_start_again() -> None:
    scene = Scene()
    waiting = [scene.start_join() for _ in range(2)]
    scene.pass_ms(1)
    synced = scene.start_sync(waiting[1][0])
    scene.start_join(waiting[0][0].member_id, protocols=(RANGE, STICKY))
    assert scene.group.phase is GroupPhase.PREPARING
    assert synced[0].error is ErrorCode.rebalance_in_progress


@pytest.mark.spec("GRP-32")
def test_a_join_of_the_leader_always_starts_a_rebalance() -> None:
    scene = Scene()
    [leader] = scene.stable()
    assert scene.start_join(leader.member_id)[0].generation == 2


@pytest.mark.spec("GRP-30")
def test_a_stranger_is_not_taken_for_a_member() -> None:
    scene = Scene()
    scene.stable()
    assert code_of(scene.start_join, "c-9") is ErrorCode.unknown_member_id
    assert code_of(scene.start_join, "c-9", instance="i") is ErrorCode.unknown_member_id


@pytest.mark.spec("GRP-48")
def test_a_static_member_that_restarts_keeps_its_assignment_without_a_rebalance() -> None:
    scene = Scene()
    [leader] = scene.stable(instance="i")
    scene.pass_ms(5_000)
    [back] = scene.start_join(instance="i")
    assert (back.error, back.generation, back.skip_assignment) == (ErrorCode.none, 1, True)
    assert back.member_id == back.leader == "i-id2"
    assert scene.group.phase is GroupPhase.STABLE
    [synced] = scene.start_sync(back, instance="i")
    assert synced.assignment == leader.member_id.encode()
    assert scene.heartbeat(leader, instance="i") is ErrorCode.fenced_instance_id
    assert "i-id2" in scene.crash().group.members, "its new id is written down"


@pytest.mark.spec("GRP-48")
def test_a_client_that_cannot_skip_it_does_not_think_it_leads() -> None:
    scene = Scene()
    [leader] = scene.stable(instance="i")
    [back] = scene.start_join(instance="i", can_skip=False)
    assert (back.leader, back.members) == (leader.member_id, ())


@pytest.mark.spec("GRP-48")
def test_two_with_one_name_cannot_both_wait() -> None:
    scene = Scene()
    first = scene.start_join(instance="i")
    second = scene.start_join(instance="i")
    assert first[0].error is ErrorCode.fenced_instance_id
    scene.pass_ms(1)
    assert second[0].generation == 1


@pytest.mark.spec("GRP-48")
def test_a_static_member_replaced_while_assignments_are_made_starts_again() -> None:
    scene = Scene()
    waiting = scene.start_join(instance="i")
    scene.pass_ms(1)
    back = scene.start_join(instance="i")
    assert back[0].generation == 2
    assert code_of(scene.start_sync, waiting[0], instance="i") is ErrorCode.fenced_instance_id


@pytest.mark.spec("GRP-48")
def test_a_replacement_that_cannot_be_stored_is_undone() -> None:
    scene = Scene()
    [leader] = scene.stable(instance="i")
    scene.refuse = ErrorCode.coordinator_not_available
    [refused] = scene.start_join(instance="i")
    assert refused.error is ErrorCode.coordinator_not_available
    scene.refuse = None
    assert scene.heartbeat(leader, instance="i") is ErrorCode.none


@pytest.mark.spec("GRP-48")
def test_a_static_member_that_changes_the_protocol_starts_a_rebalance() -> None:
    scene = Scene()
    scene.stable(instance="i", protocols=(RANGE, STICKY))
    [back] = scene.start_join(instance="i", protocols=(STICKY, RANGE))
    assert (back.generation, back.protocol) == (2, "sticky")


def test_a_name_that_no_id_could_be_made_of_is_refused() -> None:
    scene = Scene()
    long = "é" * 16_380
    assert code_of(scene.start_join, instance=long) is ErrorCode.invalid_request
    assert code_of(scene.start_join, client=long) is ErrorCode.invalid_request
    assert scene.shard.groups == {}
