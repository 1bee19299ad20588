from __future__ import annotations

import pytest

import ottla
from ottla import AclRule
from tests.cli.ottla_program import Run

READ = AclRule.allow("User:alice", "read", "topic", "orders")
WRITE = AclRule.allow("User:alice", "write", "topic", "orders", host="10.0.0.7")
PREFIXED = AclRule.allow("User:alice", "read", "topic", "orders", pattern="prefixed")
WORDS = ("acls", "remove", "--allow", "User:alice", "--topic", "orders")


@pytest.fixture(autouse=True)
def rules(admin: ottla.Admin, no_rules: None) -> None:
    admin.create_acls([READ, WRITE, PREFIXED]).all()


@pytest.mark.spec("SEC-04", "TOOL-18")
def test_only_what_was_described_is_removed(run: Run, admin: ottla.Admin) -> None:
    [row] = run(*WORDS, "--operation", "read", "--yes", "--json").json
    assert (row["operation"], row["pattern"]) == ("read", "literal")
    assert admin.describe_acls() == [WRITE, PREFIXED]
    assert len(run(*WORDS, "--prefixed", "--yes", "--json").json) == 1
    assert admin.describe_acls() == [WRITE]
    assert "10.0.0.7" in run(*WORDS, "--yes").out
    assert admin.describe_acls() == []


def test_it_asks_first_and_shows_what_would_go(run: Run, admin: ottla.Admin) -> None:
    for answer in ("n\n", "\n", ""):
        ran = run(*WORDS, "--json", stdin=answer)
        ran.failed(1, "10.0.0.7", "remove them? [y/N]", "nothing was removed")
        assert ran.out == ""
    assert len(admin.describe_acls()) == 3
    assert len(run(*WORDS, "--json", stdin="y\n").json) == 2
    assert admin.describe_acls() == [PREFIXED]


def test_nothing_to_remove_is_not_asked_about(run: Run) -> None:
    ran = run("acls", "remove", "--group", "nobody")
    assert (ran.code, ran.out) == (0, "removed: none\n")


def test_mistakes_are_said_in_a_line(run: Run, admin: ottla.Admin) -> None:
    run("acls", "remove").failed(2, "no filter given")
    run("acls", "remove", "--yes").failed(2, "no filter given")
    run("acls", "remove", "--topic", "", "--yes").failed(2, "--topic: expected a name")
    run("acls", "remove", "--allow", "alice", "--yes").failed(2, "User:NAME")
    assert len(admin.describe_acls()) == 3
