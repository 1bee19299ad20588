"""From a change of members to the next generation, on the clock."""

from __future__ import annotations

import pytest

from ottla.coordinator.group.classic.heartbeat import MemberIdentity
from ottla.coordinator.group.classic.member import GroupPhase
from ottla.coordinator.group.classic.rebalance import JOIN
from ottla.coordinator.group.records import TimerKey
from ottla.coordinator.outcome import Answer, LogLine
from ottla.model.errors import ErrorCode
from tests.coordinator.group.scene import GROUP, RANGE, Scene


@pytest.mark.spec("GRP-34", "GRP-35", "DLY-33")
def test_members_that_start_together_make_one_generation() -> None:
    scene = Scene(initial_rebalance_delay_ms=3_000)
    waiting = [scene.start_join()]
    for _ in range(4):
        scene.pass_ms(2_000)
        waiting.append(scene.start_join())
    assert waiting == [[]] * 5
    scene.pass_ms(6_000)
    assert {replies[0].generation for replies in waiting} == {1}


@pytest.mark.spec("GRP-35")
def test_the_first_wait_is_over_with_the_rebalance_timeout_however_many_keep_coming() -> None:
    scene = Scene(initial_rebalance_delay_ms=3_000)
    waiting = scene.start_join(rebalance_ms=10_000)
    for _ in range(9):
        scene.pass_ms(1_000)
        scene.start_join(rebalance_ms=10_000)
    assert waiting == []
    scene.pass_ms(1_000)
    assert waiting[0].generation == 1


@pytest.mark.spec("GRP-34")
def test_an_empty_group_waits_for_its_first_members_again() -> None:
    scene = Scene(initial_rebalance_delay_ms=3_000)
    waiting = scene.start_join()
    scene.pass_ms(3_000)
    scene.leave(MemberIdentity(waiting[0].member_id))
    assert scene.group.phase is GroupPhase.EMPTY
    again = scene.start_join()
    scene.pass_ms(2_999)
    assert again == []
    scene.pass_ms(1)
    assert again[0].generation == 3


@pytest.mark.spec("GRP-36", "GRP-37", "DLY-32")
def test_who_does_not_rejoin_in_time_is_out() -> None:
    scene = Scene()
    leader, slow = scene.stable(2, rebalance_ms=5_000)
    waiting = scene.start_join(leader.member_id, rebalance_ms=5_000)
    scene.pass_ms(4_999)
    assert waiting == []
    assert scene.heartbeat(slow) is ErrorCode.rebalance_in_progress
    scene.pass_ms(1)
    assert waiting[0].generation == 2
    assert set(scene.group.members) == {leader.member_id}
    assert scene.heartbeat(slow) is ErrorCode.unknown_member_id


@pytest.mark.spec("GRP-34")
def test_the_longest_rebalance_timeout_of_all_members_counts() -> None:
    scene = Scene()
    patient = scene.start_join(rebalance_ms=9_000)
    hasty = scene.start_join(rebalance_ms=3_000)
    scene.pass_ms(1)
    scene.share_out([patient[0], hasty[0]])
    scene.start_join(rebalance_ms=3_000)
    scene.pass_ms(8_999)
    assert scene.phase() is GroupPhase.PREPARING
    scene.pass_ms(1)
    assert scene.phase() is GroupPhase.COMPLETING


@pytest.mark.spec("GRP-36", "GRP-57", "GRP-10")
def test_a_group_that_becomes_empty_writes_that_down() -> None:
    scene = Scene()
    [leader] = scene.stable()
    scene.pass_ms(1_000)
    scene.leave(MemberIdentity(leader.member_id))
    after = scene.crash().group
    assert (after.phase, after.generation, after.since_ms) == (GroupPhase.EMPTY, 2, scene.now)
    assert after.protocol_type == "consumer"


@pytest.mark.spec("GRP-36", "GRP-48")
def test_the_places_of_static_members_are_kept_for_their_session() -> None:
    scene = Scene()
    first = scene.start_join(instance="a", rebalance_ms=3_000)
    second = scene.start_join(instance="b", rebalance_ms=3_000)
    scene.pass_ms(1)
    scene.share_out([first[0], second[0]])
    waiting = scene.start_join(first[0].member_id, instance="a", rebalance_ms=3_000)
    scene.pass_ms(3_000)
    assert {member.instance_id for member in waiting[0].members} == {"a", "b"}


@pytest.mark.spec("GRP-17", "GRP-36")
def test_somebody_who_is_here_leads_when_a_static_leader_is_away() -> None:
    scene = Scene()
    first = scene.start_join(instance="a", rebalance_ms=3_000)
    second = scene.start_join(instance="b", rebalance_ms=3_000)
    scene.pass_ms(1)
    scene.share_out([first[0], second[0]])
    changed = (RANGE._replace(metadata=b"other"),)
    waiting = scene.start_join(second[0].member_id, instance="b", protocols=changed)
    scene.pass_ms(60_000 - 10_001)
    scene.pass_ms(10_001)
    assert waiting[0].leader == second[0].member_id


def test_a_generation_without_anybody_waits_for_its_static_members() -> None:
    scene = Scene()
    first = scene.start_join(instance="a", rebalance_ms=3_000, session_ms=20_000)
    scene.pass_ms(1)
    scene.share_out([first[0]])
    newcomer = scene.start_join(rebalance_ms=3_000)
    scene.leave(MemberIdentity(next(id for id in scene.group.members if id.startswith("c"))))
    assert newcomer[0].error is ErrorCode.unknown_member_id
    scene.pass_ms(3_000)
    assert (scene.group.phase, scene.group.generation) == (GroupPhase.PREPARING, 1)
    scene.pass_ms(20_000)
    assert (scene.group.phase, scene.group.generation) == (GroupPhase.EMPTY, 2)


def test_a_decision_yields_its_replies_and_log_lines_and_sends_nothing_itself() -> None:
    scene = Scene()
    waiting = scene.start_join()
    outcome = scene.shard.on_timer(TimerKey(JOIN, GROUP), scene.now)
    assert not waiting
    answers = [effect for effect in outcome.effects if isinstance(effect, Answer)]
    lines = [effect for effect in outcome.effects if isinstance(effect, LogLine)]
    assert [(answer.reply.error, answer.reply.generation) for answer in answers] == [
        (ErrorCode.none, 1)
    ]
    assert [line.message % line.arguments for line in lines] == [
        f"group {GROUP!r}: generation 1 has 1 members"
    ]
    scene.execute(outcome)
    assert [reply.generation for reply in waiting] == [1]
