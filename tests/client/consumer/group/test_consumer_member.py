from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from ottla.client.consumer.group.classic_member import GroupMetadata
from ottla.client.consumer.group.consumer_member import (
    ConsumerProtocolMember,
    ConsumerProtocolTerms,
    by_name,
    by_topic_id,
)
from ottla.client.consumer.group.error_reactions import ErrorReaction
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition

ID = UUID(int=5)


def member(**terms: Any) -> ConsumerProtocolMember:
    return ConsumerProtocolMember(ConsumerProtocolTerms(group_id="g", member_id="me", **terms))


def reply(
    code: ErrorCode = ErrorCode.none, epoch: int = 1, *indexes: int, none: bool = False
) -> Any:
    told = SimpleNamespace(topic_id=ID, partitions=indexes)
    return SimpleNamespace(
        error_code=code,
        member_id=None,
        member_epoch=epoch,
        heartbeat_interval=timedelta(seconds=5),
        assignment=None if none else SimpleNamespace(topic_partitions=(told,) if indexes else ()),
    )


def test_the_first_heartbeat_says_everything() -> None:
    fields = member(rack="eu", assignor="uniform", instance_id="i").heartbeat({"b", "a"}, {})
    assert fields["member_epoch"] == 0
    assert fields["subscribed_topic_names"] == ["a", "b"]
    assert fields["topic_partitions"] == []
    assert (fields["rack_id"], fields["server_assignor"]) == ("eu", "uniform")
    assert fields["rebalance_timeout"] == 300_000


def test_the_next_ones_say_what_changed() -> None:
    one = member(instance_id="i")
    one.heartbeat({"t"}, {})
    assert one.on_heartbeat(reply(ErrorCode.none, 3, 0, 1)) is ErrorReaction.GO_ON
    assert (one.epoch, one.interval_ms) == (3, 5_000)
    assert one.heartbeat({"t"}, {})["topic_partitions"] == []
    quiet = one.heartbeat({"t"}, {})
    assert quiet["member_epoch"] == 3
    assert quiet["instance_id"] == "i", "a static member always says who it is"
    assert quiet["subscribed_topic_names"] is quiet["topic_partitions"] is None
    assert quiet["rebalance_timeout"] == -1
    owning = one.heartbeat({"t"}, {ID: (0, 1)})
    assert owning["topic_partitions"] == [{"topic_id": ID, "partitions": [0, 1]}]
    assert one.heartbeat({"t", "u"}, {ID: (0, 1)})["subscribed_topic_names"] == ["t", "u"]


def test_a_partition_that_was_taken_back_before_it_was_ever_had_is_said_not_to_be_had() -> None:
    """The coordinator gives it to nobody else before it hears so."""
    one = member()
    one.heartbeat({"t"}, {})
    one.on_heartbeat(reply(ErrorCode.none, 1, 0))
    one.heartbeat({"t"}, {ID: (0,)})
    one.on_heartbeat(reply(ErrorCode.none, 2, 0, 1))
    one.heartbeat({"t"}, {ID: (0,)})  # its user does not poll: it takes nothing yet
    one.on_heartbeat(reply(ErrorCode.none, 2, 0))
    said = one.heartbeat({"t"}, {ID: (0,)})["topic_partitions"]
    assert said == [{"topic_id": ID, "partitions": [0]}]
    one.on_heartbeat(reply(ErrorCode.none, 3, none=True))
    assert one.heartbeat({"t"}, {ID: (0,)})["topic_partitions"] is None


def test_what_may_not_have_arrived_is_said_again() -> None:
    one = member()
    one.heartbeat({"t"}, {})
    one.on_heartbeat(reply())
    one.heartbeat({"t"}, {})
    one.on_no_response()
    assert one.heartbeat({"t"}, {})["subscribed_topic_names"] == ["t"]
    one.on_heartbeat(reply(ErrorCode.coordinator_load_in_progress))
    assert one.heartbeat({"t"}, {})["subscribed_topic_names"] == ["t"]


def test_no_assignment_in_a_reply_means_no_change() -> None:
    one = member()
    assert one.target is None
    one.on_heartbeat(reply(ErrorCode.none, 1, 4))
    one.on_heartbeat(reply(ErrorCode.none, 2, none=True))
    assert one.target == {ID: (4,)}
    one.on_heartbeat(reply(ErrorCode.none, 3))
    assert one.target == {}


@pytest.mark.parametrize("code", [ErrorCode.fenced_member_epoch, ErrorCode.unknown_member_id])
def test_a_fenced_member_has_lost_its_partitions_and_joins_anew(code: ErrorCode) -> None:
    one = member()
    one.on_heartbeat(reply(ErrorCode.none, 7, 0))
    assert one.on_heartbeat(reply(code)) is ErrorReaction.JOIN_ANEW
    assert one.lost
    assert not one.is_member
    fields = one.heartbeat({"t"}, {})
    assert (fields["member_epoch"], fields["member_id"]) == (0, "me")
    assert fields["subscribed_topic_names"] == ["t"]


@pytest.mark.spec("CON-51")
@pytest.mark.parametrize(("instance_id", "epoch"), [(None, -1), ("static", -2)])
def test_leaving_is_a_last_heartbeat(instance_id: str | None, epoch: int) -> None:
    one = member(instance_id=instance_id)
    assert one.leave() is None, "it never joined"
    one.on_heartbeat(reply())
    fields = one.leave()
    assert fields is not None
    assert (fields["member_epoch"], fields["instance_id"]) == (epoch, instance_id)
    assert not one.is_member


def test_commits_are_made_in_the_members_epoch() -> None:
    one = member()
    one.on_heartbeat(reply(ErrorCode.none, 9))
    assert one.metadata == GroupMetadata("g", 9, "me")


def test_partitions_go_by_topic_ids_and_back() -> None:
    partitions = [TopicPartition("t", 1), TopicPartition("t", 0)]
    assert by_topic_id(partitions, {"t": ID}) == {ID: (0, 1)}
    assert by_name({ID: (0, 1)}, {ID: "t"}) == (frozenset(partitions), frozenset())
    assert by_name({ID: (0,)}, {})[1] == {ID}
