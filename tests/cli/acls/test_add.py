from __future__ import annotations

import pytest

import ottla
from ottla import AclRule
from ottla.testing import Broker
from tests.cli.ottla_program import Run


@pytest.mark.spec("SEC-04", "TOOL-18")
def test_rules_are_added_and_shown(run: Run, admin: ottla.Admin) -> None:
    words = ("--allow", "User:alice", "--operation", "read", "--topic", "orders")
    [row] = run("acls", "add", *words, "--json").json
    assert row == {
        "permission": "allow",
        "principal": "User:alice",
        "operation": "read",
        "resource": "topic",
        "name": "orders",
        "pattern": "literal",
        "host": "*",
    }
    assert admin.describe_acls() == [AclRule.allow("User:alice", "read", "topic", "orders")]
    assert "User:alice" in run("acls", "add", *words).out


def test_mistakes_are_said_in_a_line(run: Run, admin: ottla.Admin) -> None:
    run("acls", "add").failed(2, "--allow")
    said = ("--operation", "read", "--topic", "orders")
    run("acls", "add", "--allow", "alice", *said).failed(2, "User:NAME")
    run("acls", "add", "--allow", "", *said).failed(2, "User:NAME")
    run("acls", "add", "--allow", "User:a", "--operation", "x", "--topic", "t").failed(2, "'x'")
    assert admin.describe_acls() == []


def test_a_cluster_without_an_authorizer_says_so(run: Run) -> None:
    words = ("--allow", "User:alice", "--operation", "read", "--topic", "orders")
    with Broker() as broker:
        ran = run("acls", "add", *words, "-b", broker.bootstrap_servers)
    ran.failed(1, "allow User:alice to read topic orders: ", "Authorizer")
    assert ran.out == ""
