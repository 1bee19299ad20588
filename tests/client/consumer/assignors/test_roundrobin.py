from __future__ import annotations

import pytest
from hypothesis import given

from ottla.client.consumer.assignors.assignor import RoundRobinAssignor, Subscription
from tests.client.consumer.assignors.assignor_groups import (
    dealt,
    equal_groups,
    group,
    groups,
    owned_once,
    short,
    subscribed_partitions,
)

Group = tuple[dict[str, Subscription], dict[str, int]]


@pytest.mark.spec("CON-32", "CON-34")
def test_unequal_subscriptions_give_unequal_shares() -> None:
    members = group(C0="t0", C1="t0 t1", C2="t0 t1 t2")
    shares = RoundRobinAssignor().assign(members, {"t0": 1, "t1": 2, "t2": 3})
    assert short(shares) == {"C0": "t0p0", "C1": "t1p0", "C2": "t1p1 t2p0 t2p1 t2p2"}


@pytest.mark.spec("CON-36")
def test_when_a_member_leaves_everything_is_dealt_out_anew() -> None:
    members = group(C1="t0 t1", C2="t0 t1 t2")
    shares = RoundRobinAssignor().assign(members, {"t0": 1, "t1": 2, "t2": 3})
    assert short(shares) == {"C1": "t0p0 t1p1", "C2": "t1p0 t2p0 t2p1 t2p2"}


@pytest.mark.spec("CON-33")
def test_members_take_turns_in_the_order_of_the_partitions() -> None:
    """The old consumer ordered by hash codes; renamed to that order, today's deal is the same."""
    order = [5, 3, 0, 8, 2, 1, 4, 7, 6, 9]
    members = {name: Subscription(("t",)) for name in ("C1-0", "C1-1", "C2-0", "C2-1")}
    shares = RoundRobinAssignor().assign(members, {"t": len(order)})
    old_names = {member: [order[at.partition] for at in share] for member, share in shares.items()}
    assert old_names == {"C1-0": [5, 2, 6], "C1-1": [3, 1, 9], "C2-0": [0, 4], "C2-1": [8, 7]}


@pytest.mark.spec("CON-37")
def test_when_a_member_of_an_even_group_leaves_all_are_dealt_out_anew() -> None:
    topics, partitions = "t0 t1 t2 t3", dict.fromkeys(["t0", "t1", "t2", "t3"], 2)
    shares = RoundRobinAssignor().assign(group(C0=topics, C2=topics), partitions)
    assert short(shares) == {"C0": "t0p0 t1p0 t2p0 t3p0", "C2": "t0p1 t1p1 t2p1 t3p1"}


@pytest.mark.spec("CON-32")
@given(equal_groups())
def test_equal_subscriptions_give_even_shares(given: Group) -> None:
    shares = RoundRobinAssignor().assign(*given)
    sizes = [len(share) for share in shares.values()]
    assert max(sizes) - min(sizes) <= 1


@given(groups())
def test_every_partition_has_one_owner_who_wants_it(given: Group) -> None:
    members, partitions = given
    shares = RoundRobinAssignor().assign(members, partitions)
    assert owned_once(shares)
    assert dealt(shares) == subscribed_partitions(members, partitions)
    assert all(at.topic in members[who].topics for who, share in shares.items() for at in share)
