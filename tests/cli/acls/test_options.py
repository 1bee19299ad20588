from __future__ import annotations

import pytest

from ottla import AclFilter, AclRule
from ottla.cli.acls.options import AclOptions
from ottla.client.admin import AclPattern
from ottla.model.errors import UserError


def test_every_combination_is_a_rule() -> None:
    asked = AclOptions(
        allow=["User:a"], deny=["User:b"], operation=["read", "describe"], topic=["t"], group=["g"]
    )
    rules = asked.rules()
    assert len(set(rules)) == 8
    assert AclRule.allow("User:a", "read", "topic", "t") in rules
    assert AclRule.deny("User:b", "describe", "group", "g") in rules


def test_hosts_prefixes_and_the_cluster_are_said_too() -> None:
    asked = AclOptions(
        allow=["User:a"], operation=["write"], host=["::1"], transactional_id=["x-"], prefixed=True
    )
    words = ("User:a", "write", "transactional-id", "x-")
    assert asked.rules() == [AclRule.allow(*words, host="::1", pattern="prefixed")]
    asked = AclOptions(deny=["User:*"], operation=["ALL"], cluster=True)
    assert asked.rules() == [AclRule.deny("User:*", "all", "cluster")]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (AclOptions(operation=["read"], topic=["t"]), "--allow or --deny is required"),
        (AclOptions(allow=["User:a"], topic=["t"]), "--operation is required"),
        (AclOptions(allow=["User:a"], operation=["read"]), "--topic, --group"),
        (
            AclOptions(allow=["a"], operation=["read"], topic=["t"]),
            "principal 'a': expected User:NAME",
        ),
        (AclOptions(allow=["User:a"], operation=["reed"], topic=["t"]), "'reed': expected one of"),
        (
            AclOptions(allow=["User:a"], operation=["write"], group=["g"]),
            "write: with a group: read",
        ),
        (AclOptions(allow=["User:a"], operation=["any"], topic=["t"]), "any: with a topic: read"),
        (AclOptions(allow=["User:a"], operation=["read"], topic=[" "]), "--topic: expected a name"),
        (
            AclOptions(allow=["User:a"], operation=["read"], topic=["t"], host=["example.org"]),
            "--host 'example.org': expected an address",
        ),
        (
            AclOptions(allow=["User:a"], operation=["alter"], cluster=True, prefixed=True),
            "--prefixed cannot be combined",
        ),
    ],
)
def test_what_is_missing_or_cannot_be_meant_is_said(asked: AclOptions, said: str) -> None:
    with pytest.raises(UserError, match=said):
        asked.rules()


def test_what_is_not_given_is_no_condition() -> None:
    assert AclOptions().filters(AclPattern.MATCH) == [AclFilter()]
    assert AclOptions(operation=["read"]).filters(AclPattern.LITERAL) == [
        AclFilter(operation="read")
    ]
    assert AclOptions(prefixed=True).filters(AclPattern.MATCH) == [AclFilter(pattern="prefixed")]
    assert AclOptions(allow=["User:a"], deny=["User:a"]).filters(AclPattern.MATCH) == [
        AclFilter(principal="User:a", permission="allow"),
        AclFilter(principal="User:a", permission="deny"),
    ]


def test_names_are_meant_as_the_command_says_or_as_beginnings() -> None:
    asked = AclOptions(topic=["t"])
    assert asked.filters(AclPattern.MATCH) == [AclFilter("topic", "t", pattern="match")]
    asked = asked._replace(prefixed=True)
    assert asked.filters(AclPattern.MATCH) == [AclFilter("topic", "t", pattern="prefixed")]
