"""A broker that has access rules: asked over its socket, and restarted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from ottla.model.errors import ErrorCode, UserError
from ottla.security.acl import CLUSTER_NAME, Kind, Operation, Pattern, Permission
from ottla.testing import Broker
from tests.asking import INIT_PRODUCER_ID, Line, batch, produced

DESCRIBE_ACLS: Final = 29
CREATE_ACLS: Final = 30
DELETE_ACLS: Final = 31
AUTHORIZER: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
}
OPEN: Final = AUTHORIZER | {"super.users": "User:ANONYMOUS"}
EVERYTHING: Final = {
    "resource_type_filter": Kind.ANY,
    "resource_name_filter": None,
    "pattern_type_filter": Pattern.ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": Operation.ANY,
    "permission_type": Permission.ANY,
}


def rule(**changed: Any) -> dict[str, Any]:
    return {
        "resource_type": Kind.TOPIC,
        "resource_name": "orders",
        "resource_pattern_type": Pattern.LITERAL,
        "principal": "User:ANONYMOUS",
        "host": "*",
        "operation": Operation.READ,
        "permission_type": Permission.ALLOW,
        **changed,
    }


def created(line: Line, *rules: dict[str, Any], version: int = 3) -> list[ErrorCode]:
    reply = line.ask(CREATE_ACLS, version, creations=rules)
    return [one.error_code for one in reply.results]


def described(line: Line, **changed: Any) -> list[tuple[str, int]]:
    reply = line.ask(DESCRIBE_ACLS, 3, **EVERYTHING | changed)
    assert reply.error_code is ErrorCode.none, reply.error_message
    return [
        (resource.resource_name, acl.operation)
        for resource in reply.resources
        for acl in resource.acls
    ]


@pytest.fixture
def line() -> Iterator[Line]:
    with Broker(OPEN) as broker, Line(broker.bootstrap_servers) as line:
        yield line


@pytest.mark.spec("SEC-04")
@pytest.mark.parametrize("version", [1, 2, 3])
def test_rules_are_created_described_and_deleted(line: Line, version: int) -> None:
    write = rule(operation=Operation.WRITE)
    group = rule(resource_type=Kind.GROUP, resource_name="g", resource_pattern_type=4)
    assert created(line, rule(), write, group, rule(), version=version) == [ErrorCode.none] * 4
    assert described(line) == [("orders", 3), ("orders", 4), ("g", 3)]
    assert described(line, resource_type_filter=Kind.GROUP) == [("g", 3)]
    assert described(line, resource_name_filter="gold", pattern_type_filter=Pattern.MATCH) == [
        ("g", 3)
    ]
    some = EVERYTHING | {"operation": Operation.WRITE}
    unsound = EVERYTHING | {"operation": Operation.UNKNOWN}
    reply = line.ask(DELETE_ACLS, version, filters=[some, unsound])
    gone, refused = reply.filter_results
    assert [one.operation for one in gone.matching_acls] == [Operation.WRITE]
    assert (gone.error_code, refused.error_code) == (ErrorCode.none, ErrorCode.invalid_request)
    assert described(line) == [("orders", 3), ("g", 3)]


@pytest.mark.parametrize(
    "changed",
    [
        {"resource_type": Kind.ANY},
        {"resource_type": 99},
        {"operation": Operation.ANY},
        {"operation": 99},
        {"permission_type": Permission.ANY},
        {"permission_type": 0},
        {"resource_pattern_type": Pattern.MATCH},
        {"resource_name": ""},
        {"resource_type": Kind.CLUSTER, "resource_name": "cluster"},
        {"principal": "alice"},
        {"principal": "User:"},
        {"host": ""},
    ],
)
def test_an_unsound_rule_is_refused_and_the_others_are_kept(
    line: Line, changed: dict[str, Any]
) -> None:
    assert created(line, rule(**changed), rule()) == [ErrorCode.invalid_request, ErrorCode.none]
    assert described(line) == [("orders", 3)]


def test_without_an_authorizer_there_are_no_rules() -> None:
    with Broker() as broker, Line(broker.bootstrap_servers) as line:
        assert created(line, rule()) == [ErrorCode.security_disabled]
        reply = line.ask(DESCRIBE_ACLS, 3, **EVERYTHING)
        assert reply.error_code is ErrorCode.security_disabled
        assert "authorizer.class.name" in reply.error_message
        [deleted] = line.ask(DELETE_ACLS, 3, filters=[EVERYTHING]).filter_results
        assert deleted.error_code is ErrorCode.security_disabled


@pytest.mark.spec("SEC-03", "SEC-04")
def test_rules_outlive_the_broker_and_hold_for_a_client_that_is_no_super_user(
    tmp_path: Path,
) -> None:
    cluster = {"resource_type": Kind.CLUSTER, "resource_name": CLUSTER_NAME}
    with Broker(OPEN, data_dir=tmp_path) as broker, Line(broker.bootstrap_servers) as line:
        assert produced(line, "orders", batch("made")).error_code is ErrorCode.none
        produced(line, "secrets", batch("made"))
        write, here = rule(operation=Operation.WRITE), {"host": "127.0.0.1"}
        assert created(line, write | here, rule() | {"host": "10.1.2.3"}) == [ErrorCode.none] * 2
    with Broker(AUTHORIZER, data_dir=tmp_path) as broker, Line(broker.bootstrap_servers) as line:
        assert produced(line, "orders", batch("more")).error_code is ErrorCode.none
        refused = produced(line, "secrets", batch("no"))
        assert refused.error_code is ErrorCode.topic_authorization_failed
        assert created(line, rule(**cluster)) == [ErrorCode.cluster_authorization_failed]
        reply = line.ask(DESCRIBE_ACLS, 3, **EVERYTHING)
        assert reply.error_code is ErrorCode.cluster_authorization_failed


@pytest.mark.spec("TXN-29", "SEC-04")
def test_two_phase_commit_is_for_those_who_may() -> None:
    def initialised(line: Line, *, two_phase: bool) -> object:
        asked = {"transactional_id": "pay", "transaction_timeout": 60_000}
        nobody = {"producer_id": -1, "producer_epoch": -1}
        how = {"enable2_pc": two_phase, "keep_prepared_txn": False}
        return line.ask(INIT_PRODUCER_ID, 6, **asked, **nobody, **how).error_code

    mine = {"resource_type": Kind.TRANSACTIONAL_ID, "resource_name": "pay"}
    settings = AUTHORIZER | {"allow.everyone.if.no.acl.found": "true"}
    with Broker(settings) as broker, Line(broker.bootstrap_servers) as line:
        assert created(line, rule(**mine, operation=Operation.WRITE)) == [ErrorCode.none]
        assert initialised(line, two_phase=False) is ErrorCode.none
        refused = ErrorCode.transactional_id_authorization_failed
        assert initialised(line, two_phase=True) is refused
        permit = rule(**mine, operation=Operation.TWO_PHASE_COMMIT)
        assert created(line, permit) == [ErrorCode.none]
        assert initialised(line, two_phase=True) is ErrorCode.none


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"authorizer.class.name": "com.example.Mine"},
            "authorizer.class.name='com.example.Mine': expected",
        ),
        ({"super.users": "admin"}, "super.users='admin': expected a type and a name"),
        ({"allow.everyone.if.no.acl.found": "maybe"}, "allow.everyone.if.no.acl.found='maybe'"),
    ],
)
def test_a_mistake_in_these_settings_is_said_before_anything_starts(
    settings: dict[str, str], said: str
) -> None:
    with pytest.raises(UserError, match=said), Broker(settings):
        pass
