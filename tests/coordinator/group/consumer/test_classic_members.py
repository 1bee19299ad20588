"""Classic members in a consumer group: their own requests, the group's rules."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.coordinator.group.classic.heartbeat import MemberIdentity
from ottla.coordinator.group.classic.member import JoinReply, Protocol
from ottla.coordinator.group.consumer.classic_metadata import read_assignment
from ottla.coordinator.record_fields import Writer
from ottla.model.errors import ErrorCode
from tests.coordinator.group.consumer.scene import (
    Client,
    ConsumerScene,
    indexes,
    protocols,
    settle,
)
from tests.coordinator.group.scene import code_of


def joined(scene: ConsumerScene, member_id: str = "c", **ask: Any) -> JoinReply:
    ask.setdefault("protocols", protocols("range"))
    [reply] = scene.start_join(member_id, **ask)
    return reply


def synced(scene: ConsumerScene, reply: JoinReply, **ask: Any) -> list[int]:
    [answer] = scene.start_sync(reply, **ask)
    assert answer.error is ErrorCode.none
    return (read_assignment(answer.assignment) or {}).get("t", [])


def mixed() -> tuple[ConsumerScene, Client, JoinReply]:
    """Two partitions for each of both kinds of member."""
    scene = ConsumerScene()
    a = Client(scene, "a")
    settle(a)
    reply = joined(scene)
    assert synced(scene, reply) == []
    for _ in range(2):
        a.step()
    assert scene.heartbeat(reply) is ErrorCode.rebalance_in_progress
    reply = joined(scene)
    assert synced(scene, reply) == [2, 3]
    return scene, a, reply


def test_a_classic_member_joins_syncs_and_stays() -> None:
    scene, a, reply = mixed()
    assert (reply.generation, reply.protocol_type, reply.protocol) == (2, "consumer", "range")
    assert reply.leader != reply.member_id, "nobody leads: the coordinator shares out"
    assert scene.heartbeat(reply) is ErrorCode.none
    assert indexes(a.held) == [0, 1]
    assert scene.it.state.value == "Stable"


def test_it_keeps_its_rack_where_its_next_subscription_names_none() -> None:
    scene, _, reply = mixed()
    with_rack = Writer(3).array(1).string("t").blob(None).array(0).int32(7).string("rack").done()
    joined(scene, reply.member_id, protocols=(Protocol("range", with_rack),))
    assert scene.it.members[reply.member_id].profile.rack_id == "rack"
    joined(scene, reply.member_id)
    assert scene.it.members[reply.member_id].profile.rack_id == "rack"


def test_one_without_an_id_is_given_one_first() -> None:
    scene, _, _ = mixed()
    first = joined(scene, "", needs_known_id=True)
    assert first.error is ErrorCode.member_id_required
    assert first.member_id not in scene.it.members
    assert joined(scene, first.member_id).error is ErrorCode.none


def test_it_hears_in_its_heartbeats_that_it_should_join_again() -> None:
    scene, a, reply = mixed()
    scene.topics(t=6)
    a.step()
    assert scene.heartbeat(reply) is ErrorCode.rebalance_in_progress
    again = joined(scene)
    assert len(synced(scene, again)) == 3
    assert scene.heartbeat(reply) is ErrorCode.illegal_generation


def test_a_cooperative_member_gives_up_before_it_gets() -> None:
    own = protocols("cooperative-sticky", owned={"t": []})
    scene = ConsumerScene()
    a = Client(scene, "a")
    a.step()
    reply = joined(scene, protocols=own)
    a.step()
    a.step()
    reply = joined(scene, protocols=own)
    assert synced(scene, reply) == [2, 3]
    b = Client(scene, "b")
    b.step()
    assert scene.heartbeat(reply) is ErrorCode.rebalance_in_progress
    holds = protocols("cooperative-sticky", owned={"t": [2, 3]})
    reply = joined(scene, protocols=holds)
    kept = synced(scene, reply)
    assert len(kept) == 1, "told to give one up"
    b.step()
    assert not b.held, "and it has not said yet that it did"
    assert scene.heartbeat(reply) is ErrorCode.rebalance_in_progress
    reply = joined(scene, protocols=protocols("cooperative-sticky", owned={"t": kept}))
    b.step()
    assert len(b.held) == 1
    assert scene.heartbeat(reply) is ErrorCode.none


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        ({"member_id": "nobody"}, ErrorCode.unknown_member_id),
        ({"member_id": "a"}, ErrorCode.unknown_member_id),
        ({"generation": 1}, ErrorCode.illegal_generation),
        ({"protocol": "roundrobin"}, ErrorCode.inconsistent_group_protocol),
        ({"type": "connect"}, ErrorCode.inconsistent_group_protocol),
    ],
)
def test_a_sync_is_checked(ask: dict[str, Any], code: ErrorCode) -> None:
    scene, _, reply = mixed()
    assert code_of(scene.start_sync, reply, **ask) is code


def test_a_sync_after_the_next_share_out_is_told_to_join_again() -> None:
    scene, _, reply = mixed()
    Client(scene, "b").beat()
    assert code_of(scene.start_sync, reply) is ErrorCode.rebalance_in_progress


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        ({"member_id": "a"}, ErrorCode.unknown_member_id),
        ({"member_id": "nobody"}, ErrorCode.unknown_member_id),
        ({"generation": 7}, ErrorCode.illegal_generation),
    ],
)
def test_a_heartbeat_is_checked(ask: dict[str, Any], code: ErrorCode) -> None:
    scene, _, reply = mixed()
    assert scene.heartbeat(reply, **ask) is code


@pytest.mark.parametrize(
    "ask",
    [
        {"type": "connect"},
        {"protocols": ()},
        {"protocols": protocols("sticky")},
        {"protocols": (Protocol("range", b"garbage"),)},
    ],
)
def test_who_could_not_share_with_the_others_is_refused(ask: dict[str, Any]) -> None:
    scene, _, _ = mixed()
    code = code_of(joined, scene, "d", **ask)
    assert code is ErrorCode.inconsistent_group_protocol


def test_a_full_group_takes_no_classic_member_either() -> None:
    scene, _, _ = mixed()
    scene.limits = scene.limits.__class__(consumer_max_size=2)
    assert code_of(joined, scene, "d") is ErrorCode.group_max_size_reached
    assert joined(scene, "c").error is ErrorCode.none


def test_one_that_is_silent_is_out() -> None:
    scene, _, _ = mixed()
    scene.pass_ms(9_999)
    assert "c" in scene.it.members
    scene.pass_ms(1)
    assert "c" not in scene.it.members


def test_one_that_does_not_join_again_in_time_is_out() -> None:
    scene, a, reply = mixed()
    scene.topics(t=6)
    for _ in range(7):
        a.step()
        assert "c" in scene.it.members
        scene.heartbeat(reply)
        scene.pass_ms(9_000)
    assert "c" not in scene.it.members


def test_one_that_joins_and_does_not_sync_in_time_is_out() -> None:
    scene, a, _ = mixed()
    joined(scene, session_ms=1_000_000)
    for _ in range(2):
        assert "c" in scene.it.members
        a.step()
        scene.pass_ms(30_000)
    assert "c" not in scene.it.members


def test_leaving_frees_what_it_held() -> None:
    scene, a, _ = mixed()
    codes = scene.leave(MemberIdentity("c"), MemberIdentity("nobody"), MemberIdentity("c", "i"))
    unknown = ErrorCode.unknown_member_id
    assert codes == [ErrorCode.none, unknown, unknown]
    settle(a)
    assert indexes(a.held) == [0, 1, 2, 3]


def test_members_of_either_protocol_can_be_sent_away() -> None:
    scene, _, _ = mixed()
    assert scene.leave(MemberIdentity("a")) == [ErrorCode.none]
    assert "a" not in scene.it.members
    assert "c" in scene.it.members


def test_a_static_classic_member_is_replaced_and_the_old_one_fenced() -> None:
    scene, _, _ = mixed()
    first = joined(scene, "", instance="i")
    second = joined(scene, "", instance="i")
    assert first.member_id != second.member_id
    assert scene.it.static == {"i": second.member_id}
    fenced = ErrorCode.fenced_instance_id
    assert scene.heartbeat(first, instance="i") is fenced
    assert code_of(joined, scene, first.member_id, instance="i") is fenced
    assert code_of(joined, scene, "x", instance="new") is ErrorCode.unknown_member_id
    assert scene.leave(MemberIdentity("", "i")) == [ErrorCode.none]


def test_a_join_that_cannot_be_written_is_answered_with_the_reason() -> None:
    scene, _, _ = mixed()
    scene.refuse = ErrorCode.coordinator_not_available
    reply = joined(scene, "d")
    assert reply.error is ErrorCode.coordinator_not_available
    assert "d" not in scene.it.members
