from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.client.consumer.assignors.assignor import Protocols, Shares, Subscription
from ottla.client.consumer.assignors.cooperative_sticky import CooperativeStickyAssignor
from ottla.client.consumer.assignors.user_data import encode_generation
from tests.client.consumer.assignors.assignor_groups import (
    dealt,
    group,
    groups,
    owned_once,
    parts,
    short,
    subscribed_partitions,
)

Group = tuple[dict[str, Subscription], dict[str, int]]


def owning(
    members: dict[str, Subscription], shares: Shares, generation: int
) -> dict[str, Subscription]:
    return {
        member: told._replace(owned=tuple(shares.get(member, ())), generation=generation)
        for member, told in members.items()
    }


def test_it_says_that_members_keep_what_they_have() -> None:
    assert CooperativeStickyAssignor().protocol is Protocols.COOPERATIVE


def test_what_moves_is_first_given_to_nobody() -> None:
    members = {
        "old": Subscription(("t",), owned=tuple(parts("tp0 tp1")), generation=1),
        "new": Subscription(("t",)),
    }
    assignor = CooperativeStickyAssignor()
    first = assignor.assign(members, {"t": 2})
    assert short(first) == {"old": "tp0", "new": ""}
    second = assignor.assign(owning(members, first, 2), {"t": 2})
    assert short(second) == {"old": "tp0", "new": "tp1"}


def test_a_stale_claim_does_not_take_a_partition_from_its_owner() -> None:
    members = {
        "stale": Subscription(("t",), owned=tuple(parts("tp0")), generation=1),
        "owner": Subscription(("t",), owned=tuple(parts("tp0")), generation=2),
    }
    assert short(CooperativeStickyAssignor().assign(members, {"t": 1})) == {
        "stale": "",
        "owner": "tp0",
    }


def test_the_generation_of_an_older_subscription_is_in_its_user_data() -> None:
    members = {
        "a": Subscription(("t",), encode_generation(4), tuple(parts("tp0"))),
        "b": Subscription(("t",), encode_generation(5), tuple(parts("tp0"))),
    }
    assert short(CooperativeStickyAssignor().assign(members, {"t": 1})) == {"a": "", "b": "tp0"}


def test_a_member_tells_the_generation_of_its_last_assignment() -> None:
    assignor = CooperativeStickyAssignor()
    assert assignor.user_data(["t"]) == encode_generation(-1)
    assignor.on_assignment(parts("tp0"), 9)
    assert assignor.user_data(["t"]) == encode_generation(9)


@given(groups(), st.sampled_from(["leave", "join"]))
def test_a_change_settles_within_two_rounds_and_no_partition_ever_has_two_owners(
    given: Group, change: str
) -> None:
    members, partitions = given
    assignor = CooperativeStickyAssignor()
    before = assignor.assign(members, partitions)
    if change == "leave" and len(members) > 1:
        members = {member: told for member, told in members.items() if member != "C0"}
    else:
        members = {**members, **group(C9="t0 t1 t2 t3")}
    shares = {member: before.get(member, []) for member in members}
    for generation in (1, 2):
        given_now = assignor.assign(owning(members, shares, generation), partitions)
        for member, share in given_now.items():
            others = {at for who, had in shares.items() if who != member for at in had}
            assert not others & set(share), "its owner has not given it up yet"
        shares = given_now
        assert owned_once(shares)
    assert dealt(shares) == subscribed_partitions(members, partitions)
