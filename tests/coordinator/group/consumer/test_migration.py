"""From the classic protocol to the consumer protocol and back, while the group goes on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ottla.coordinator.group.classic.group import ClassicGroup
from ottla.coordinator.group.classic.heartbeat import MemberIdentity
from ottla.coordinator.group.classic.member import GroupPhase, JoinReply, Protocol
from ottla.coordinator.group.consumer.classic_metadata import read_assignment, write_assignment
from ottla.coordinator.group.consumer.migration import can_downgrade, can_upgrade
from ottla.model.errors import ErrorCode
from tests.coordinator.group.consumer.scene import (
    Client,
    ConsumerScene,
    indexes,
    parts,
    protocols,
    settle,
)
from tests.coordinator.group.scene import GROUP, code_of, offset


def classic_group(scene: ConsumerScene, **ask: Any) -> list[JoinReply]:
    """Two classic members with two partitions each, in generation 1."""
    ask.setdefault("protocols", protocols("range"))
    waiting = [scene.start_join(**ask) for _ in range(2)]
    scene.pass_ms(1)
    joined = [replies[0] for replies in waiting]
    given = {
        one.member_id: write_assignment({"t": [2 * at, 2 * at + 1]}, 1)
        for at, one in enumerate(joined)
    }
    for one in joined[1:]:
        scene.start_sync(one)
    scene.start_sync(joined[0], given)
    return joined


def rejoined(scene: ConsumerScene, reply: JoinReply) -> JoinReply:
    [again] = scene.start_join(reply.member_id, protocols=protocols("range"))
    assert again.error is ErrorCode.none
    return again


def test_the_first_consumer_member_upgrades_the_group() -> None:
    scene = ConsumerScene()
    first, second = classic_group(scene)
    scene.commit(offset(7), member_id=first.member_id, generation=1)
    a = Client(scene, "a")
    a.step()
    assert (scene.it.epoch, a.epoch, a.held) == (2, 2, frozenset())
    assert scene.it.members[first.member_id].standing.assigned == parts("t", 0, 1)
    assert scene.committed() == 7
    assert scene.heartbeat(first) is ErrorCode.rebalance_in_progress
    for one in (first, second):
        scene.start_sync(rejoined(scene, one))
    a.step()
    assert len(a.held) == 1
    assert scene.it.state.value == "Stable"
    assert len(scene.owners()) == 4


def test_an_upgrade_outlives_the_broker() -> None:
    scene = ConsumerScene()
    first, _ = classic_group(scene)
    Client(scene, "a").step()
    after = scene.after_a_crash()
    assert after.it.members.keys() == scene.it.members.keys()
    assert after.it.owners == scene.it.owners
    assert after.heartbeat(first) is ErrorCode.rebalance_in_progress


@pytest.mark.parametrize(("most", "can"), [(1, False), (2, True), (3, True)])
def test_a_group_upgrades_while_its_members_are_no_more_than_may_be(most: int, can: bool) -> None:
    scene = ConsumerScene()
    classic_group(scene)
    assert can_upgrade(scene.group, replace(scene.limits, consumer_max_size=most)) is can


def test_a_classic_member_that_is_silent_after_the_upgrade_is_out() -> None:
    scene = ConsumerScene()
    first, second = classic_group(scene, session_ms=20_000, rebalance_ms=300_000)
    a = Client(scene, "a")
    scene.pass_ms(15_000)
    a.step()
    scene.pass_ms(15_000)
    assert second.member_id in scene.it.members, "its session began again"
    assert scene.heartbeat(first) is ErrorCode.rebalance_in_progress
    a.step()
    scene.pass_ms(15_000)
    assert scene.it.members.keys() == {"a", first.member_id}


def test_what_two_members_were_both_given_stays_with_the_first() -> None:
    scene = ConsumerScene()
    waiting = [scene.start_join(protocols=protocols("range")) for _ in range(2)]
    scene.pass_ms(1)
    joined = [replies[0] for replies in waiting]
    scene.start_sync(joined[1])
    both = write_assignment({"t": [0, 1]}, 1)
    scene.start_sync(joined[0], {one.member_id: both for one in joined})
    Client(scene, "a").step()
    assigned = [scene.it.members[one.member_id].standing.assigned for one in joined]
    assert sorted(map(len, assigned)) == [0, 2]


def test_a_group_that_has_chosen_no_protocol_yet_is_upgraded_by_what_its_members_prefer() -> None:
    scene = ConsumerScene()
    [*waiting] = scene.start_join(protocols=protocols("range"))
    assert waiting == []
    Client(scene, "a").step()
    [classic] = scene.it.classic_members()
    assert scene.it.members[classic.id].profile.topics == ("t",)


def test_compaction_leaves_nothing_of_the_protocol_that_was_left() -> None:
    scene = ConsumerScene()
    classic_group(scene)
    classic_keys = {key for key, _ in scene.log}
    a = Client(scene, "a")
    a.step()
    assert {dict(scene.log)[key] for key in classic_keys} == {None}
    a.leave()
    assert isinstance(scene.shard.groups[GROUP], ClassicGroup)
    left = {key for key, value in scene.log if dict(scene.log)[key] is not None}
    assert left == classic_keys


def test_members_that_are_silent_after_the_downgrade_are_out_before_the_rebalance_ends() -> None:
    scene = ConsumerScene()
    classic_group(scene, session_ms=20_000, rebalance_ms=300_000)
    a = Client(scene, "a")
    a.step()
    scene.pass_ms(15_000)
    a.leave()
    scene.pass_ms(19_000)
    assert len(scene.group.members) == 2
    scene.pass_ms(2_000)
    assert not scene.group.members


def test_whoever_waited_in_a_classic_rebalance_joins_again() -> None:
    scene = ConsumerScene()
    classic_group(scene)
    waiting = scene.start_join(protocols=protocols("range"))
    assert waiting == []
    Client(scene, "a").step()
    assert waiting[0].error is ErrorCode.rebalance_in_progress


def test_one_member_after_the_other_can_move_over() -> None:
    scene = ConsumerScene()
    members = classic_group(scene)
    clients: list[Client] = []
    for number, gone in enumerate(members):
        clients.append(Client(scene, f"new{number}"))
        clients[-1].step()
        scene.leave(MemberIdentity(gone.member_id))
    settle(*clients)
    assert sorted(len(client.held) for client in clients) == [2, 2]
    assert not scene.it.classic_members()


def test_an_empty_classic_group_makes_way_and_keeps_its_offsets() -> None:
    scene = ConsumerScene()
    scene.commit(offset(7))
    assert isinstance(scene.shard.groups[GROUP], ClassicGroup)
    settle(Client(scene, "a"))
    assert scene.it.epoch == 1
    assert scene.committed() == 7
    after = scene.after_a_crash()
    assert (after.it.epoch, after.committed()) == (1, 7)


def test_an_empty_consumer_group_makes_way_too() -> None:
    scene = ConsumerScene()
    a = Client(scene, "a")
    settle(a)
    scene.commit(offset(7), member_id="a", generation=1)
    a.leave()
    classic_group(scene)
    assert scene.phase() is GroupPhase.STABLE
    assert scene.committed() == 7
    after = scene.after_a_crash()
    assert isinstance(after.shard.groups[GROUP], ClassicGroup)


@pytest.mark.parametrize(
    ("limits", "ask"),
    [
        ({"upgrades": False}, {}),
        ({"consumer_max_size": 1}, {}),
        ({}, {"type": "connect"}),
        ({}, {"protocols": (Protocol("range", b"garbage"),)}),
    ],
)
def test_a_group_that_cannot_be_upgraded_stays_what_it_is(
    limits: dict[str, Any], ask: dict[str, Any]
) -> None:
    scene = ConsumerScene(**limits)
    members = classic_group(scene, **ask)
    assert code_of(Client(scene, "a").beat) is ErrorCode.group_id_not_found
    assert scene.heartbeat(members[0]) is ErrorCode.none


def test_when_the_last_consumer_member_goes_the_group_is_classic_again() -> None:
    scene = ConsumerScene()
    members = classic_group(scene)
    a = Client(scene, "a")
    a.step()
    members = [rejoined(scene, one) for one in members]
    for one in members:
        scene.start_sync(one)
    settle(a)
    epoch = scene.it.epoch
    a.leave()
    group = scene.group
    assert (group.phase, group.generation) == (GroupPhase.PREPARING, epoch)
    assert group.members.keys() == {one.member_id for one in members}
    after = scene.after_a_crash()
    assert after.group.generation == epoch
    assert after.phase() is GroupPhase.STABLE
    waiting = [scene.start_join(one.member_id, protocols=protocols("range")) for one in members]
    assert [replies[0].generation for replies in waiting] == [epoch + 1] * 2


@pytest.mark.parametrize(("max_size", "can"), [(1, False), (2, True), (3, True)])
def test_a_group_downgrades_while_its_members_are_no_more_than_a_classic_one_may_have(
    max_size: int, can: bool
) -> None:
    scene = ConsumerScene()
    first, second = classic_group(scene)
    a = Client(scene, "a")
    a.step()
    del scene.it.members["a"]
    assert sorted(scene.it.members) == sorted((first.member_id, second.member_id))
    assert can_downgrade(scene.it, replace(scene.limits, max_size=max_size)) is can


@pytest.mark.parametrize("way", ["leaves", "is silent"])
def test_without_leave_to_downgrade_the_group_stays(way: str) -> None:
    scene = ConsumerScene(downgrades=False)
    members = classic_group(scene, session_ms=100_000)
    a = Client(scene, "a")
    a.step()
    if way == "leaves":
        a.leave()
    else:
        scene.pass_ms(45_000)
    assert scene.it.members.keys() == {one.member_id for one in members}


def test_one_that_is_silent_for_too_long_downgrades_the_group_too() -> None:
    scene = ConsumerScene()
    classic_group(scene, session_ms=100_000)
    Client(scene, "a").step()
    scene.pass_ms(45_000)
    assert scene.phase() is GroupPhase.PREPARING


def test_a_static_member_that_comes_back_classic_downgrades_without_a_rebalance() -> None:
    scene = ConsumerScene()
    a = Client(scene, "a", instance_id="i")
    settle(a)
    [reply] = scene.start_join(instance="i", protocols=protocols("range"))
    assert (reply.error, reply.generation) == (ErrorCode.none, 1)
    assert scene.phase() is GroupPhase.STABLE
    [synced] = scene.start_sync(reply, instance="i")
    assert read_assignment(synced.assignment) == {"t": [0, 1, 2, 3]}
    assert scene.heartbeat(reply, instance="i") is ErrorCode.none
    assert code_of(a.beat) is ErrorCode.group_id_not_found


def test_a_static_member_that_comes_back_upgraded_takes_its_place() -> None:
    scene = ConsumerScene()
    waiting = scene.start_join(instance="i", protocols=protocols("range"))
    scene.pass_ms(1)
    [reply] = waiting
    scene.start_sync(
        reply, {reply.member_id: write_assignment({"t": [0, 1, 2, 3]}, 1)}, instance="i"
    )
    a = Client(scene, "a", instance_id="i")
    settle(a)
    assert indexes(a.held) == [0, 1, 2, 3]
    assert list(scene.it.members) == ["a"]
