"""What has settings."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ottla.api.config_resources import ConfigKind, Resource, answer_each, unsupported
from ottla.model.errors import ErrorCode, KafkaError

T, U = Resource(ConfigKind.TOPIC, "t"), Resource(ConfigKind.TOPIC, "u")


async def test_one_refusal_leaves_the_others_alone() -> None:
    async def alter(resource: Resource) -> None:
        if resource == T:
            raise KafkaError(ErrorCode.invalid_config, "why")

    items = [SimpleNamespace(resource_type=kind, resource_name=name) for kind, name in (T, U)]
    said = await answer_each(items, alter)
    assert said["responses"] == [
        {
            "error_code": ErrorCode.invalid_config,
            "error_message": "why",
            "resource_type": 2,
            "resource_name": "t",
        },
        {
            "error_code": ErrorCode.none,
            "error_message": None,
            "resource_type": 2,
            "resource_name": "u",
        },
    ]


@pytest.mark.parametrize("kind", [0, 3, 99])
def test_an_unknown_kind_is_named_in_the_refusal(kind: int) -> None:
    refusal = unsupported(Resource(kind, "x"))
    assert refusal.code is ErrorCode.invalid_request
    assert str(kind) in str(refusal)
