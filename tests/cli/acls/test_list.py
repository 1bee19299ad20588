from __future__ import annotations

import pytest

import ottla
from ottla import AclRule
from ottla.testing import Broker
from tests.cli.ottla_program import Run

RULES = [
    AclRule.allow("User:alice", "read", "topic", "orders"),
    AclRule.deny("User:eve", "write", "topic", "ord", pattern="prefixed"),
    AclRule.allow("User:*", "describe", "topic", "*"),
    AclRule.allow("User:alice", "read", "group", "billing"),
]


@pytest.mark.spec("SEC-04", "TOOL-18")
@pytest.mark.parametrize(
    ("words", "principals"),
    [
        ((), ["User:*", "User:eve", "User:alice", "User:alice"]),
        (("--topic", "orders"), ["User:*", "User:eve", "User:alice"]),
        (("--topic", "ord", "--prefixed"), ["User:eve"]),
        (("--topic", "clicks"), ["User:*"]),
        (("--allow", "User:alice"), ["User:alice", "User:alice"]),
        (("--allow", "User:alice", "--deny", "User:eve"), ["User:eve", "User:alice", "User:alice"]),
        (("--operation", "read", "--group", "billing"), ["User:alice"]),
        (("--host", "10.0.0.7"), []),
        (("--cluster",), []),
    ],
)
def test_rules_are_listed_by_what_they_are_about(
    run: Run, admin: ottla.Admin, words: tuple[str, ...], principals: list[str]
) -> None:
    admin.create_acls(RULES).all()
    rows = run("acls", "list", *words, "--json").json
    assert [row["principal"] for row in rows] == principals


def test_people_see_a_table_or_that_there_is_nothing(run: Run, admin: ottla.Admin) -> None:
    assert run("acls", "list").out == "access rules: none\n"
    admin.create_acls(RULES).all()
    assert "prefixed" in run("acls", "list").out


def test_mistakes_are_said_in_a_line(run: Run) -> None:
    run("acls", "list", "--allow", "alice").failed(2, "User:NAME")
    run("acls", "list", "--operation", "fly").failed(2, "'fly'")
    with Broker() as broker:
        run("acls", "list", "-b", broker.bootstrap_servers).failed(1, "Authorizer")
