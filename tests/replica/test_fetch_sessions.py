"""Incremental fetch: what is remembered, what is said again, and who must go."""

from __future__ import annotations

from random import Random
from uuid import UUID

import pytest

from ottla.model.clock import MonoMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_TOPIC_ID, BrokerId, TopicPartition
from ottla.protocol.hot import FetchedPartition
from ottla.replica.fetch.session_partition import PARTITION_BYTES
from ottla.replica.fetch_sessions import (
    EVICT_IDLE_MS,
    MAX_INT32,
    FetchSessionRequest,
    FetchSessions,
)
from ottla.replica.partition_fetch import UNKNOWN_TOPIC, PartitionFetch, PartitionFetchResult


def want(partition: int, offset: int = 0, topic_id: UUID = NO_TOPIC_ID) -> PartitionFetch:
    wanted = PartitionFetch(TopicPartition("t", partition), topic_id)
    wanted.offset = offset
    return wanted


def got(
    wanted: PartitionFetch, size: int = 0, code: ErrorCode = ErrorCode.none, high: int = 5
) -> PartitionFetchResult:
    return PartitionFetchResult(
        wanted, FetchedPartition(wanted.key.partition, code, high, high, 0), size
    )


def ask(
    session_id: int,
    epoch: int,
    wanted: list[PartitionFetch],
    forgotten: list[PartitionFetch] | None = None,
    *,
    by_id: bool = False,
    privileged: bool = False,
) -> FetchSessionRequest:
    replica_id = BrokerId(1 if privileged else -1)
    return FetchSessionRequest(session_id, epoch, wanted, forgotten or [], by_id, replica_id)


def sessions(slots: int = 10) -> FetchSessions:
    return FetchSessions(slots, Random(1))


def opened(
    cache: FetchSessions, *wanted: PartitionFetch, now_ms: int = 0, privileged: bool = False
) -> int:
    """A session in which everything wanted has been answered once."""
    fetching = cache.begin(ask(0, 0, list(wanted), privileged=privileged), MonoMs(now_ms))
    session_id, shown = fetching.finish([got(one) for one in wanted], MonoMs(now_ms))
    assert len(shown) == len(wanted), "the first reply is full"
    return session_id


def refusal(cache: FetchSessions, asked: FetchSessionRequest) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        cache.begin(asked, MonoMs(0))
    return caught.value.code


@pytest.mark.spec("WIRE-22", "WIRE-23", "WIRE-24")
def test_an_incremental_fetch_reads_all_partitions_though_it_lists_none() -> None:
    cache = sessions()
    session_id = opened(cache, want(0), want(1))
    assert session_id > 0
    again = cache.begin(ask(session_id, 1, []), MonoMs(0))
    assert [one.key.partition for one in again.requests] == [0, 1]


@pytest.mark.spec("WIRE-24", "ERR-11")
def test_what_changed_replaces_what_was_remembered_and_forgotten_ones_go() -> None:
    cache = sessions()
    session_id = opened(cache, want(0), want(1))
    again = cache.begin(ask(session_id, 1, [want(0, 9), want(2)], [want(1)]), MonoMs(0))
    assert [(one.key.partition, one.offset) for one in again.requests] == [(0, 9), (2, 0)]


@pytest.mark.spec("WIRE-27")
@pytest.mark.parametrize(
    ("reply", "is_said"),
    [
        ({"size": 0}, False),
        ({"size": 10}, True),
        ({"code": ErrorCode.not_leader_or_follower}, True),
        ({"high": 6}, True),
    ],
)
def test_only_news_is_said_again(reply: dict[str, int], is_said: bool) -> None:
    cache = sessions()
    session_id = opened(cache, want(0))
    again = cache.begin(ask(session_id, 1, []), MonoMs(0))
    _, shown = again.finish([got(again.requests[0], **reply)], 0)  # type: ignore[arg-type]
    assert bool(shown) is is_said


def test_an_error_is_said_until_it_is_gone_and_its_end_is_said_too() -> None:
    cache = sessions()
    session_id = opened(cache, want(0))
    for epoch, code, is_said in [
        (1, ErrorCode.not_leader_or_follower, True),
        (2, ErrorCode.not_leader_or_follower, True),
        (3, ErrorCode.none, True),
        (4, ErrorCode.none, False),
    ]:
        again = cache.begin(ask(session_id, epoch, []), MonoMs(0))
        _, shown = again.finish([got(again.requests[0], code=code)], MonoMs(0))
        assert bool(shown) is is_said, epoch


def test_a_partition_that_gave_data_is_served_last_next_time() -> None:
    cache = sessions()
    session_id = opened(cache, want(0), want(1))
    again = cache.begin(ask(session_id, 1, []), MonoMs(0))
    again.finish([got(again.requests[0], size=9), got(again.requests[1])], MonoMs(0))
    after = cache.begin(ask(session_id, 2, []), MonoMs(0))
    assert [one.key.partition for one in after.requests] == [1, 0]


@pytest.mark.spec("WIRE-26")
def test_an_unknown_session_and_a_wrong_epoch_are_refused() -> None:
    cache = sessions()
    assert refusal(cache, ask(77, 1, [])) is ErrorCode.fetch_session_id_not_found
    session_id = opened(cache, want(0))
    assert refusal(cache, ask(session_id, 2, [])) is ErrorCode.invalid_fetch_session_epoch


def test_names_and_ids_do_not_mix_in_one_session() -> None:
    cache = sessions()
    session_id = opened(cache, want(0))
    mixed = ask(session_id, 1, [], by_id=True)
    assert refusal(cache, mixed) is ErrorCode.fetch_session_topic_id_error


@pytest.mark.spec("WIRE-25")
def test_the_epoch_wraps_to_one() -> None:
    cache = sessions()
    session_id = opened(cache, want(0))
    cache._sessions[session_id].epoch = MAX_INT32
    cache.begin(ask(session_id, MAX_INT32, []), MonoMs(0))
    cache.begin(ask(session_id, 1, []), MonoMs(0))


@pytest.mark.spec("WIRE-25")
def test_epoch_minus_one_ends_the_session_and_fetches_in_full() -> None:
    cache = sessions()
    session_id = opened(cache, want(0))
    final = cache.begin(ask(session_id, -1, [want(3)]), MonoMs(0))
    assert final.finish([got(final.requests[0])], MonoMs(0))[0] == 0
    assert len(cache) == 0


def test_a_session_without_partitions_ends() -> None:
    cache = sessions()
    session_id = opened(cache, want(0))
    empty = cache.begin(ask(session_id, 1, [], [want(0)]), MonoMs(0))
    assert empty.requests == []
    assert len(cache) == 0


@pytest.mark.spec("WIRE-26")
def test_the_cache_is_bounded_and_only_idle_sessions_give_way_to_a_consumer() -> None:
    cache = sessions(slots=1)
    first = opened(cache, want(0), now_ms=0)
    assert opened(cache, want(1), now_ms=EVICT_IDLE_MS) == 0, "no room: fetch in full"
    second = opened(cache, want(1), now_ms=EVICT_IDLE_MS + 1)
    assert second not in (0, first)
    assert cache.evictions == 1


@pytest.mark.spec("WIRE-28")
def test_a_follower_may_take_a_consumers_place_but_not_another_followers() -> None:
    cache = sessions(slots=1)
    opened(cache, want(0))
    assert opened(cache, want(1), privileged=True) != 0
    assert opened(cache, want(2), privileged=True) == 0


def test_the_memory_of_sessions_is_bounded_and_without_any_a_fetch_is_in_full() -> None:
    cache = sessions()
    cache.max_bytes = 10 * (PARTITION_BYTES + 1)
    first = opened(cache, *(want(index) for index in range(9)))
    assert opened(cache, want(0), want(1)) == 0, "no room: fetch in full"
    assert cache.memory_bytes == 9 * (PARTITION_BYTES + 1)
    cache.begin(ask(first, 1, [want(9)]), MonoMs(0))
    code = refusal(cache, ask(first, 2, [want(10), want(11)]))
    assert code is ErrorCode.fetch_session_id_not_found, "one that grows too large ends"
    assert (len(cache), cache.memory_bytes) == (0, 0)
    assert opened(cache, want(0), want(1)) != 0


def test_sessions_that_end_or_give_way_give_their_memory_back() -> None:
    cache = sessions(slots=2)
    first = opened(cache, want(0), want(1))
    second = opened(cache, want(2))
    cache.begin(ask(first, 1, [], [want(0)]), MonoMs(0))
    assert cache.memory_bytes == 2 * (PARTITION_BYTES + 1)
    opened(cache, want(3), now_ms=EVICT_IDLE_MS + 1)
    cache.begin(ask(second, -1, []), MonoMs(0))
    cache.begin(ask(first, -1, []), MonoMs(0))
    assert cache.memory_bytes == len(cache) * (PARTITION_BYTES + 1)


def test_a_topic_made_anew_under_its_old_name_is_another_topic() -> None:
    cache = sessions()
    old, new = UUID(int=1), UUID(int=2)
    fetching = cache.begin(ask(0, 0, [want(0, topic_id=old)], by_id=True), MonoMs(0))
    session_id, _ = fetching.finish([got(fetching.requests[0])], MonoMs(0))
    again = cache.begin(ask(session_id, 1, [want(0, topic_id=new)], by_id=True), MonoMs(0))
    assert [one.topic_id for one in again.requests] == [old, new]


def test_a_topic_that_had_no_name_here_can_be_forgotten_by_its_id() -> None:
    cache = sessions()
    topic_id = UUID(int=3)
    unnamed = PartitionFetch(TopicPartition(UNKNOWN_TOPIC, 0), topic_id)
    fetching = cache.begin(ask(0, 0, [unnamed, want(1, topic_id=topic_id)], by_id=True), MonoMs(0))
    session_id, _ = fetching.finish([got(unnamed)], MonoMs(0))
    again = cache.begin(ask(session_id, 1, [], [want(0, topic_id=topic_id)], by_id=True), MonoMs(0))
    assert [one.key.partition for one in again.requests] == [1]
