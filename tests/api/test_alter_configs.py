"""AlterConfigs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ottla.api.alter_configs import API
from ottla.api.config_resources import ConfigKind
from ottla.controller.events import NewTopic
from ottla.model.errors import ErrorCode
from tests.api.handler_client import ask
from tests.fakes.control_plane import Node, control_plane


async def alter(
    node: Node, kind: int, name: str, overrides: Mapping[str, str | None], **fields: Any
) -> ErrorCode:
    configs = [{"name": key, "value": value} for key, value in overrides.items()]
    resource = {"resource_type": kind, "resource_name": name, "configs": configs}
    version = fields.pop("version", -1)
    asked = {"resources": [resource], "validate_only": False, **fields}
    (result,) = (await ask(node, API, asked, version)).responses
    code: ErrorCode = result.error_code
    return code


@pytest.mark.parametrize("version", API.versions)
async def test_what_is_not_named_is_forgotten(version: int) -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        new = NewTopic("t", config={"segment.ms": "5"})
        await one.controller.create_topics([new], 5_000)
        said = await alter(one, ConfigKind.TOPIC, "t", {"retention.ms": "7"}, version=version)
        assert said is ErrorCode.none
        assert one.config.topic_overrides("t") == {"retention.ms": "7"}


async def test_a_broker_is_changed_and_only_where_it_may_be() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        good = {"log.cleaner.threads": "2"}
        assert await alter(one, ConfigKind.BROKER, "1", good) is ErrorCode.none
        assert one.config.current.log_cleaner_threads == 2
        fixed = {"broker.id": "2"}
        assert await alter(one, ConfigKind.BROKER, "1", fixed) is ErrorCode.invalid_request
        logger = {"root": "INFO"}
        assert await alter(one, ConfigKind.BROKER_LOGGER, "1", logger) is ErrorCode.invalid_request


async def test_trying_out_changes_nothing() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await one.controller.create_topics([NewTopic("t")], 5_000)
        wanted = {"retention.ms": "7"}
        said = await alter(one, ConfigKind.TOPIC, "t", wanted, validate_only=True)
        assert said is ErrorCode.none
        assert one.config.topic_overrides("t") == {}
        nothing = {"retention.ms": None}
        assert await alter(one, ConfigKind.TOPIC, "t", nothing) is ErrorCode.invalid_request
