"""Where replicas go."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.controller.placement import PlacementRandomness, continued_from, place
from ottla.controller.state import BrokerState
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import BrokerEpoch, BrokerId


def brokers(*racks: str | None) -> dict[BrokerId, BrokerState]:
    return {
        BrokerId(id): BrokerState(BrokerId(id), BrokerEpoch(0), (), rack)
        for id, rack in enumerate(racks)
    }


@pytest.mark.spec("REP-76")
def test_without_chance_partition_i_starts_at_broker_i_and_followers_come_next() -> None:
    placed = place(brokers(*[None] * 3), range(3), 2, PlacementRandomness(0, 0))
    assert placed == {0: (0, 1), 1: (1, 2), 2: (2, 0)}


@pytest.mark.spec("REP-76")
def test_each_time_round_followers_are_further_from_their_leader() -> None:
    placed = place(brokers(*[None] * 5), range(10), 3, PlacementRandomness(0, 0))
    assert placed[0] == (0, 1, 2)
    assert placed[5] == (0, 2, 3)


@pytest.mark.spec("REP-76")
def test_partitions_added_later_go_where_they_would_have_gone_at_the_creation() -> None:
    for racks in (["a", "a", "a", "b", "b", "b"], [None] * 6):
        live = brokers(*racks)
        for start in range(6):
            at_once = place(live, range(9), 2, PlacementRandomness(start, start))
            continued = continued_from(live, at_once[0][0])
            assert place(live, range(4, 9), 2, continued) == {
                number: at_once[number] for number in range(4, 9)
            }


@pytest.mark.spec("REP-76")
def test_partitions_are_added_although_the_first_leader_is_gone() -> None:
    live = brokers("a", "b", "a")
    assert place(live, range(1, 3), 2, continued_from(live, BrokerId(9)))


@pytest.mark.spec("REP-76")
def test_racks_alternate_and_a_partition_takes_each_once_before_any_twice() -> None:
    placed = place(brokers("a", "c", "c", "b", "b", "a"), range(7), 3, PlacementRandomness(0, 0))
    assert placed[0] == (0, 3, 1)
    assert placed[1] == (3, 1, 5)
    assert placed[5] == (2, 0, 3)
    assert placed[6] == (0, 4, 2)


@pytest.mark.spec("REP-76")
def test_racks_do_not_count_when_a_broker_does_not_tell_its_own() -> None:
    placed = place(brokers("a", "a", None), range(3), 3, PlacementRandomness(0, 0))
    assert placed == {0: (0, 1, 2), 1: (1, 2, 0), 2: (2, 0, 1)}


def test_more_copies_than_brokers_are_refused() -> None:
    with pytest.raises(KafkaError) as refused:
        place(brokers(None, None), range(1), 3, PlacementRandomness(0, 0))
    assert refused.value.code is ErrorCode.invalid_replication_factor


@pytest.mark.spec("REP-76")
@given(
    racks=st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=9),
    count=st.integers(1, 40),
    randomness=st.builds(PlacementRandomness, st.integers(0, 2**31), st.integers(0, 2**31)),
    data=st.data(),
)
def test_placement_is_even_and_spreads_over_racks(
    racks: list[str], count: int, randomness: PlacementRandomness, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(racks)))
    placed = place(brokers(*racks), range(count), factor, randomness)
    assert sorted(placed) == list(range(count))
    leaders = Counter(replicas[0] for replicas in placed.values())
    assert max(leaders.values()) - min(leaders.get(BrokerId(i), 0) for i in range(len(racks))) <= 1
    for replicas in placed.values():
        assert len(set(replicas)) == factor
        assert len({racks[broker] for broker in replicas}) == min(factor, len(set(racks)))
