"""Access rules as requests carry them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.api.acl_rules import read_filter, read_rule, resources, whole
from ottla.model.errors import ErrorCode, KafkaError
from ottla.security.acl import Kind, Operation, Pattern, Permission
from tests.api.acl_requests import EVERYTHING, rule


def test_a_rule_is_read_and_said_again() -> None:
    asked = rule(resource_pattern_type=4, host="10.0.0.1", permission_type=2)
    read = read_rule(SimpleNamespace(**asked))
    told = dict(whole(read))
    assert told.pop("error_code") is ErrorCode.none
    assert told.pop("error_message") is None
    assert told | {"resource_pattern_type": told.pop("pattern_type")} == asked


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"resource_type": Kind.ANY}, "must not be UNKNOWN or ANY"),
        ({"resource_type": 99}, "99 is not a valid Kind"),
        ({"operation": Operation.ANY}, "must not be UNKNOWN or ANY"),
        ({"operation": 99}, "99 is not a valid Operation"),
        ({"permission_type": Permission.ANY}, "must not be UNKNOWN or ANY"),
        ({"permission_type": 0}, "must not be UNKNOWN or ANY"),
        ({"resource_pattern_type": Pattern.MATCH}, "must be LITERAL or PREFIXED"),
        ({"resource_name": ""}, "resource name must not be empty"),
        ({"resource_type": Kind.CLUSTER, "resource_name": "cluster"}, "kafka-cluster"),
        ({"principal": "alice"}, "invalid principal 'alice'"),
        ({"principal": "User:"}, "invalid principal 'User:'"),
        ({"host": ""}, "host must not be empty"),
    ],
)
def test_what_is_wrong_with_a_rule_is_said(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(KafkaError, match=said) as refused:
        read_rule(SimpleNamespace(**rule(**changed)))
    assert refused.value.code is ErrorCode.invalid_request


@pytest.mark.parametrize(
    "changed",
    [{"operation": 0}, {"operation": 99}, {"resource_type_filter": 0}, {"pattern_type_filter": 9}],
)
def test_a_filter_with_an_unknown_word_is_refused(changed: dict[str, int]) -> None:
    with pytest.raises(KafkaError) as refused:
        read_filter(SimpleNamespace(**EVERYTHING | changed))
    assert refused.value.code is ErrorCode.invalid_request


async def test_rules_of_one_resource_are_told_together() -> None:
    named = [rule(), rule(operation=4), rule(resource_name="other")]
    told = await resources([read_rule(SimpleNamespace(**one)) for one in named])
    assert [(one["resource_name"], len(one["acls"])) for one in told] == [  # type: ignore[arg-type]
        ("orders", 2),
        ("other", 1),
    ]
