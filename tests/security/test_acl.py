"""What follows from a set of access rules."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.delay.slices import Slices
from ottla.security.acl import Filter, Kind, Operation, Pattern, Permission, Rule, Rules
from tests.security.acl_rules import ALICE, AWAY, BOB, HOME, deny, rule


def allowed(
    *rules: Rule, operation: Operation = Operation.READ, name: str = "orders", who: str = ALICE
) -> bool | None:
    return Rules(rules).allow(who, HOME, operation, Kind.TOPIC, name)


@pytest.mark.spec("SEC-04")
def test_a_permission_is_for_one_principal_host_operation_and_resource() -> None:
    assert allowed(rule()) is True
    assert allowed(rule(host=HOME)) is True
    assert allowed(rule(principal="User:*")) is True
    assert allowed(rule(Operation.ALL)) is True
    assert allowed(rule(), who=BOB) is False
    assert allowed(rule(host=AWAY)) is False
    assert allowed(rule(), operation=Operation.WRITE) is False


def test_of_a_resource_that_no_rule_speaks_of_nothing_is_said() -> None:
    assert allowed() is None
    assert allowed(rule(), name="other") is None
    assert allowed(rule(kind=Kind.GROUP)) is None
    assert allowed(rule(name="order"), name="orders") is None


def test_names_are_literal_or_prefixes_or_all() -> None:
    prefixed = rule(name="ord", pattern=Pattern.PREFIXED)
    assert allowed(prefixed) is True
    assert allowed(prefixed, name="ord") is True
    assert allowed(prefixed, name="or") is None
    assert allowed(rule(name="*")) is True
    assert allowed(rule(name="*", pattern=Pattern.PREFIXED)) is None


def test_a_denial_beats_every_permission() -> None:
    assert allowed(rule(), deny()) is False
    assert allowed(rule(), deny(name="*")) is False
    assert allowed(rule(), deny(Operation.ALL, name="o", pattern=Pattern.PREFIXED)) is False
    assert allowed(rule(), deny(principal=BOB)) is True


@pytest.mark.parametrize(
    ("permitted", "included"),
    [
        (Operation.READ, Operation.DESCRIBE),
        (Operation.WRITE, Operation.DESCRIBE),
        (Operation.DELETE, Operation.DESCRIBE),
        (Operation.ALTER, Operation.DESCRIBE),
        (Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS),
    ],
)
def test_who_may_change_a_thing_may_describe_it_but_a_denial_denies_no_more(
    permitted: Operation, included: Operation
) -> None:
    assert allowed(rule(permitted), operation=included) is True
    assert allowed(rule(included), deny(permitted), operation=included) is True
    assert allowed(rule(included), operation=permitted) is False


def test_some_resource_is_allowed_unless_denials_bury_every_permission() -> None:
    def some(*rules: Rule) -> bool | None:
        return Rules(rules).allow_some(ALICE, HOME, Operation.READ, Kind.TOPIC)

    assert some() is None
    assert some(rule()) is True
    assert some(rule(), deny()) is None
    assert some(rule(), deny(name="ord", pattern=Pattern.PREFIXED)) is None
    assert some(rule(name="ord", pattern=Pattern.PREFIXED), deny()) is True
    assert some(rule(name="*"), deny(name="o", pattern=Pattern.PREFIXED)) is True
    assert some(rule(name="*"), deny(name="*")) is False
    assert some(rule(principal=BOB)) is None


def anything(**changed: object) -> Filter:
    every = Filter(Kind.ANY, None, Pattern.ANY, None, None, Operation.ANY, Permission.ANY)
    return every._replace(**changed)  # type: ignore[arg-type]


async def test_a_filter_takes_what_agrees_with_all_it_says() -> None:
    literal, prefixed = rule(), rule(name="ord", pattern=Pattern.PREFIXED, host=HOME)
    every, denied = rule(name="*", principal=BOB), deny(kind=Kind.GROUP)
    rules = Rules([literal, prefixed, every, denied])
    assert set(await rules.matching(anything(), Slices())) == {literal, prefixed, every, denied}
    assert (
        await rules.matching(
            anything(name="orders", pattern=Pattern.LITERAL, kind=Kind.TOPIC), Slices()
        )
    ) == [literal]
    matched = await rules.matching(
        anything(name="orders", pattern=Pattern.MATCH, kind=Kind.TOPIC), Slices()
    )
    assert set(matched) == {literal, prefixed, every}
    assert (await rules.matching(anything(principal=BOB), Slices())) == [every]
    assert (await rules.matching(anything(host=HOME), Slices())) == [prefixed]
    assert (await rules.matching(anything(permission=Permission.DENY), Slices())) == [denied]
    assert (await rules.matching(anything(operation=Operation.WRITE), Slices())) == []


names = st.sampled_from(["*", "a", "ab", "abc", "b"])
rules_ = st.builds(
    Rule,
    st.sampled_from([Kind.TOPIC, Kind.GROUP]),
    names,
    st.sampled_from([Pattern.LITERAL, Pattern.PREFIXED]),
    st.sampled_from([ALICE, BOB, "User:*"]),
    st.sampled_from([HOME, AWAY, "*"]),
    st.sampled_from([Operation.READ, Operation.DESCRIBE, Operation.ALL, Operation.ALTER]),
    st.sampled_from([Permission.ALLOW, Permission.DENY]),
)


@given(st.lists(rules_), names, st.sampled_from([Operation.READ, Operation.DESCRIBE]))
def test_arranged_rules_say_what_all_of_them_say_one_by_one(
    rules: list[Rule], name: str, operation: Operation
) -> None:
    about = [one for one in rules if one.kind is Kind.TOPIC and one.covers(name)]
    mine = [one for one in about if one.applies_to(ALICE, HOME) and one.includes(operation)]
    expected = None
    if about:
        expected = bool(mine) and all(one.permission is Permission.ALLOW for one in mine)
    assert Rules(rules).allow(ALICE, HOME, operation, Kind.TOPIC, name) is expected


@given(st.lists(rules_))
def test_if_some_resource_is_said_to_be_allowed_there_is_one(rules: list[Rule]) -> None:
    arranged = Rules(rules)
    probes = [f"{one.name}{end}" for one in rules for end in ("", "zz")]
    one_by_one = any(
        arranged.allow(ALICE, HOME, Operation.READ, Kind.TOPIC, name) for name in probes
    )
    some = arranged.allow_some(ALICE, HOME, Operation.READ, Kind.TOPIC)
    assert bool(some) is one_by_one


async def test_many_rules_are_indexed_and_searched_in_slices() -> None:
    rules = [rule(name=f"topic-{number}") for number in range(1_000)]
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.ensure_future(count())
    built = await Rules.build([*rules, *rules[:10]])
    assert turns >= 4
    assert built.all == Rules(rules).all
    assert len(await built.matching(anything(), Slices())) == 1_000
    assert turns >= 8
    counting.cancel()


WILDCARDS: Final[dict[str, tuple[Rule, dict[str, str]]]] = {
    "a literal name with a star": (rule(name="ord*"), {"name": "orders"}),
    "a literal name with a question mark": (rule(name="order?"), {"name": "orders"}),
    "a literal name that is a pattern": (rule(name="[o]rders|.*"), {"name": "orders"}),
    "a literal name with a dot": (rule(name="ord.rs"), {"name": "orders"}),
    "a literal name with a percent sign": (rule(name="%"), {"name": "orders"}),
    "a literal name that begins alike": (rule(name="order"), {"name": "orders"}),
    "a literal name in capitals": (rule(name="ORDERS"), {"name": "orders"}),
    "two stars": (rule(name="**"), {"name": "orders"}),
    "a prefix with a star": (rule(name="ord*", pattern=Pattern.PREFIXED), {"name": "orders"}),
    "a prefix of a star": (rule(name="*", pattern=Pattern.PREFIXED), {"name": "orders"}),
    "a prefix in the middle": (rule(name="rder", pattern=Pattern.PREFIXED), {"name": "orders"}),
    "a prefix that is longer": (rule(name="orders-", pattern=Pattern.PREFIXED), {"name": "orders"}),
    "a user with a star": (rule(principal="User:a*"), {"who": ALICE}),
    "a user that begins alike": (rule(principal="User:ali"), {"who": ALICE}),
    "a user in capitals": (rule(principal="User:ALICE"), {"who": ALICE}),
    "a star without its kind": (rule(principal="*"), {"who": ALICE}),
    "a star of another kind": (rule(principal="Group:*"), {"who": ALICE}),
    "a kind in small letters": (rule(principal="user:*"), {"who": ALICE}),
    "a host with a star": (rule(host="10.0.0.*"), {"host": HOME}),
    "a network": (rule(host="10.0.0.0/8"), {"host": HOME}),
    "a host that begins alike": (rule(host="10.0.0."), {"host": HOME}),
    "every host of IPv4": (rule(host="0.0.0.0"), {"host": HOME}),
}
"""A rule, and what a pattern of another kind would match."""


@pytest.mark.spec("SEC-04")
@pytest.mark.parametrize("written", WILDCARDS)
@pytest.mark.parametrize("permission", [Permission.ALLOW, Permission.DENY])
def test_a_rule_matches_no_more_than_it_shows(written: str, permission: Permission) -> None:
    shown, asked = WILDCARDS[written]
    who, host = asked.get("who", ALICE), asked.get("host", HOME)
    rules = Rules([shown._replace(permission=permission)])
    decided = rules.allow(who, host, Operation.READ, Kind.TOPIC, asked.get("name", "orders"))
    assert not decided
    named = "name" in asked
    assert (decided is None) is named, "of a resource that no rule names nothing is decided"
    with_permission = Rules([shown._replace(permission=permission), rule(principal=ALICE)])
    assert with_permission.allow(who, host, Operation.READ, Kind.TOPIC, "orders") is True


@pytest.mark.parametrize("pattern", [Pattern.LITERAL, Pattern.ANY, Pattern.PREFIXED])
async def test_a_filter_for_the_rules_of_every_name_takes_no_others(pattern: Pattern) -> None:
    every, prefix = rule(name="*"), rule(name="*", pattern=Pattern.PREFIXED)
    rules = Rules([rule(), every, prefix, rule(name="ord", pattern=Pattern.PREFIXED)])
    found = await rules.matching(anything(name="*", pattern=pattern), Slices())
    expected = {Pattern.LITERAL: {every}, Pattern.PREFIXED: {prefix}, Pattern.ANY: {every, prefix}}
    assert set(found) == expected[pattern]


@pytest.mark.parametrize(
    "changed",
    [
        {"principal": "User:*"},
        {"principal": "User:a"},
        {"host": "10.0.0.*"},
        {"name": "ord", "pattern": Pattern.LITERAL},
        {"name": "ord*", "pattern": Pattern.MATCH},
    ],
)
async def test_a_filter_takes_no_more_than_it_shows(changed: dict[str, object]) -> None:
    rules = Rules([rule(), rule(host=HOME), rule(principal=BOB)])
    assert await rules.matching(anything(**changed), Slices()) == []
