"""One group: votes, leader, and who is believed to be a member."""

from __future__ import annotations

import pytest

from ottla.coordinator.group.classic.group import ClassicGroup
from ottla.coordinator.group.classic.member import ClassicMember, Protocol
from ottla.model.errors import ErrorCode
from tests.coordinator.group.scene import RANGE, code_of


def member(name: str, *protocols: str, instance: str | None = None) -> ClassicMember:
    known = tuple(Protocol(protocol, protocol.encode()) for protocol in protocols or ("range",))
    return ClassicMember(name, instance, "c", "/h", 1, 1, known)


def group(*members: ClassicMember) -> ClassicGroup:
    made = ClassicGroup("g")
    for one in members:
        made.add(one, "consumer")
    return made


@pytest.mark.spec("GRP-19")
def test_a_protocol_has_a_vote_of_each_member_that_knows_it() -> None:
    made = group(member("a", "range", "roundrobin"), member("b", "range"))
    stranger = member("c", "roundrobin", "sticky")
    assert not made.supports("consumer", stranger.protocols), "nothing has the votes of all three"
    made.add(stranger, "consumer")
    assert made._votes == {"range": 2, "roundrobin": 2, "sticky": 1}
    made.remove("a")
    assert made._votes == {"range": 1, "roundrobin": 1, "sticky": 1}
    made.remove("c")
    assert made._votes == {"range": 1}


@pytest.mark.spec("GRP-16")
def test_who_shares_no_protocol_with_all_others_cannot_belong() -> None:
    made = group(member("a", "range", "roundrobin"), member("b", "range"))
    assert not made.supports("consumer", member("c", "roundrobin", "sticky").protocols)
    assert made.supports("consumer", member("c", "sticky", "range").protocols)
    assert not made.supports("connect", member("c", "range").protocols)
    assert not made.supports("consumer", ())
    assert not ClassicGroup("new").supports("", (RANGE,))


@pytest.mark.spec("GRP-20")
def test_the_protocol_most_would_take_first_is_chosen_among_those_all_know() -> None:
    made = group(
        member("a", "x", "sticky", "range"),
        member("b", "range", "sticky"),
        member("c", "sticky", "range"),
    )
    assert made.choose_protocol() == "sticky"
    with pytest.raises(AssertionError):
        ClassicGroup("nobody").choose_protocol()


@pytest.mark.spec("GRP-12", "GRP-17", "GRP-18")
def test_the_first_to_join_leads_and_the_next_follows_when_it_goes() -> None:
    made = group(member("a"), member("b"), member("c"))
    assert made.leader == "a"
    made.remove("a")
    assert made.leader == "b"
    made.remove("c")
    made.remove("b")
    assert made.leader is None
    assert made.supports("consumer", member("d", "sticky").protocols), "its votes went with it"


@pytest.mark.spec("GRP-16")
def test_the_first_member_fixes_the_type_of_the_protocol() -> None:
    made = ClassicGroup("g")
    made.add(member("worker"), "connect")
    assert made.protocol_type == "connect"
    assert not made.is_consumer_group


@pytest.mark.spec("GRP-48", "GRP-30")
def test_a_name_belongs_to_one_member_and_a_stranger_is_fenced() -> None:
    made = group(member("a-1", instance="a"), member("b"))
    assert made.require_member("a-1", "a").id == "a-1"
    assert code_of(made.require_member, "a-0", "a") is ErrorCode.fenced_instance_id
    assert code_of(made.require_member, "a-1", "other") is ErrorCode.unknown_member_id
    assert code_of(made.require_member, "nobody", None) is ErrorCode.unknown_member_id
    made.unsynced = {"a-1"}
    made.rename("a", "a-2")
    assert (made.leader, made.static, made.unsynced) == ("a-2", {"a": "a-2"}, {"a-2"})


def test_a_static_member_that_goes_frees_its_name_and_one_that_comes_back_has_another_id() -> None:
    made = group(member("a", instance="one"), member("b", instance="two"), member("c"))
    made.remove("c")
    assert made.static == {"one": "a", "two": "b"}
    made.remove("b")
    assert made.static == {"one": "a"}
    assert made.rename("one", "a2").id == "a2"
    assert (made.static, list(made.members)) == ({"one": "a2"}, ["a2"])


def test_changed_protocols_change_the_votes() -> None:
    one = member("a", "range")
    made = group(one)
    made.change_protocols(one, (Protocol("sticky", b""),))
    assert made.choose_protocol() == "sticky"


def test_what_members_read_is_unknown_when_one_of_them_cannot_be_understood() -> None:
    made = group(member("a"))
    made.protocol = "range"
    made.note_subscriptions()
    assert made.subscribed is None
    made.change_protocols(made.members["a"], (RANGE,))
    made.note_subscriptions()
    assert made.subscribed == {"t"}


def test_only_the_leader_is_told_who_the_members_are() -> None:
    both = group(member("a", "range"), member("b", "range"))
    both.protocol = "range"
    replies = [
        both.join_reply(one, with_members=one.id == both.leader) for one in both.members.values()
    ]
    assert [len(reply.members) for reply in replies] == [2, 0]


def test_nobody_waits_for_the_sync_of_a_member_that_has_gone() -> None:
    both = group(member("a", "range"), member("b", "range"))
    both.unsynced |= {"a", "b"}
    both.remove("b")
    assert both.unsynced == {"a"}
