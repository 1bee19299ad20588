"""ConsumerGroupHeartbeat: who may join, what each hears, who is fenced."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.coordinator.group.consumer.group import GroupState
from ottla.coordinator.group.consumer.heartbeat import HeartbeatRequest
from ottla.coordinator.group.consumer.member import MemberState
from ottla.coordinator.group.consumer.topic_partitions import NO_PARTS
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode
from tests.coordinator.group.consumer.scene import (
    Client,
    ConsumerScene,
    indexes,
    parts,
    settle,
)
from tests.coordinator.group.scene import code_of

JOINING = HeartbeatRequest("a", 0, topics=("t",), rebalance_timeout_ms=1_000, owned=NO_PARTS)


def test_the_first_member_gets_everything_at_once() -> None:
    scene = ConsumerScene()
    reply = Client(scene, "a").beat()
    assert (reply.member_id, reply.epoch, reply.interval_ms) == ("a", 1, 5_000)
    assert reply.assignment == parts("t", 0, 1, 2, 3)
    assert scene.it.state is GroupState.STABLE


def test_a_partition_is_given_up_before_another_gets_it() -> None:
    scene = ConsumerScene()
    a, b = Client(scene, "a"), Client(scene, "b")
    settle(a)
    assert b.beat().assignment == NO_PARTS  # all of its share is still held by the other
    told = a.beat()
    assert told.epoch == 1 and indexes(told.assignment or ()) == [0, 1]
    assert b.beat().assignment == NO_PARTS
    a.obey()
    assert a.beat().epoch == 2
    assert indexes(b.beat().assignment or ()) == [2, 3]
    assert scene.it.state is GroupState.STABLE


def test_a_heartbeat_without_news_writes_nothing_and_repeats_nothing() -> None:
    scene = ConsumerScene()
    a = Client(scene, "a")
    settle(a)
    written = len(scene.log)
    reply = scene.beat(HeartbeatRequest("a", 1))
    assert (reply.epoch, reply.assignment) == (1, None)
    assert a.beat().assignment == parts("t", 0, 1, 2, 3)  # to one who says everything
    assert len(scene.log) == written


def test_a_changed_subscription_raises_the_epoch() -> None:
    scene = ConsumerScene()
    scene.topics(t=1, u=2)
    a = Client(scene, "a")
    settle(a)
    a.topics = ("u",)
    settle(a)
    assert (scene.it.epoch, a.held) == (2, parts("u", 0, 1))


def test_new_partitions_and_topics_are_shared_out_at_the_next_heartbeat() -> None:
    scene = ConsumerScene()
    a = Client(scene, "a", "t", "later")
    settle(a)
    scene.topics(t=5)
    settle(a)
    assert (a.epoch, indexes(a.held)) == (2, [0, 1, 2, 3, 4])
    scene.topics(t=5, other=3)
    settle(a)
    assert a.epoch == 2, "a topic that nobody reads changes nothing"
    scene.topics(t=5, later=1)
    settle(a)
    assert a.held == parts("t", *range(5)) | parts("later", 0)
    scene.topics(later=1)
    settle(a)
    assert (a.epoch, a.held) == (4, parts("later", 0))


def test_an_assignor_is_chosen_by_most_members() -> None:
    scene = ConsumerScene()
    scene.topics(t=2, u=2)
    clients = [Client(scene, name, "t", "u", assignor="range") for name in ("a", "b")]
    settle(*clients)
    assert clients[0].held == parts("t", 0) | parts("u", 0)


@pytest.mark.parametrize(
    "changes",
    [
        {"member_id": ""},
        {"member_id": " "},
        {"epoch": -3},
        {"instance_id": ""},
        {"rack_id": ""},
        {"rebalance_timeout_ms": -1},
        {"rebalance_timeout_ms": -5},
        {"owned": None},
        {"owned": parts("t", 0)},
        {"topics": None},
        {"epoch": -2},
        {"epoch": -1, "member_id": ""},
        {"epoch": 3, "member_id": "", "brings_id": False},
    ],
)
def test_a_request_that_makes_no_sense_is_refused(changes: dict[str, Any]) -> None:
    scene = ConsumerScene()
    assert code_of(scene.beat, JOINING._replace(**changes)) is ErrorCode.invalid_request
    assert scene.log == []


def test_an_older_client_is_given_an_id() -> None:
    scene = ConsumerScene()
    reply = scene.beat(JOINING._replace(member_id="", brings_id=False))
    assert reply.member_id == "id1"


def test_an_assignor_that_is_not_offered_is_refused() -> None:
    scene = ConsumerScene(assignors=("uniform",))
    asked = JOINING._replace(assignor="range")
    assert code_of(scene.beat, asked) is ErrorCode.unsupported_assignor


def test_the_protocol_can_be_switched_off() -> None:
    scene = ConsumerScene(consumer_protocol=False)
    assert code_of(scene.beat, JOINING) is ErrorCode.unsupported_version


def test_a_full_group_takes_nobody_but_its_own() -> None:
    scene = ConsumerScene(consumer_max_size=1)
    a = Client(scene, "a", instance_id="i")
    a.beat()
    assert code_of(Client(scene, "b").beat) is ErrorCode.group_max_size_reached
    a.step()
    a.leave(-2)
    Client(scene, "c", instance_id="i").beat()
    assert list(scene.it.members) == ["c"]


def test_members_and_groups_that_are_not_known_are_told_so() -> None:
    scene = ConsumerScene()
    stays = HeartbeatRequest("a", 1)
    assert code_of(scene.beat, stays) is ErrorCode.group_id_not_found
    Client(scene, "b").beat()
    assert code_of(scene.beat, stays) is ErrorCode.unknown_member_id
    assert code_of(scene.beat, HeartbeatRequest("a", -1)) is ErrorCode.unknown_member_id


# Epochs


def two_epochs() -> tuple[ConsumerScene, Client]:
    """A member in epoch 2, after 1."""
    scene = ConsumerScene()
    a = Client(scene, "a")
    settle(a)
    scene.topics(t=5)
    settle(a)
    assert (a.epoch, scene.it.members["a"].standing.previous_epoch) == (2, 1)
    return scene, a


@pytest.mark.parametrize("epoch", [3, 99])
def test_an_epoch_that_was_never_given_is_fenced(epoch: int) -> None:
    _, a = two_epochs()
    assert code_of(a.beat, epoch=epoch) is ErrorCode.fenced_member_epoch


def test_one_epoch_behind_is_forgiven_to_one_who_holds_nothing_else() -> None:
    _, a = two_epochs()
    assert a.beat(epoch=1).epoch == 2
    assert code_of(a.beat, epoch=1, owned=None) is ErrorCode.fenced_member_epoch
    assert code_of(a.beat, epoch=1, owned=parts("u", 0)) is ErrorCode.fenced_member_epoch


def test_two_epochs_behind_is_fenced_and_rejoins_under_its_id() -> None:
    scene, a = two_epochs()
    scene.topics(t=6)
    settle(a)
    assert code_of(a.beat, epoch=1) is ErrorCode.fenced_member_epoch
    reply = a.beat(epoch=0, owned=NO_PARTS)
    assert (reply.epoch, len(reply.assignment or ())) == (3, 6)
    assert list(scene.it.members) == ["a"]


def test_a_join_whose_reply_was_lost_may_be_repeated() -> None:
    scene = ConsumerScene()
    first, again = scene.beat(JOINING), scene.beat(JOINING)
    assert first == again


def test_one_that_joins_anew_has_given_up_what_it_was_told_to() -> None:
    scene = ConsumerScene()
    a, b = Client(scene, "a"), Client(scene, "b")
    settle(a)
    b.beat()
    a.beat()
    assert scene.it.members["a"].standing.state is MemberState.UNREVOKED
    a.epoch, a.held = 0, NO_PARTS
    a.beat()
    assert indexes(b.beat().assignment or ()) == [2, 3]


# Static members


def test_a_static_member_that_comes_back_disturbs_nobody() -> None:
    scene = ConsumerScene()
    a, b = Client(scene, "a", instance_id="i"), Client(scene, "b", instance_id="j")
    settle(a, b)
    epoch, held = scene.it.epoch, a.held
    assert a.leave(-2).epoch == -2
    assert indexes(b.beat().assignment or ()) == indexes(b.held)
    back = Client(scene, "c", instance_id="i")
    settle(back, b)
    assert (scene.it.epoch, back.held, list(scene.it.static.values())) == (epoch, held, ["b", "c"])


def test_a_name_that_is_in_use_is_not_given_away() -> None:
    scene = ConsumerScene()
    settle(Client(scene, "a", instance_id="i"))
    other = Client(scene, "b", instance_id="i")
    assert code_of(other.beat) is ErrorCode.unreleased_instance_id


def test_the_old_bearer_of_a_name_is_fenced() -> None:
    scene = ConsumerScene()
    a = Client(scene, "a", instance_id="i")
    settle(a)
    a.leave(-2)
    settle(Client(scene, "b", instance_id="i"))
    assert code_of(a.beat) is ErrorCode.fenced_instance_id
    assert code_of(a.leave) is ErrorCode.fenced_instance_id
    nobody = Client(scene, "x", instance_id="unheard-of")
    nobody.epoch = 1
    assert code_of(nobody.beat) is ErrorCode.unknown_member_id


def test_a_static_member_may_repeat_its_own_join() -> None:
    scene = ConsumerScene()
    joining = JOINING._replace(instance_id="i")
    assert scene.beat(joining) == scene.beat(joining)


# Patterns


def test_a_pattern_stands_for_every_topic_it_matches_from_end_to_end() -> None:
    scene = ConsumerScene()
    scene.topics(t1=1, t2=2, not_t1=1)
    a = Client(scene, "a", pattern="t[0-9]")
    a.topics = ()
    settle(a)
    assert a.held == parts("t1", 0) | parts("t2", 0, 1)
    assert scene.it.patterns["t[0-9]"].topics == {"t1", "t2"}


def test_topics_that_match_later_are_found_when_topics_change() -> None:
    scene = ConsumerScene()
    scene.topics(t1=1)
    a = Client(scene, "a", pattern="t.*")
    a.topics = ()
    settle(a)
    scene.topics(t1=1, t2=1)
    scene.pass_ms(1_000)
    settle(a)
    assert a.held == parts("t1", 0) | parts("t2", 0)
    assert scene.it.patterns["t.*"].version == 1


def test_patterns_are_not_resolved_at_every_change() -> None:
    scene = ConsumerScene()
    scene.topics(t1=1)
    ask = Client(scene, "a", pattern="t.*").ask(topics=())
    scene.beat(ask)
    consumer, changes = scene.shard.consumer, 50
    resolved = 0
    for number in range(changes):
        scene.topics(t1=1, **{f"x{number}": 1})
        wanted, _ = consumer.to_resolve("g", HeartbeatRequest("a", 1), scene.now)
        resolved += bool(wanted)
        scene.pass_ms(100)
    assert 1 <= resolved <= changes // 10 + 1


def test_a_pattern_is_resolved_anew_now_and_then_whatever_happens() -> None:
    scene = ConsumerScene(regex_refresh_interval_ms=600_000)
    scene.beat(Client(scene, "a", pattern="t.*").ask(topics=()))
    scene.beat(HeartbeatRequest("a", 1))
    assert not scene.shard.consumer.to_resolve(
        "g", HeartbeatRequest("a", 1), WallMs(scene.now + 599_999)
    )[0]
    assert scene.shard.consumer.to_resolve(
        "g", HeartbeatRequest("a", 1), WallMs(scene.now + 600_000)
    )[0]


def test_a_pattern_that_nobody_has_any_more_is_forgotten() -> None:
    scene = ConsumerScene()
    a, b = Client(scene, "a", pattern="t"), Client(scene, "b", pattern="u")
    settle(a, b)
    a.more["pattern"] = ""
    a.beat()
    assert list(scene.it.patterns) == ["u"]
    assert scene.it.members["a"].profile.pattern is None
    b.leave()
    assert not scene.it.patterns


def test_a_pattern_that_is_none_is_refused_and_leaves_no_trace() -> None:
    scene = ConsumerScene()
    asked = JOINING._replace(pattern="(")
    assert code_of(scene.beat, asked) is ErrorCode.invalid_regular_expression
    assert scene.log == []
