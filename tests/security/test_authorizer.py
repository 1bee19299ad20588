"""Decisions by the ACLs in force."""

from __future__ import annotations

import logging

import pytest

from ottla.net.request_slot import Peer
from ottla.security.acl import Kind, Operation, Rules
from ottla.security.authorizer import CACHED_DECISIONS_MAX, Authorizer
from tests.security.acl_rules import ALICE, HOME, deny, rule


def peer(principal: str = ALICE) -> Peer:
    one = Peer(HOME, 1, "PLAINTEXT", "PLAINTEXT")
    one.principal = principal
    return one


def reads(authorizer: Authorizer, who: Peer, name: str = "orders") -> bool:
    return authorizer.allows(who, Operation.READ, Kind.TOPIC, name)


@pytest.mark.spec("SEC-04")
def test_without_an_authorizer_everybody_may_do_everything() -> None:
    assert reads(Authorizer(), peer())
    assert Authorizer().allows_some(peer(), Operation.WRITE, Kind.TOPIC)


@pytest.mark.spec("SEC-04")
def test_until_rules_are_read_only_super_users_and_brokers_may_do_anything() -> None:
    authorizer = Authorizer(in_force=True, super_users=["User:root"], open_by_default=True)
    broker = peer()
    broker.is_broker = True
    assert not reads(authorizer, peer())
    assert not authorizer.allows_some(peer(), Operation.WRITE, Kind.TOPIC)
    assert reads(authorizer, peer("User:root"))
    assert authorizer.allows_some(peer("User:root"), Operation.WRITE, Kind.TOPIC)
    assert reads(authorizer, broker)


@pytest.mark.parametrize("open_by_default", [False, True])
def test_what_no_rule_speaks_of_is_as_the_cluster_is_set_up(open_by_default: bool) -> None:
    authorizer = Authorizer(in_force=True, open_by_default=open_by_default)
    authorizer.follow(Rules([rule()]))
    assert reads(authorizer, peer())
    assert reads(authorizer, peer(), "other") is open_by_default
    assert not authorizer.allows(peer(), Operation.WRITE, Kind.TOPIC, "orders")
    assert authorizer.allows_some(peer(), Operation.WRITE, Kind.TOPIC) is open_by_default


def test_a_changed_acl_applies_to_clients_that_were_authorized_before() -> None:
    authorizer = Authorizer(in_force=True)
    authorizer.follow(Rules([rule()]))
    assert reads(authorizer, peer())
    authorizer.follow(Rules([rule(), deny()]))
    assert not reads(authorizer, peer())


def test_the_cache_of_decisions_is_bounded() -> None:
    authorizer = Authorizer(in_force=True)
    authorizer.follow(Rules([rule(name="*")]))
    for number in range(CACHED_DECISIONS_MAX + 10):
        assert reads(authorizer, peer(), f"topic-{number}")
    assert len(authorizer._decisions) <= CACHED_DECISIONS_MAX


def test_every_denial_is_in_the_audit_log_and_filtering_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    authorizer = Authorizer(in_force=True)
    authorizer.follow(Rules())
    with caplog.at_level(logging.INFO, "ottla.security.audit"):
        authorizer.allows(peer(), Operation.READ, Kind.TOPIC, "filtered", log_denial=False)
        authorizer.operations(peer(), Kind.TOPIC, "asked")
        assert not caplog.records
        reads(authorizer, peer(), "or\nders")
    assert caplog.messages == [
        f"denied: principal={ALICE} host={HOME} operation=READ resource_type=TOPIC "
        "resource_name='or\\nders'"
    ]


def test_what_may_be_done_is_a_bit_for_each_operation() -> None:
    authorizer = Authorizer(in_force=True)
    authorizer.follow(Rules([rule()]))
    read_and_describe = 1 << Operation.READ | 1 << Operation.DESCRIBE
    assert authorizer.operations(peer(), Kind.TOPIC, "orders") == read_and_describe
    everything = sum(1 << number for number in (3, 4, 5, 6, 7, 8, 10, 11))
    assert Authorizer().operations(peer(), Kind.TOPIC, "orders") == everything
