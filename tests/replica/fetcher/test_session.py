"""The follower's side of an incremental fetch session."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from ottla.model.errors import ErrorCode
from ottla.model.ids import LeaderEpoch, TopicPartition
from ottla.replica.fetcher.session import FetchPosition, FollowerSession

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def at(offset: int, topic: int = 1) -> FetchPosition:
    return FetchPosition(UUID(int=topic), offset, LeaderEpoch(3), LeaderEpoch(4), 0, 100)


def asked(fields: Any) -> dict[int, int]:
    return {
        part["partition"]: part["fetch_offset"]
        for topic in fields["topics"]
        for part in topic["partitions"]
    }


def forgotten(fields: Any) -> list[tuple[int, list[int]]]:
    return [
        (topic["topic_id"].int, topic["partitions"]) for topic in fields["forgotten_topics_data"]
    ]


def opened() -> FollowerSession:
    session = FollowerSession()
    session.set(A, at(1))
    session.set(B, at(1))
    fields = session.next_request()
    assert (fields["session_id"], fields["session_epoch"]) == (0, 0)
    assert asked(fields) == {0: 1, 1: 1}
    session.on_reply(ErrorCode.none, 77)
    return session


@pytest.mark.spec("REP-48")
def test_after_the_first_request_only_changes_are_sent() -> None:
    session = opened()
    assert asked(session.next_request()) == {}
    session.on_reply(ErrorCode.none, 77)
    session.set(A, at(1))
    session.set(B, at(2))
    fields = session.next_request()
    assert (fields["session_id"], fields["session_epoch"]) == (77, 2)
    assert asked(fields) == {1: 2}


def test_a_partition_that_is_left_out_is_forgotten_and_added_again() -> None:
    session = opened()
    session.forget(A)
    fields = session.next_request()
    assert (asked(fields), forgotten(fields)) == ({}, [(1, [0])])
    session.set(A, at(1))
    fields = session.next_request()
    assert (asked(fields), forgotten(fields)) == ({0: 1}, [])


def test_what_is_forgotten_and_added_in_one_go_is_not_forgotten() -> None:
    session = opened()
    session.forget(A)
    session.set(A, at(5))
    fields = session.next_request()
    assert (asked(fields), forgotten(fields)) == ({0: 5}, [])


def test_a_later_topic_of_the_same_name_replaces_the_earlier() -> None:
    session = opened()
    session.set(A, at(0, topic=2))
    fields = session.next_request()
    assert (asked(fields), forgotten(fields)) == ({0: 0}, [(1, [0])])


@pytest.mark.parametrize("lost", [True, False])
def test_a_session_that_is_lost_starts_again_in_full(lost: bool) -> None:
    session = opened()
    session.set(A, at(9))
    session.next_request()
    if lost:
        session.reset()
    else:
        session.on_reply(ErrorCode.fetch_session_id_not_found, 0)
    fields = session.next_request()
    assert fields["session_epoch"] == 0
    assert asked(fields) == {0: 9, 1: 1}


def test_a_leader_without_room_for_a_session_is_asked_in_full_each_time() -> None:
    session = FollowerSession()
    session.set(A, at(1))
    for _ in range(2):
        assert asked(session.next_request()) == {0: 1}
        session.on_reply(ErrorCode.none, 0)
