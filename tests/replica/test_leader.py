"""What a leader concludes from its followers' fetches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.clock import MonoMs
from ottla.model.ids import BrokerId, LeaderEpoch
from ottla.replica.leader import LeaderAssignment, Leadership

ME, SECOND, THIRD = BrokerId(0), BrokerId(1), BrokerId(2)
LAG_MAX_MS = 10_000


def leadership(
    *followers: BrokerId, isr: tuple[BrokerId, ...] | None = None, now_ms: int = 0
) -> Leadership:
    replicas = (ME, *followers)
    assigned = LeaderAssignment(
        ME, LeaderEpoch(3), replicas if isr is None else isr, replicas, version=7
    )
    return Leadership(assigned, broker_id=ME, epoch_start=0, now_ms=MonoMs(now_ms))


def watermark(state: Leadership, end: int, *, now_ms: int = 0, min_isr: int = 1) -> int | None:
    return state.high_watermark(end, min_isr=min_isr, now_ms=MonoMs(now_ms), lag_max_ms=LAG_MAX_MS)


def asked(state: Leadership, who: BrokerId, offset: int, *, end: int, now_ms: int = 0) -> None:
    state.followers[who].on_fetch(offset, 0, leader_end=end, now_ms=MonoMs(now_ms))


@pytest.mark.spec("REP-03")
def test_alone_the_high_watermark_is_the_log_end() -> None:
    assert watermark(leadership(), 10) == 10


@pytest.mark.spec("REP-13", "REP-14", "REP-15", "REP-16", "REP-10")
def test_the_high_watermark_moves_one_fetch_after_the_data() -> None:
    state = leadership(SECOND)
    asked(state, SECOND, 0, end=1)
    assert watermark(state, 1) == 0
    asked(state, SECOND, 1, end=1)
    assert watermark(state, 1) == 1


@pytest.mark.spec("REP-18")
def test_the_slowest_in_sync_follower_holds_the_high_watermark() -> None:
    state = leadership(SECOND, THIRD)
    asked(state, SECOND, 3, end=5)
    asked(state, THIRD, 4, end=5)
    assert watermark(state, 5) == 3


@pytest.mark.spec("REP-19")
def test_a_follower_that_keeps_up_counts_before_it_is_in_sync() -> None:
    state = leadership(SECOND, isr=(ME,))
    asked(state, SECOND, 5, end=5, now_ms=100)
    assert watermark(state, 8, now_ms=200) == 5
    assert watermark(state, 8, now_ms=200 + LAG_MAX_MS) == 8


def test_a_proposed_member_counts_until_the_proposal_is_settled() -> None:
    state = leadership(SECOND, isr=(ME,), now_ms=0)
    asked(state, SECOND, 5, end=6)
    state.proposed = frozenset({ME, SECOND})
    assert watermark(state, 9, now_ms=LAG_MAX_MS * 2) == 5


def test_the_high_watermark_stays_while_too_few_are_in_sync() -> None:
    state = leadership(SECOND, isr=(ME,))
    assert watermark(state, 9, min_isr=2) is None
    assert watermark(leadership(), 9, min_isr=2) == 9, "a single copy is all there can be"


@pytest.mark.spec("REP-26", "REP-28")
def test_a_follower_behind_for_too_long_is_to_leave() -> None:
    state = leadership(SECOND, THIRD, now_ms=1_000)
    asked(state, SECOND, 5, end=5, now_ms=2_000)
    at = 2_000 + LAG_MAX_MS
    kept = state.isr_without_lagging(leader_end=6, now_ms=MonoMs(at), lag_max_ms=LAG_MAX_MS)
    assert kept == frozenset({ME, SECOND})


@pytest.mark.spec("REP-26", "REP-67")
def test_a_new_leader_gives_its_in_sync_followers_time_to_find_it() -> None:
    state = leadership(SECOND, THIRD, isr=(ME, SECOND), now_ms=1_000)
    limit = {"leader_end": 6, "lag_max_ms": LAG_MAX_MS}
    assert state.isr_without_lagging(now_ms=MonoMs(1_000 + LAG_MAX_MS), **limit) is None
    assert state.isr_without_lagging(now_ms=MonoMs(1_001 + LAG_MAX_MS), **limit) == frozenset({ME})
    asked(state, SECOND, 6, end=6, now_ms=1_000)
    assert watermark(state, 6, now_ms=1_000) == 6, "who was not in sync is not waited for"


def test_a_follower_at_the_log_end_stays_however_long_it_was_silent() -> None:
    state = leadership(SECOND)
    asked(state, SECOND, 5, end=5)
    assert (
        state.isr_without_lagging(
            leader_end=5, now_ms=MonoMs(LAG_MAX_MS * 9), lag_max_ms=LAG_MAX_MS
        )
        is None
    )


@pytest.mark.spec("REP-26")
def test_reaching_where_the_leader_was_at_the_last_fetch_counts_as_caught_up() -> None:
    state = leadership(SECOND, now_ms=0)
    asked(state, SECOND, 0, end=10, now_ms=9_000)
    asked(state, SECOND, 10, end=20, now_ms=12_000)
    assert (
        state.isr_without_lagging(leader_end=20, now_ms=MonoMs(18_000), lag_max_ms=LAG_MAX_MS)
        is None
    )


@pytest.mark.spec("REP-33", "OPEN-01")
def test_a_follower_joins_at_the_high_watermark_not_at_the_log_end() -> None:
    state = leadership(SECOND, isr=(ME,))
    asked(state, SECOND, 4, end=9)
    assert state.isr_with(SECOND, high_watermark=5, now_ms=MonoMs(0)) is None
    asked(state, SECOND, 5, end=9)
    assert state.isr_with(SECOND, high_watermark=5, now_ms=MonoMs(0)) == frozenset({ME, SECOND})


@pytest.mark.spec("REP-33")
def test_a_follower_must_reach_this_epoch_before_it_joins() -> None:
    assigned = LeaderAssignment(ME, LeaderEpoch(3), (ME,), (ME, SECOND), version=0)
    state = Leadership(assigned, broker_id=ME, epoch_start=7, now_ms=MonoMs(0))
    asked(state, SECOND, 6, end=9)
    assert state.isr_with(SECOND, high_watermark=5, now_ms=MonoMs(0)) is None
    asked(state, SECOND, 7, end=9)
    assert state.isr_with(SECOND, high_watermark=5, now_ms=MonoMs(0)) == frozenset({ME, SECOND})


def test_one_proposal_is_in_flight_at_a_time() -> None:
    state = leadership(SECOND, THIRD, isr=(ME, THIRD))
    state.proposed = frozenset({ME})
    asked(state, SECOND, 5, end=5)
    assert state.isr_with(SECOND, high_watermark=5, now_ms=MonoMs(0)) is None
    assert (
        state.isr_without_lagging(
            leader_end=9, now_ms=MonoMs(LAG_MAX_MS * 9), lag_max_ms=LAG_MAX_MS
        )
        is None
    )


@pytest.mark.spec("REP-04")
def test_the_low_watermark_is_the_smallest_start_among_the_living() -> None:
    state = leadership(SECOND, THIRD)
    state.followers[SECOND].log_start = 3
    state.followers[THIRD].log_start = 1
    assert state.low_watermark(5, [ME, SECOND, THIRD]) == 1
    assert state.low_watermark(5, [ME, SECOND]) == 3


@given(
    fetches=st.lists(
        st.tuples(st.sampled_from([SECOND, THIRD]), st.integers(0, 20), st.integers(0, 30_000))
    ),
    end=st.integers(0, 20),
)
def test_nothing_is_committed_that_an_in_sync_member_lacks(
    fetches: list[tuple[BrokerId, int, int]], end: int
) -> None:
    state = leadership(SECOND, THIRD)
    now_ms = 0
    for who, offset, later in fetches:
        now_ms += later
        asked(state, who, min(offset, end), end=end, now_ms=now_ms)
    committed = watermark(state, end, now_ms=now_ms)
    assert committed is not None
    assert all(committed <= state.followers[member].end for member in (SECOND, THIRD))
    assert committed <= end


def test_a_consumer_reads_from_the_follower_of_its_rack_that_has_most() -> None:
    state = leadership(SECOND, THIRD)
    racks = {ME: "a", SECOND: "b", THIRD: "b"}
    asked(state, SECOND, 5, end=9)
    asked(state, THIRD, 7, end=9)
    assert state.replica_in_rack("b", racks, 4) == THIRD
    assert state.replica_in_rack("b", racks, 8) is None, "nobody there has it yet"
    assert state.replica_in_rack("c", racks, 4) is None
    assert state.replica_in_rack("b", {ME: "a", SECOND: "b"}, 4) == SECOND, "the other is gone"
    state.on_committed(frozenset({ME}), 8)
    assert state.replica_in_rack("b", racks, 4) is None, "not in sync"
