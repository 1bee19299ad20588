"""What a user gives to a producer."""

from __future__ import annotations

from typing import Any

import pytest

import ottla
from ottla.client.errors import UserError
from ottla.client.producer.options import ProducerGroup, group_of


@pytest.mark.spec("CFG-081", "CFG-088", "CFG-102")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"value_serializer": "json"}, "value_serializer='json': expected a callable"),
        ({"key_serializer": 5}, "key_serializer=5: expected a callable"),
        ({"partitioner": "random"}, "partitioner='random': expected a callable"),
        ({"interceptors": [object()]}, "interceptors: expected ProducerInterceptor"),
        ({"linger": 5}, "linger: Producer has no such option; did you mean linger_ms?"),
        ({"config": {"linger": 5}}, "linger: Producer has no such option"),
        ({"acks": 1, "transactional_id": "x"}, "acks=1: expected all with transactional.id"),
    ],
)
def test_a_wrong_option_is_named_before_anything_starts(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as told:
        ottla.Producer(**options)
    assert said in str(told.value)


def test_a_group_is_named_or_described() -> None:
    assert group_of("g") == ProducerGroup("g")
    described = ProducerGroup("g", 3, "member")
    assert group_of(described) is described
    with pytest.raises(UserError, match="expected a group id or group metadata"):
        group_of(5)  # type: ignore[arg-type]
