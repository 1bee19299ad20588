"""Where records go that do not say it themselves."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.partitioners import REMEMBERED, KeyHash, RoundRobin, Sticky, partition_of


@pytest.mark.spec("PRD-14", "PRD-16")
@given(st.lists(st.binary(max_size=8)), st.integers(1, 50))
def test_a_key_stays_with_its_partition_while_their_number_stays(
    keys: list[bytes], partitions: int
) -> None:
    chosen = KeyHash(partitions)
    for key in keys + keys:
        assert chosen(key) == partition_of(key, partitions)


def test_no_more_keys_are_remembered_than_the_bound() -> None:
    chosen = KeyHash(3)
    for number in range(REMEMBERED + 10):
        chosen(b"%d" % number)
    assert len(chosen.cache) <= REMEMBERED


@pytest.mark.spec("PRD-15", "CONF-01")
def test_without_a_key_records_stay_until_a_batch_is_full_then_go_on() -> None:
    sticky = Sticky(Random(1))
    first = sticky.choose((0, 1, 2), (), 100)
    sticky.count(60)
    assert sticky.choose((0, 1, 2), (), 100) == first
    sticky.count(60)
    seen = {sticky.choose((0, 1, 2), (), 0) for _ in range(50)}
    assert seen == {0, 1, 2}


@pytest.mark.spec("PRD-15")
def test_a_partition_that_lost_its_leader_is_left_at_once() -> None:
    sticky = Sticky(Random(1))
    first = sticky.choose((0, 1, 2), (), 1_000)
    others = tuple({0, 1, 2} - {first})
    assert sticky.choose(others, (), 1_000) in others


def test_less_goes_where_more_waits() -> None:
    sticky = Sticky(Random(1))
    chosen = Counter(sticky.choose((0, 1), (9, 0), 0) for _ in range(1_000))
    assert chosen[0] < chosen[1] / 4
    assert chosen[0] > 0


def test_every_partition_gets_its_share_in_turn() -> None:
    robin = RoundRobin()
    assert [robin("t", b"key", range(3), (0, 2)) for _ in range(4)] == [0, 2, 0, 2]
    assert [robin("u", None, range(2), ()) for _ in range(3)] == [0, 1, 0]
