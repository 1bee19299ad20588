from __future__ import annotations

from collections.abc import Iterator

import pytest

import ottla
from ottla import AclFilter, AclRule
from tests.cli.ottla_program import Run

ACLS = "kafka-acls.sh"
ORDERS = "ResourcePattern(resourceType=TOPIC, name=orders, patternType=LITERAL)"
ALICE = ("--allow-principal", "User:alice")


@pytest.fixture(autouse=True)
def no_rules(admin: ottla.Admin) -> Iterator[None]:
    admin.delete_acls([AclFilter()]).all()
    yield
    admin.delete_acls([AclFilter()]).all()


def entry(who: str, operation: str, permission: str = "ALLOW", host: str = "*") -> str:
    return (
        f"\t(principal=User:{who}, host={host}, operation={operation}, permissionType={permission})"
    )


@pytest.mark.spec("SEC-04")
def test_rules_are_added_listed_and_removed(run_kafka: Run) -> None:
    words = ("--operation", "Read", "--operation", "describe", "--topic", "orders")
    lines = f"{entry('alice', 'READ')}\n{entry('alice', 'DESCRIBE')}\n"
    added = run_kafka(ACLS, "--add", *ALICE, *words)
    assert added.out == f"Adding ACLs for resource `{ORDERS}`: \n {lines}\n"
    current = f"Current ACLs for resource `{ORDERS}`:\n{lines}\n"
    assert run_kafka(ACLS, "--list").out == current
    assert run_kafka(ACLS, "--list", "--topic", "orders").out == current
    assert run_kafka(ACLS, "--list", "--group", "orders").out == ""
    assert run_kafka(ACLS, "--remove", *ALICE, *words, "--force").out == ""
    assert run_kafka(ACLS, "--list").out == ""


def test_what_is_there_already_is_said(run_kafka: Run) -> None:
    words = ("--add", *ALICE, "--topic", "orders")
    run_kafka(ACLS, *words)
    said = f"Acl (pattern={ORDERS}, entry={entry('alice', 'ALL').strip()}) already exists.\n"
    assert run_kafka(ACLS, *words).out == said
    both = run_kafka(ACLS, *words, "--deny-principal", "User:eve", "--deny-host", "10.0.0.7").out
    denied = entry("eve", "ALL", "DENY", "10.0.0.7")
    assert both == said + f"Adding ACLs for resource `{ORDERS}`: \n {denied}\n\n"


def test_rules_are_listed_by_principal(run_kafka: Run) -> None:
    run_kafka(ACLS, "--add", *ALICE, "--deny-principal", "User:eve", "--topic", "orders")
    ran = run_kafka(ACLS, "--list", "--principal", "User:eve", "--principal", "User:zed")
    assert ran.out == (
        f"ACLs for principal `User:eve`\nCurrent ACLs for resource `{ORDERS}`:\n"
        f"{entry('eve', 'ALL', 'DENY')}\n\nACLs for principal `User:zed`\n"
    )


def test_producers_and_consumers_get_what_they_need(run_kafka: Run, admin: ottla.Admin) -> None:
    names = ("--topic", "orders", "--group", "g", "--transactional-id", "x")
    roles = ("--producer", "--idempotent", "--consumer")
    assert run_kafka(ACLS, "--add", *ALICE, *roles, *names).code == 0
    who = "User:alice"
    wanted = [
        *(AclRule.allow(who, each, "topic", "orders") for each in ("read", "write", "create")),
        AclRule.allow(who, "describe", "topic", "orders"),
        AclRule.allow(who, "read", "group", "g"),
        AclRule.allow(who, "idempotent-write", "cluster"),
        *(AclRule.allow(who, each, "transactional-id", "x") for each in ("write", "describe")),
    ]
    assert admin.describe_acls() == sorted(wanted)
    assert run_kafka(ACLS, "--remove", *ALICE, *roles, *names, "--force").code == 0
    assert admin.describe_acls() == []


def test_patterns_are_prefixes_or_say_which_rules_are_meant(
    run_kafka: Run, admin: ottla.Admin
) -> None:
    pattern = "--resource-pattern-type"
    run_kafka(ACLS, "--add", *ALICE, "--topic", "ord", pattern, "prefixed")
    run_kafka(ACLS, "--add", *ALICE, "--topic", "*")
    assert run_kafka(ACLS, "--list", "--topic", "ord").out == ""
    assert run_kafka(ACLS, "--list", "--topic", "ord", pattern, "ANY").out.count("principal") == 1
    assert run_kafka(ACLS, "--list", "--topic", "orders", pattern, "match").out.count("\t") == 2
    run_kafka(ACLS, "--remove", "--topic", "orders", pattern, "match", "--force")
    assert admin.describe_acls() == []


def test_removing_asks_first(run_kafka: Run, admin: ottla.Admin) -> None:
    run_kafka(ACLS, "--add", *ALICE, "--topic", "orders")
    everything = run_kafka(ACLS, "--remove", "--topic", "orders", stdin="n\n")
    said = f"Are you sure you want to delete all ACLs for resource filter `{ORDERS}`? (y/n)\n"
    assert (everything.code, everything.out) == (0, said)
    assert len(admin.describe_acls()) == 1
    one = run_kafka(ACLS, "--remove", *ALICE, "--topic", "orders", stdin="Y\n")
    assert one.out == (
        f"Are you sure you want to remove ACLs: \n {entry('alice', 'ALL')}\n "
        f"from resource filter `{ORDERS}`? (y/n)\n"
    )
    assert admin.describe_acls() == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "exactly one action: --list, --add, --remove."),
        (("--list", "--add"), "exactly one action"),
        (("--add", *ALICE), "at least one resource"),
        (("--add", "--topic", "t"), "--allow-principal, --deny-principal"),
        (("--list", *ALICE), 'Option "[list]" can\'t be used with option "[allow-principal]"'),
        (("--add", "--producer", "--operation", "Read", *ALICE, "--topic", "t"), '"[operation]"'),
        (("--add", "--producer", *ALICE, "--group", "g"), "With --producer you must specify"),
        (("--add", "--consumer", *ALICE, "--topic", "t"), "With --consumer you must specify"),
        (("--add", "--idempotent", *ALICE, "--topic", "t"), "if --producer is set"),
        (("--add", "--principal", "User:a", *ALICE, "--topic", "t"), "if --list is set"),
        (("--list", "--resource-pattern-type", "x"), "Unknown resource-pattern-type: x"),
        (("--add", *ALICE, "--topic", "t", "--resource-pattern-type", "any"), "value of 'ANY'"),
        (("--add", *ALICE, "--topic", "t", "--operation", "fly"), "TOPIC only supports operations"),
        (("--add", *ALICE, "--group", "g", "--operation", "Write"), "GROUP only supports"),
    ],
)
def test_mistakes_are_said_with_exit_code_1(
    run_kafka: Run, words: tuple[str, ...], said: str
) -> None:
    run_kafka(ACLS, *words).failed(1, said)


def test_what_is_no_principal_is_an_error_on_stdout(run_kafka: Run, admin: ottla.Admin) -> None:
    ran = run_kafka(ACLS, "--add", "--allow-principal", "alice", "--topic", "t")
    said = "expected a string in format principalType:principalName but got alice"
    assert (ran.code, ran.out) == (1, f"Error while executing ACL command: {said}\n")
    assert admin.describe_acls() == []
