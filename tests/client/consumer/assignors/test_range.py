from __future__ import annotations

import pytest
from hypothesis import given

from ottla.client.consumer.assignors.assignor import RangeAssignor, Subscription
from tests.client.consumer.assignors.assignor_groups import (
    dealt,
    group,
    groups,
    owned_once,
    short,
    subscribed_partitions,
)

Group = tuple[dict[str, Subscription], dict[str, int]]


@pytest.mark.spec("CON-30", "CON-31")
def test_the_surplus_of_each_topic_goes_to_the_first_members() -> None:
    shares = RangeAssignor().assign(group(C1="T1 T2", C2="T1 T2"), {"T1": 3, "T2": 3})
    assert short(shares) == {"C1": "T1p0 T1p1 T2p0 T2p1", "C2": "T1p2 T2p2"}


@pytest.mark.spec("CON-05", "CON-30")
def test_more_members_than_partitions_leaves_some_idle() -> None:
    shares = RangeAssignor().assign(group(a="t", b="t", c="t"), {"t": 2})
    assert short(shares) == {"a": "tp0", "b": "tp1", "c": ""}


@pytest.mark.spec("CON-30")
def test_a_topic_is_dealt_to_its_own_subscribers_only() -> None:
    shares = RangeAssignor().assign(group(a="t u", b="u"), {"t": 2, "u": 2})
    assert short(shares) == {"a": "tp0 tp1 up0", "b": "up1"}


def test_static_members_are_counted_by_the_name_they_were_given() -> None:
    members = {
        "zzz": Subscription(("t",), instance_id="one"),
        "aaa": Subscription(("t",), instance_id="two"),
        "000": Subscription(("t",)),
    }
    shares = RangeAssignor().assign(members, {"t": 3})
    assert short(shares) == {"zzz": "tp0", "aaa": "tp1", "000": "tp2"}


def test_a_topic_that_does_not_exist_is_nobodys() -> None:
    assert short(RangeAssignor().assign(group(a="t gone"), {"t": 1})) == {"a": "tp0"}


@given(groups())
def test_every_partition_has_one_owner_and_ranges_are_contiguous(given: Group) -> None:
    members, partitions = given
    shares = RangeAssignor().assign(members, partitions)
    assert owned_once(shares)
    assert dealt(shares) == subscribed_partitions(members, partitions)
    for share in shares.values():
        for topic in {at.topic for at in share}:
            indexes = [at.partition for at in share if at.topic == topic]
            assert indexes == list(range(indexes[0], indexes[0] + len(indexes)))
