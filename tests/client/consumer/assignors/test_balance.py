from __future__ import annotations

from ottla.client.consumer.assignors.balance import Balance
from ottla.model.ids import TopicPartition
from tests.client.consumer.assignors.assignor_groups import parts, short


def balanced(
    takers: dict[str, list[str]], holders: dict[TopicPartition, str], new: str = ""
) -> dict[str, str]:
    members = sorted({member for names in takers.values() for member in names})
    balance = Balance(members, takers, holders)
    balance.assign_to_smallest(parts(new))
    balance.balance()
    return short(balance.shares())


def held(**shares: str) -> dict[TopicPartition, str]:
    return {at: member for member, names in shares.items() for at in parts(names)}


def test_relief_may_go_through_a_member_in_between() -> None:
    """a can give only to b, and b only to c: both pass one on."""
    takers = {"t": ["a", "b"], "u": ["b", "c"]}
    shares = balanced(takers, held(a="tp0 tp1 tp2", b="up0 up1"))
    assert shares == {"a": "tp0 tp1", "b": "tp2 up0", "c": "up1"}


def test_what_just_came_moves_on_before_what_was_there() -> None:
    takers = {"t": ["a"], "u": ["a", "b"]}
    assert balanced(takers, held(a="up0"), "tp0 tp1") == {"a": "tp0 tp1", "b": "up0"}


def test_a_difference_of_one_is_even() -> None:
    assert balanced({"t": ["a", "b"]}, held(a="tp0 tp1", b="tp2")) == {"a": "tp0 tp1", "b": "tp2"}


def test_what_few_may_take_is_dealt_first() -> None:
    takers = {"a-wide": ["a", "b"], "only-a": ["a"]}
    assert balanced(takers, {}, "a-widep0 only-ap0") == {"a": "only-ap0", "b": "a-widep0"}
