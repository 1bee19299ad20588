"""Members that leave, and members that are not heard of."""

from __future__ import annotations

from ottla.coordinator.group.consumer.group import GroupState
from ottla.coordinator.group.consumer.member import LEAVES
from ottla.model.errors import ErrorCode
from tests.coordinator.group.consumer.scene import (
    SESSION_MS,
    Client,
    ConsumerScene,
    indexes,
    settle,
)
from tests.coordinator.group.scene import code_of


def test_what_a_leaver_held_goes_to_the_others_at_their_next_heartbeat() -> None:
    scene = ConsumerScene()
    a, b = Client(scene, "a"), Client(scene, "b")
    settle(a, b)
    assert b.leave().epoch == LEAVES
    assert scene.it.state is GroupState.ASSIGNING
    assert indexes(a.beat().assignment or ()) == [0, 1, 2, 3]


def test_the_last_one_leaves_an_empty_group() -> None:
    scene = ConsumerScene()
    a = Client(scene, "a")
    settle(a)
    a.leave()
    assert (scene.it.state, scene.it.epoch) == (GroupState.EMPTY, 2)
    assert not scene.it.target and not scene.it.owners and not scene.it.topics
    settle(Client(scene, "b"))
    assert scene.it.epoch == 3, "epochs go on where they were"


def test_a_member_that_is_silent_for_its_session_is_out() -> None:
    scene = ConsumerScene()
    a, b = Client(scene, "a"), Client(scene, "b")
    settle(a, b)
    scene.pass_ms(SESSION_MS - 1)
    a.beat()
    scene.pass_ms(2)
    assert list(scene.it.members) == ["a"]
    assert code_of(b.beat) is ErrorCode.unknown_member_id


def test_a_member_that_does_not_give_up_its_partitions_in_time_is_out() -> None:
    scene = ConsumerScene(consumer_session_timeout_ms=1_000_000)
    a, b = Client(scene, "a"), Client(scene, "b")
    settle(a)
    b.beat()
    a.beat()
    scene.pass_ms(59_999)
    a.beat()
    assert "a" in scene.it.members
    scene.pass_ms(1)
    assert list(scene.it.members) == ["b"]
    assert indexes(b.beat().assignment or ()) == [0, 1, 2, 3]


def test_one_that_gave_them_up_has_all_the_time_in_the_world() -> None:
    scene = ConsumerScene(consumer_session_timeout_ms=1_000_000)
    a, b = Client(scene, "a"), Client(scene, "b")
    settle(a, b)
    scene.pass_ms(200_000)
    assert scene.it.members.keys() == {"a", "b"}


def test_the_place_of_a_static_member_is_kept_for_one_session() -> None:
    scene = ConsumerScene()
    a, b = Client(scene, "a", instance_id="i"), Client(scene, "b")
    settle(a, b)
    a.leave(-2)
    assert code_of(a.beat) is ErrorCode.fenced_member_epoch
    scene.pass_ms(SESSION_MS - 1)
    b.beat()
    assert "a" in scene.it.members
    scene.pass_ms(2)
    assert list(scene.it.members) == ["b"]


def test_sessions_begin_anew_where_a_group_is_loaded() -> None:
    scene = ConsumerScene()
    a, b = Client(scene, "a"), Client(scene, "b")
    settle(a)
    b.beat()
    a.beat()
    after = scene.after_a_crash()
    a.scene = b.scene = after
    after.pass_ms(SESSION_MS - 1)
    assert after.it.members.keys() == {"a", "b"}
    b.beat()
    after.pass_ms(2)
    assert list(after.it.members) == ["b"]
