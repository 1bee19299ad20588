from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.consumer.fetch.session import MAX_EPOCH, FetchPosition, FetchSession
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition

ID = UUID(int=7)
ONE, TWO = TopicPartition("t", 0), TopicPartition("t", 1)


def want(offset: int, topic_id: UUID = ID) -> FetchPosition:
    return FetchPosition(topic_id, offset, 0, 1_000)


def asked(fields: object) -> dict[int, int]:
    """Partition and offset of everything that a request asks about."""
    assert isinstance(fields, dict)
    return {
        each["partition"]: each["fetch_offset"]
        for topic in fields["topics"]
        for each in topic["partitions"]
    }


def forgotten(fields: object) -> list[int]:
    assert isinstance(fields, dict)
    return [index for topic in fields["forgotten_topics_data"] for index in topic["partitions"]]


def test_a_session_begins_with_everything_and_goes_on_with_what_changed() -> None:
    session = FetchSession()
    first = session.next_request({ONE: want(0), TWO: want(0)})
    assert (first["session_id"], first["session_epoch"]) == (0, 0)
    assert asked(first) == {0: 0, 1: 0}
    session.on_response(ErrorCode.none, 42)
    second = session.next_request({ONE: want(5), TWO: want(0)})
    assert (second["session_id"], second["session_epoch"]) == (42, 1)
    assert asked(second) == {0: 5}
    session.on_response(ErrorCode.none, 42)
    third = session.next_request({ONE: want(5)})
    assert (asked(third), forgotten(third)) == ({}, [1])
    assert third["session_epoch"] == 2


def test_a_broker_without_room_for_a_session_is_told_everything_each_time() -> None:
    session = FetchSession()
    for _ in range(2):
        fields = session.next_request({ONE: want(0)})
        assert (fields["session_id"], fields["session_epoch"]) == (0, 0)
        assert asked(fields) == {0: 0}
        session.on_response(ErrorCode.none, 0)
    assert session.close_request() is None


@pytest.mark.parametrize(
    ("code", "session_id"),
    [(ErrorCode.fetch_session_id_not_found, 0), (ErrorCode.unknown_server_error, 42)],
)
def test_after_a_refusal_everything_is_said_again(code: ErrorCode, session_id: int) -> None:
    session = FetchSession()
    session.next_request({ONE: want(0)})
    session.on_response(ErrorCode.none, 42)
    session.next_request({ONE: want(3)})
    session.on_response(code, 0)
    fields = session.next_request({ONE: want(3)})
    assert (fields["session_id"], fields["session_epoch"]) == (session_id, 0)
    assert asked(fields) == {0: 3}


def test_a_topic_made_anew_replaces_the_one_of_before() -> None:
    session = FetchSession()
    session.next_request({ONE: want(5)})
    session.on_response(ErrorCode.none, 42)
    fields = session.next_request({ONE: want(0, UUID(int=8))})
    assert (asked(fields), forgotten(fields)) == ({0: 0}, [0])


def test_epochs_count_round() -> None:
    session = FetchSession()
    session.next_request({ONE: want(0)})
    session.on_response(ErrorCode.none, 42)
    session.epoch = MAX_EPOCH
    session.on_response(ErrorCode.none, 42)
    assert session.epoch == 1


def test_a_session_is_closed_by_its_id() -> None:
    session = FetchSession()
    session.next_request({ONE: want(0)})
    session.on_response(ErrorCode.none, 42)
    fields = session.close_request()
    assert fields is not None
    assert (fields["session_id"], fields["session_epoch"]) == (42, -1)


WANTS = st.dictionaries(
    st.sampled_from([TopicPartition(t, p) for t in "ab" for p in range(3)]),
    st.integers(0, 3).map(want),
)


@given(st.lists(st.tuples(WANTS, st.booleans()), max_size=8))
def test_the_broker_always_ends_up_knowing_what_is_wanted(
    rounds: list[tuple[dict[TopicPartition, FetchPosition], bool]],
) -> None:
    """A broker that does as it is told; now and then a request gets lost."""
    session = FetchSession()
    partition_counts: dict[tuple[str, int], int] = {}
    for wanted, lost in rounds:
        fields = session.next_request(wanted)
        if lost:
            session.reset()
            continue
        if fields["session_epoch"] == 0:
            partition_counts = {}
        for topic in fields["forgotten_topics_data"]:
            for index in topic["partitions"]:
                partition_counts.pop((topic["topic"], index), None)
        for topic in fields["topics"]:
            for each in topic["partitions"]:
                partition_counts[topic["topic"], each["partition"]] = each["fetch_offset"]
        session.on_response(ErrorCode.none, 42)
        assert partition_counts == {tuple(tp): each.offset for tp, each in wanted.items()}
