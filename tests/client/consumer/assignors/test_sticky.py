from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.consumer.assignors.assignor import RoundRobinAssignor, Shares, Subscription
from ottla.client.consumer.assignors.sticky import StickyAssignor, resolve_claims
from ottla.client.consumer.assignors.user_data import OwnedPartitions, encode_owned
from ottla.model.ids import TopicPartition
from tests.client.consumer.assignors.assignor_groups import (
    TOPICS,
    dealt,
    equal_groups,
    group,
    groups,
    owned_once,
    parts,
    short,
    subscribed_partitions,
)

Group = tuple[dict[str, Subscription], dict[str, int]]


def remembering(
    members: Mapping[str, Subscription], shares: Shares, generation: int = 1
) -> dict[str, Subscription]:
    """The members as they join after they got these shares."""
    return {
        member: told._replace(user_data=encode_owned(shares[member], generation))
        if member in shares
        else told
        for member, told in members.items()
    }


def without(members: Mapping[str, Subscription], gone: str) -> dict[str, Subscription]:
    return {member: told for member, told in members.items() if member != gone}


def moved(before: Shares, after: Shares) -> int:
    """How many partitions went from one living member to another."""
    owner = {at: member for member, share in after.items() for at in share}
    return sum(
        owner.get(at, member) != member
        for member, share in before.items()
        if member in after
        for at in share
    )


@pytest.mark.spec("CON-35", "CON-36", "CON-38")
def test_unequal_subscriptions_are_evened_out_and_a_leaver_moves_only_its_own() -> None:
    members = group(C0="t0", C1="t0 t1", C2="t0 t1 t2")
    partitions = {"t0": 1, "t1": 2, "t2": 3}
    first = StickyAssignor().assign(members, partitions)
    assert short(first) == {"C0": "t0p0", "C1": "t1p0 t1p1", "C2": "t2p0 t2p1 t2p2"}
    second = StickyAssignor().assign(without(remembering(members, first), "C0"), partitions)
    assert short(second) == {"C1": "t0p0 t1p0 t1p1", "C2": "t2p0 t2p1 t2p2"}


@pytest.mark.spec("CON-35", "CON-37", "CON-38")
def test_equal_subscriptions_start_as_round_robin_and_a_leaver_moves_only_its_own() -> None:
    topics, partitions = "t0 t1 t2 t3", dict.fromkeys(TOPICS, 2)
    members = group(C0=topics, C1=topics, C2=topics)
    first = StickyAssignor().assign(members, partitions)
    assert short(first) == {
        "C0": "t0p0 t1p1 t3p0",
        "C1": "t0p1 t2p0 t3p1",
        "C2": "t1p0 t2p1",
    }
    assert short(first) == short(RoundRobinAssignor().assign(members, partitions))
    second = StickyAssignor().assign(without(remembering(members, first), "C1"), partitions)
    assert short(second) == {
        "C0": "t0p0 t1p1 t2p0 t3p0",
        "C2": "t0p1 t1p0 t2p1 t3p1",
    }


@pytest.mark.spec("CON-38")
def test_what_a_member_got_is_what_it_tells_the_next_leader() -> None:
    assignor = StickyAssignor()
    assert assignor.user_data(["t"]) is None
    assignor.on_assignment(parts("tp1 tp0"), 7)
    assert assignor.user_data(["t"]) == encode_owned(parts("tp0 tp1"), 7)


@pytest.mark.spec("CON-38")
def test_of_two_claims_the_later_generation_is_believed() -> None:
    members = {
        "away": Subscription(("t",), user_data=encode_owned(parts("tp0 tp1"), 3)),
        "here": Subscription(("t",), user_data=encode_owned(parts("tp1"), 4)),
    }
    assert short(StickyAssignor().assign(members, {"t": 2})) == {"away": "tp0", "here": "tp1"}


@pytest.mark.spec("CON-35")
@given(groups())
def test_shares_are_as_even_as_subscriptions_allow(given: Group) -> None:
    members, partitions = given
    shares = StickyAssignor().assign(members, partitions)
    assert owned_once(shares)
    assert dealt(shares) == subscribed_partitions(members, partitions)
    for rich, poor in product(shares, repeat=2):
        if len(shares[rich]) - len(shares[poor]) >= 2:
            assert not {at.topic for at in shares[rich]} & set(members[poor].topics)


@pytest.mark.spec("CON-35")
@given(
    st.lists(st.sets(st.sampled_from(TOPICS[:3]), min_size=1), min_size=1, max_size=3),
    st.lists(st.integers(0, 2), min_size=3, max_size=3),
)
def test_no_other_assignment_is_more_even(wants: list[set[str]], counts: list[int]) -> None:
    """Against every possible assignment of small groups."""
    members = {f"C{n}": Subscription(tuple(topics)) for n, topics in enumerate(wants)}
    partitions = dict(zip(TOPICS, counts, strict=False))
    shares = StickyAssignor().assign(members, partitions)
    choices = [
        [member for member in members if name.partition("p")[0] in members[member].topics]
        for name in subscribed_partitions(members, partitions)
    ]
    best = min(sum(owners.count(member) ** 2 for member in members) for owners in product(*choices))
    assert sum(len(share) ** 2 for share in shares.values()) == best


@pytest.mark.spec("CON-35")
@given(groups())
def test_nothing_moves_when_nothing_changed(given: Group) -> None:
    members, partitions = given
    first = StickyAssignor().assign(members, partitions)
    assert StickyAssignor().assign(remembering(members, first), partitions) == first


@pytest.mark.spec("CON-35")
@given(equal_groups(), st.booleans())
def test_no_more_moves_than_evenness_needs(given: Group, leave: bool) -> None:
    """Members subscribe alike: each keeps what it had, up to its fair share."""
    members, partitions = given
    first = StickyAssignor().assign(members, partitions)
    after = remembering(members, first)
    after = (
        without(after, "C0")
        if leave and len(after) > 1
        else {**after, **group(C9=" ".join(TOPICS))}
    )
    second = StickyAssignor().assign(after, partitions)
    total = sum(partitions.values())
    fair, surplus = divmod(total, len(after))
    had = sorted((len(first.get(member, [])) for member in after), reverse=True)
    kept = sum(min(size, fair + (place < surplus)) for place, size in enumerate(had))
    survivors = sum(len(first[member]) for member in after if member in first)
    assert moved(first, second) == survivors - kept


BOTH = {"a": frozenset({"t"}), "b": frozenset({"t"})}


def test_the_later_generation_is_believed_in_whatever_order() -> None:
    old, new = OwnedPartitions(tuple(parts("tp0")), 1), OwnedPartitions(tuple(parts("tp0")), 2)
    assert resolve_claims({"a": old, "b": new}, BOTH, {"t": 1}) == {TopicPartition("t", 0): "b"}
    assert resolve_claims({"a": new, "b": old}, BOTH, {"t": 1}) == {TopicPartition("t", 0): "a"}


def test_two_claims_of_one_generation_are_both_refused() -> None:
    claim = OwnedPartitions(tuple(parts("tp0")), 1)
    assert resolve_claims({"a": claim, "b": claim}, BOTH, {"t": 1}) == {}


def test_what_is_gone_or_no_longer_wanted_is_nobodys() -> None:
    topics = {"a": frozenset({"t"})}
    owned = {"a": OwnedPartitions(tuple(parts("tp0 tp7 up0")), 1)}
    assert resolve_claims(owned, topics, {"t": 1, "u": 1}) == {TopicPartition("t", 0): "a"}
