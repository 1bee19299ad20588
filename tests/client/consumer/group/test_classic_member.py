from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.client.consumer.assignors.assignor import Protocols, Subscription
from ottla.client.consumer.assignors.choice import assignors
from ottla.client.consumer.group.classic_member import (
    ClassicMember,
    ClassicTerms,
    GroupMetadata,
    MemberPhase,
)
from ottla.client.consumer.group.error_reactions import ErrorReaction
from ottla.client.consumer.group.subscription_codec import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicPartition

ONE, TWO = TopicPartition("t", 0), TopicPartition("t", 1)


def member(*strategies: str, **terms: Any) -> ClassicMember:
    return ClassicMember(ClassicTerms(group_id="g", **terms), assignors(strategies or ("range",)))


def join_reply(code: ErrorCode = ErrorCode.none, **fields: Any) -> Any:
    usual = {
        "error_code": code,
        "generation_id": 1,
        "protocol_name": "range",
        "leader": "me",
        "skip_assignment": False,
        "member_id": "me",
        "members": (),
    }
    return SimpleNamespace(**{**usual, **fields})


def sync_reply(*share: TopicPartition, code: ErrorCode = ErrorCode.none) -> Any:
    return SimpleNamespace(error_code=code, assignment=encode_assignment(share))


def in_group(one: ClassicMember, generation: int = 1) -> ClassicMember:
    one.join({"t"}, ())
    one.on_joined(join_reply(leader="other", generation_id=generation))
    one.on_synced(sync_reply(ONE))
    return one


@pytest.mark.spec("CON-20", "CON-29")
def test_a_member_tells_its_topics_what_it_owns_and_its_terms() -> None:
    one = member("range", "cooperative-sticky", rack="eu", session_timeout_ms=9)
    fields = one.join({"b", "a"}, (ONE,), "why")
    assert [each["name"] for each in fields["protocols"]] == ["range", "cooperative-sticky"]
    told = decode_subscription(fields["protocols"][0]["metadata"])
    assert (told.topics, told.owned, told.rack) == (("a", "b"), (ONE,), "eu")
    assert (fields["group_id"], fields["member_id"], fields["session_timeout"]) == ("g", "", 9)
    assert fields["reason"] == "why"
    assert one.phase is MemberPhase.JOINING


@pytest.mark.spec("CON-21")
def test_the_leader_deals_out_for_all_and_everybody_gets_their_part() -> None:
    one = member()
    one.join({"t"}, ())
    others = {"me": ("t",), "other": ("t", "u")}
    members = [
        SimpleNamespace(
            member_id=name,
            group_instance_id=None,
            metadata=encode_subscription(Subscription(topics)),
        )
        for name, topics in others.items()
    ]
    assert one.on_joined(join_reply(members=members)) is ErrorReaction.GO_ON
    assert one.is_leader
    assert one.topics_of_all == {"t", "u"}
    fields = one.sync(one.lead({"t": 2, "u": 1}))
    shares = {
        each["member_id"]: decode_assignment(each["assignment"]) for each in fields["assignments"]
    }
    assert shares == {"me": (ONE,), "other": (TWO, TopicPartition("u", 0))}
    assert one.on_synced(sync_reply(ONE)) == (ErrorReaction.GO_ON, (ONE,))
    assert one.phase is MemberPhase.STABLE


@pytest.mark.spec("CON-21")
def test_whoever_does_not_lead_sends_no_shares() -> None:
    one = member()
    one.join({"t"}, ())
    one.on_joined(join_reply(leader="other"))
    assert not one.is_leader
    assert one.sync({})["assignments"] == []


def test_a_member_whose_subscription_cannot_be_read_gets_nothing_and_stops_nobody() -> None:
    one = member()
    one.join({"t"}, ())
    bad = SimpleNamespace(member_id="bad", group_instance_id=None, metadata=b"\xff")
    me = SimpleNamespace(
        member_id="me",
        group_instance_id=None,
        metadata=encode_subscription(Subscription(("t",))),
    )
    one.on_joined(join_reply(members=[bad, me]))
    assert one.lead({"t": 1}) == {"bad": [], "me": [ONE]}


@pytest.mark.spec("CON-22")
def test_the_assignor_hears_of_its_share() -> None:
    one = member("sticky")
    one.join({"t"}, ())
    one.on_joined(join_reply(protocol_name="sticky", leader="other", generation_id=4))
    one.on_synced(sync_reply(ONE))
    told = decode_subscription(one.join({"t"}, ())["protocols"][0]["metadata"])
    assert told.user_data is not None
    assert told.user_data.endswith((4).to_bytes(4, "big"))


@pytest.mark.spec("CON-28")
def test_a_member_without_an_id_joins_again_with_the_one_it_is_given() -> None:
    one = member()
    one.join({"t"}, ())
    reply = join_reply(ErrorCode.member_id_required, member_id="given")
    assert one.on_joined(reply) is ErrorReaction.JOIN_AGAIN
    assert one.join({"t"}, ())["member_id"] == "given"
    assert not one.lost


@pytest.mark.spec("CON-28")
@pytest.mark.parametrize("code", [ErrorCode.unknown_member_id, ErrorCode.illegal_generation])
def test_a_member_the_group_has_forgotten_loses_everything(code: ErrorCode) -> None:
    one = in_group(member())
    assert one.on_heartbeat(code) is ErrorReaction.JOIN_ANEW
    assert one.lost
    assert one.join({"t"}, ())["member_id"] == ""
    assert one.metadata == GroupMetadata("g")


@pytest.mark.spec("CON-24")
def test_a_rebalance_heard_of_changes_nothing_until_the_next_poll() -> None:
    one = in_group(member(), generation=3)
    assert one.on_heartbeat(ErrorCode.rebalance_in_progress) is ErrorReaction.JOIN_AGAIN
    assert one.phase is MemberPhase.STABLE
    assert one.metadata == GroupMetadata("g", 3, "me")


@pytest.mark.spec("CON-28")
def test_a_sync_in_the_middle_of_the_next_rebalance_keeps_the_id() -> None:
    one = member()
    one.join({"t"}, ())
    one.on_joined(join_reply(leader="other"))
    assert one.on_synced(sync_reply(code=ErrorCode.rebalance_in_progress)) == (
        ErrorReaction.JOIN_AGAIN,
        (),
    )
    assert (one.member_id, one.lost) == ("me", False)


def test_an_assignment_that_does_not_read_is_said_to_the_user() -> None:
    one = member()
    one.join({"t"}, ())
    one.on_joined(join_reply(leader="other"))
    with pytest.raises(KafkaError):
        one.on_synced(SimpleNamespace(error_code=ErrorCode.none, assignment=b"\xff\xff\xff"))
    assert one.phase is MemberPhase.OUT


def test_a_strategy_that_only_others_have_is_named() -> None:
    one = member()
    one.join({"t"}, ())
    one.on_joined(join_reply(protocol_name="theirs"))
    with pytest.raises(KafkaError, match="theirs"):
        one.lead({})


@pytest.mark.spec("CON-51", "CFG-107")
def test_a_member_leaves_by_name_unless_it_is_expected_back() -> None:
    fields = in_group(member()).leave("bye")
    assert fields is not None
    assert [each["member_id"] for each in fields["members"]] == ["me"]
    assert in_group(member(instance_id="static")).leave("bye") is None
    assert member().leave("never joined") is None


def test_a_member_that_leaves_can_no_longer_commit_for_what_it_had() -> None:
    one = in_group(member())
    one.leave("too slow")
    assert one.lost
    assert one.phase is MemberPhase.OUT


def test_eager_unless_every_strategy_is_cooperative() -> None:
    assert member("cooperative-sticky").protocol is Protocols.COOPERATIVE
    assert member("cooperative-sticky").is_cooperative
    assert not member("range", "cooperative-sticky").is_cooperative
