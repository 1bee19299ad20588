"""Access rules that are made, over a socket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ottla.model.errors import ErrorCode
from ottla.security.acl import Kind, Operation
from ottla.testing import Broker
from tests.api.acl_requests import OPEN, created, described, rule
from tests.raw_requests import Line


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(OPEN) as broker:
        yield broker


@pytest.mark.spec("SEC-04")
@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_rule_is_made_once_however_often_it_is_asked_for(broker: Broker, version: int) -> None:
    name = f"made-by-{version}"
    read = rule(resource_name=name)
    write = rule(resource_name=name, operation=Operation.WRITE)
    with Line(broker.bootstrap_servers) as line:
        assert created(line, read, write, read, version=version) == [ErrorCode.none] * 3
        assert described(line, resource_name_filter=name) == [(name, 3), (name, 4)]


@pytest.mark.parametrize(
    "changed", [{"operation": Operation.ANY}, {"resource_type": 99}, {"principal": "alice"}]
)
def test_an_unsound_rule_is_refused_and_the_others_are_made(
    broker: Broker, changed: dict[str, Any]
) -> None:
    name = f"beside-{next(iter(changed))}"
    with Line(broker.bootstrap_servers) as line:
        both = (rule(resource_name=name) | changed, rule(resource_name=name))
        assert created(line, *both) == [ErrorCode.invalid_request, ErrorCode.none]
        assert described(line, resource_name_filter=name) == [(name, 3)]


def test_no_rule_is_made_where_none_can_hold(ottla_broker: Broker) -> None:
    with Line(ottla_broker.bootstrap_servers) as line:
        group = rule(resource_type=Kind.GROUP)
        assert created(line, rule(), group) == [ErrorCode.security_disabled] * 2
