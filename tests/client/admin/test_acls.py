from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

import ottla
import ottla.aio
from ottla import AclFilter, AclRule, ErrorCode, KafkaError, UserError
from ottla.client.admin import AclKind, AclOperation, AclPattern, AclPermission
from ottla.client.admin.acls import _deleted_rules, _rule
from ottla.security.acl import Filter, Rule
from ottla.testing import Broker

READ = AclRule.allow("User:alice", "read", "topic", "orders")
PAY = AclRule.deny("User:bob", "write", "topic", "pay-", pattern="prefixed", host="10.0.0.7")
ALL_GROUPS = AclRule.allow("User:*", AclOperation.READ, AclKind.GROUP, "*")
CLUSTER = AclRule.allow("User:operator", "alter", "cluster")
RULES = [READ, PAY, ALL_GROUPS, CLUSTER]


@pytest.fixture(scope="module")
def guarded() -> Iterator[Broker]:
    """A broker with an authorizer, where the tests themselves may do everything."""
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with Broker(settings) as broker:
        yield broker


@pytest.fixture
def guard(guarded: Broker) -> Iterator[ottla.Admin]:
    """Its admin; rules are gone afterwards."""
    with ottla.Admin(bootstrap_servers=guarded.bootstrap_servers) as admin:
        yield admin
        admin.delete_acls([AclFilter()]).all()


@pytest.mark.spec("SEC-04", "TOOL-18")
def test_rules_are_added_described_and_deleted(guard: ottla.Admin) -> None:
    assert guard.create_acls(RULES).all() == dict.fromkeys(RULES)
    assert guard.describe_acls() == sorted(RULES)
    wanted = AclFilter("topic", permission="deny")
    assert guard.delete_acls([wanted, AclFilter.exactly(CLUSTER)]).all() == {
        wanted: [PAY],
        AclFilter.exactly(CLUSTER): [CLUSTER],
    }
    assert guard.describe_acls() == sorted([READ, ALL_GROUPS])


def test_a_rule_added_twice_is_there_once(guard: ottla.Admin) -> None:
    guard.create_acls([READ, READ]).all()
    guard.create_acls([READ]).all()
    assert guard.describe_acls() == [READ]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (AclFilter("topic"), [READ, PAY]),
        (AclFilter("topic", "pay-"), [PAY]),
        (AclFilter("topic", "pay-roll"), []),
        (AclFilter("topic", "pay-roll", pattern="match"), [PAY]),
        (AclFilter("group", "billing", pattern=AclPattern.MATCH), [ALL_GROUPS]),
        (AclFilter(principal="User:alice"), [READ]),
        (AclFilter(host="10.0.0.7"), [PAY]),
        (AclFilter(operation="read", permission="allow"), [READ, ALL_GROUPS]),
        (AclFilter.exactly(CLUSTER), [CLUSTER]),
    ],
    ids=str,
)
def test_a_filter_finds_what_it_describes(
    guard: ottla.Admin, wanted: AclFilter, found: list[AclRule]
) -> None:
    guard.create_acls(RULES).all()
    assert guard.describe_acls(wanted) == found


@pytest.mark.real_loop
async def test_the_admin_for_asyncio_knows_rules_too(guarded: Broker) -> None:
    async with ottla.aio.Admin(bootstrap_servers=guarded.bootstrap_servers) as admin:
        (await admin.create_acls([READ])).all()
        assert (await admin.delete_acls([AclFilter()])).one() == [READ]


def test_a_cluster_without_an_authorizer_says_so(admin: ottla.Admin) -> None:
    with pytest.raises(KafkaError, match="Authorizer") as refused:
        admin.describe_acls()
    assert refused.value.code is ErrorCode.security_disabled
    for outcomes in (admin.create_acls([READ]), admin.delete_acls([AclFilter()])):
        [failure] = outcomes.failed.values()
        assert isinstance(failure, KafkaError) and failure.code is ErrorCode.security_disabled


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda: AclRule.allow("User:a", "reed", "topic", "t"), "operation 'reed': .*write"),
        (lambda: AclRule.allow("User:a", "read", "table", "t"), "kind 'table': .*topic"),
        (lambda: AclRule.allow("User:a", "read", "topic"), "name of a topic"),
        (lambda: AclFilter(pattern="regex"), "pattern 'regex': .*match"),
        (lambda: AclFilter(permission="maybe"), "permission 'maybe': .*deny"),
    ],
)
def test_a_word_that_does_not_exist_is_refused_where_it_is_written(
    mistake: Callable[[], object], said: str
) -> None:
    with pytest.raises(UserError, match=said):
        mistake()


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (READ._replace(principal=""), "principal '': expected User:NAME"),
        (READ._replace(principal="alice"), "principal 'alice': expected User:NAME"),
        (READ._replace(principal="User:"), "expected User:NAME"),
        (READ._replace(name=""), "name: "),
        (READ._replace(host=""), "host: "),
        (READ._replace(kind=AclKind.ANY), "kind any"),
        (READ._replace(pattern=AclPattern.MATCH), "pattern match"),
        (READ._replace(operation=AclOperation.UNKNOWN), "operation unknown"),
        (READ._replace(permission=AclPermission.ANY), "permission any"),
        (READ._replace(permission=cast(Any, "may")), "permission 'may'"),
        (CLUSTER._replace(name="mine"), "always named kafka-cluster"),
        (cast(AclRule, "User:alice"), "list of AclRule"),
    ],
)
def test_an_unsound_rule_is_refused_before_anything_is_sent(rule: AclRule, said: str) -> None:
    nowhere = ottla.Admin(bootstrap_servers="127.0.0.1:1")
    with nowhere as admin, pytest.raises(UserError, match=said):
        admin.create_acls([READ, rule])


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (AclFilter(principal="alice"), "principal 'alice': expected User:NAME"),
        (AclFilter(name=""), "name: "),
        (AclFilter(kind=AclKind.UNKNOWN), "kind: "),
        (cast(AclFilter, READ), "expected AclFilter"),
    ],
    ids=str,
)
def test_an_unsound_filter_is_refused_before_anything_is_sent(wanted: AclFilter, said: str) -> None:
    with ottla.Admin(bootstrap_servers="127.0.0.1:1") as admin:
        with pytest.raises(UserError, match=said):
            admin.describe_acls(wanted)
        with pytest.raises(UserError, match=said):
            admin.delete_acls([wanted])


def test_a_single_filter_is_not_taken_for_a_list() -> None:
    with (
        ottla.Admin(bootstrap_servers="127.0.0.1:1") as admin,
        pytest.raises(UserError, match="expected AclFilter"),
    ):
        admin.delete_acls(cast(Any, AclFilter()))


@pytest.mark.parametrize(
    "text", ["describe-configs", "DESCRIBE_CONFIGS", "DescribeConfigs", "describe configs"]
)
def test_words_may_be_spelled_as_people_do(text: str) -> None:
    assert AclFilter(operation=text).operation is AclOperation.DESCRIBE_CONFIGS


def test_rules_and_filters_say_what_they_mean() -> None:
    assert str(READ) == "allow User:alice to read topic orders"
    assert str(PAY) == "deny User:bob to write topic pay-... from 10.0.0.7"
    assert str(AclFilter()) == "every rule"
    assert str(AclFilter("topic", operation="read")) == "rules with kind topic, operation read"


@pytest.mark.parametrize("one", [READ, AclFilter("topic", "t", host="*")], ids=str)
def test_rules_and_filters_can_be_copied_and_pickled(one: Rule | Filter) -> None:
    for other in (copy.copy(one), pickle.loads(pickle.dumps(one))):
        assert (type(other), other) == (type(one), one)


def row(**fields: Any) -> Any:
    entry = {"principal": "User:a", "host": "*", "operation": 3, "permission_type": 3}
    resource = {"resource_type": 2, "resource_name": "t", "pattern_type": 3}
    fine = {"error_code": ErrorCode.none, "error_message": None}
    return SimpleNamespace(**{**entry, **resource, **fine, **fields})


def test_words_of_a_newer_broker_are_unknown() -> None:
    rule = _rule(row(operation=99), row(resource_type=99))
    assert (rule.operation, rule.kind) == (AclOperation.UNKNOWN, AclKind.UNKNOWN)


def test_a_rule_that_could_not_be_deleted_fails_its_filter() -> None:
    stuck = row(error_code=ErrorCode.unknown_server_error, error_message="stuck")
    told = _deleted_rules(row(matching_acls=[row(), stuck]))
    assert isinstance(told, KafkaError) and told.message == "stuck"
    assert _deleted_rules(row(matching_acls=[row()])) == [
        AclRule.allow("User:a", "read", "topic", "t")
    ]
