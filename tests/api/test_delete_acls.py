"""Access rules that go, over a socket."""

from __future__ import annotations

import pytest

from ottla.model.errors import ErrorCode
from ottla.security.acl import Kind, Operation
from ottla.testing import Broker
from tests.api.acl_requests import EVERYTHING, OPEN, created, deleted, described, rule
from tests.raw_requests import Line


@pytest.mark.spec("SEC-04")
@pytest.mark.parametrize("version", [1, 2, 3])
def test_each_filter_says_what_went_and_an_unsound_one_takes_nothing(version: int) -> None:
    write = rule(operation=Operation.WRITE)
    group = rule(resource_type=Kind.GROUP, resource_name="g")
    some = EVERYTHING | {"operation": Operation.WRITE}
    unsound = EVERYTHING | {"operation": Operation.UNKNOWN}
    with Broker(OPEN) as broker, Line(broker.bootstrap_servers) as line:
        created(line, rule(), write, group)
        gone, refused = deleted(line, some, unsound, version=version)
        assert (gone.error_code, refused.error_code) == (ErrorCode.none, ErrorCode.invalid_request)
        [one] = gone.matching_acls
        assert (one.resource_name, one.operation) == ("orders", Operation.WRITE)
        assert not refused.matching_acls
        assert described(line) == [("orders", 3), ("g", 3)]


def test_where_no_rule_can_hold_none_can_go(ottla_broker: Broker) -> None:
    with Line(ottla_broker.bootstrap_servers) as line:
        [said] = deleted(line, EVERYTHING)
        assert said.error_code is ErrorCode.security_disabled
