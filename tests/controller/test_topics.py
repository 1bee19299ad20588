"""New topics and new partitions."""

from __future__ import annotations

import pytest

from ottla.controller.events import NewTopic, TopicCreationRequested
from ottla.controller.machine import on_event
from ottla.controller.topics import Created
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import BrokerId
from tests.controller.transcript import Actor, play


@pytest.mark.spec("CTL-48", "CTL-49", "CTL-60", "CTL-64")
def test_topics_are_created_whole_or_refused_with_the_right_code() -> None:
    play("first_start")


@pytest.mark.spec("CTL-48", "CTL-49")
def test_topics_that_others_wrote_come_up_and_vanished_ones_are_forgotten() -> None:
    play("found_topics")


@pytest.mark.spec("CTL-66", "CTL-33")
def test_a_topic_that_allows_it_takes_a_leader_from_outside_the_isr() -> None:
    play("unclean_by_setting")


def refusal(**asked: object) -> ErrorCode:
    actor = Actor()
    actor.run("elected 1 1 2")
    actor.run("create there")
    new = NewTopic(**{"name": "t", **asked})  # type: ignore[arg-type]
    (reply,) = on_event(actor.state, TopicCreationRequested(1, (new,))).replies
    outcome = reply.answer[asked.get("name", "t")]  # type: ignore[index]
    if isinstance(outcome, Created):
        return ErrorCode.none
    assert isinstance(outcome, KafkaError)
    return outcome.code


ONE, TWO = BrokerId(1), BrokerId(2)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({}, ErrorCode.none),
        ({"name": ""}, ErrorCode.invalid_topic_exception),
        ({"name": "there"}, ErrorCode.topic_already_exists),
        ({"partition_count": 0}, ErrorCode.invalid_partitions),
        ({"partition_count": -2}, ErrorCode.invalid_partitions),
        ({"replication_factor": 0}, ErrorCode.invalid_replication_factor),
        ({"replication_factor": 3}, ErrorCode.invalid_replication_factor),
        ({"partition_count": 1_000_000}, ErrorCode.policy_violation),
        ({"partition_count": 10_000}, ErrorCode.none),
        ({"assignment": {0: (ONE, ONE)}}, ErrorCode.invalid_replica_assignment),
        ({"assignment": {1: (ONE,)}}, ErrorCode.invalid_replica_assignment),
        ({"assignment": {0: ()}}, ErrorCode.invalid_replica_assignment),
        ({"assignment": {0: (BrokerId(9),)}}, ErrorCode.invalid_replica_assignment),
        ({"assignment": {0: (ONE,), 1: (ONE, TWO)}}, ErrorCode.invalid_replica_assignment),
        ({"assignment": {0: (ONE,)}, "partition_count": 1}, ErrorCode.invalid_request),
        ({"assignment": {0: (ONE,)}, "replication_factor": 1}, ErrorCode.invalid_request),
    ],
)
def test_what_cannot_be_created_is_refused_with_kafkas_code(
    asked: dict[str, object], code: ErrorCode
) -> None:
    assert refusal(**asked) is code


def test_all_topics_of_one_request_share_its_bound() -> None:
    actor = Actor()
    actor.run("elected 1 1")
    wide = tuple(NewTopic(name, 6_000) for name in ("a", "b"))
    (reply,) = on_event(actor.state, TopicCreationRequested(1, wide)).replies
    answer = reply.answer
    assert isinstance(answer, dict)
    assert isinstance(answer["a"], Created)
    assert answer["b"].code is ErrorCode.policy_violation
