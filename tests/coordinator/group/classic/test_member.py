"""One member: whom it votes for, and that it is answered once."""

from __future__ import annotations

import pytest

from ottla.coordinator.group.classic.member import ClassicMember, JoinReply, Protocol
from ottla.coordinator.group.draft import Draft
from ottla.coordinator.outcome import Answer
from ottla.model.clock import WallMs


def member(*protocols: str) -> ClassicMember:
    return ClassicMember(
        "m", None, "c", "/h", 1, 1, tuple(Protocol(name, b"!") for name in protocols)
    )


@pytest.mark.spec("GRP-20", "GRP-21")
def test_a_member_votes_for_the_first_candidate_of_its_own_list() -> None:
    assert member("range", "sticky").vote(frozenset({"sticky", "range"})) == "range"
    assert member("range", "sticky").vote(frozenset({"sticky"})) == "sticky"
    with pytest.raises(ValueError, match="supports none of"):
        member("range").vote(frozenset({"sticky"}))


@pytest.mark.spec("GRP-13")
def test_nobody_is_answered_twice() -> None:
    replies: list[JoinReply] = []
    one = member("range")
    one_request = one.awaits_join = replies.append
    assert one.waits
    draft = Draft(WallMs(0))
    one.answer_join(JoinReply(), draft)
    one.answer_join(JoinReply(), draft)
    assert draft.effects == [Answer(one_request, JoinReply())]
    assert not one.waits
    assert not replies, "the executor sends it, not the decision"


def test_metadata_is_that_of_the_protocol_asked_for() -> None:
    assert member("range").metadata_for("range") == b"!"
    assert member("range").metadata_for("other") == b""
