"""Access rules that are looked at, over a socket."""

from __future__ import annotations

import pytest

from ottla.model.errors import ErrorCode
from ottla.security.acl import Kind, Operation, Pattern
from ottla.testing import Broker
from tests.api.acl_requests import OPEN, created, describe_reply, described, rule
from tests.raw_requests import Line


@pytest.mark.spec("SEC-04")
def test_rules_are_found_by_any_part_of_them() -> None:
    write = rule(operation=Operation.WRITE, principal="User:alice", host="10.0.0.1")
    group = rule(resource_type=Kind.GROUP, resource_name="g", resource_pattern_type=4)
    with Broker(OPEN) as broker, Line(broker.bootstrap_servers) as line:
        created(line, rule(), write, group)
        for version in (1, 2, 3):
            assert described(line, version) == [("orders", 3), ("orders", 4), ("g", 3)]
        assert described(line, resource_type_filter=Kind.GROUP) == [("g", 3)]
        assert described(line, principal_filter="User:alice") == [("orders", 4)]
        assert described(line, host_filter="10.0.0.1") == [("orders", 4)]
        assert described(line, operation=Operation.DELETE) == []
        matched = described(line, resource_name_filter="gold", pattern_type_filter=Pattern.MATCH)
        assert matched == [("g", 3)]
        assert (
            describe_reply(line, operation=Operation.UNKNOWN).error_code
            is ErrorCode.invalid_request
        )


def test_without_an_authorizer_there_are_no_acls(ottla_broker: Broker) -> None:
    with Line(ottla_broker.bootstrap_servers) as line:
        reply = describe_reply(line)
        assert reply.error_code is ErrorCode.security_disabled
        assert "No Authorizer is configured" in reply.error_message
