"""IncrementalAlterConfigs."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from ottla.api.config_resources import ConfigKind
from ottla.api.incremental_alter_configs import API
from ottla.config.changes import AlterOperation
from ottla.controller.events import NewTopic
from ottla.model.errors import ErrorCode
from tests.api.handler_client import ask
from tests.fakes.control_plane import Node, control_plane

SET, DELETE, APPEND, SUBTRACT = AlterOperation
SESSION = "consumer.session.timeout.ms"


def resource(kind: int, name: str, *changes: tuple[str, int, str | None]) -> dict[str, object]:
    return {
        "resource_type": kind,
        "resource_name": name,
        "configs": [
            {"name": key, "config_operation": operation, "value": value}
            for key, operation, value in changes
        ],
    }


async def alter(node: Node, *resources: dict[str, object], dry: bool = False) -> Any:
    said = await ask(node, API, {"resources": resources, "validate_only": dry})
    return [result.error_code for result in said.responses]


async def test_single_overrides_of_a_topic_are_set_extended_and_deleted() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await one.controller.create_topics([NewTopic("t")], 5_000)
        change = resource(
            ConfigKind.TOPIC, "t", ("retention.ms", SET, "5"), ("cleanup.policy", APPEND, "compact")
        )
        assert await alter(one, change) == [ErrorCode.none]
        assert one.config.topic("t").retention_ms == 5
        assert one.config.topic("t").cleanup_policy == ("delete", "compact")
        change = resource(
            ConfigKind.TOPIC,
            "t",
            ("retention.ms", DELETE, None),
            ("cleanup.policy", SUBTRACT, "delete"),
        )
        assert await alter(one, change) == [ErrorCode.none]
        assert one.config.topic_overrides("t") == {"cleanup.policy": "compact"}


async def test_trying_out_refuses_the_same_and_changes_nothing() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await one.controller.create_topics([NewTopic("t")], 5_000)
        good = resource(ConfigKind.TOPIC, "t", ("retention.ms", SET, "5"))
        assert await alter(one, good, dry=True) == [ErrorCode.none]
        assert one.config.topic_overrides("t") == {}
        bad = resource(ConfigKind.TOPIC, "t", ("retention.ms", SET, "x"))
        assert await alter(one, bad, dry=True) == [ErrorCode.invalid_config]


async def test_brokers_are_changed_one_by_one_or_all_at_once() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        all_of_them = resource(ConfigKind.BROKER, "", ("min.insync.replicas", SET, "2"))
        this_one = resource(ConfigKind.BROKER, "1", ("log.cleaner.threads", SET, "2"))
        assert await alter(one, all_of_them, this_one) == [ErrorCode.none] * 2
        assert one.config.cluster == {"min.insync.replicas": "2"}
        assert one.config.broker == {"log.cleaner.threads": "2"}
        assert one.config.current.min_insync_replicas == 2


async def test_settings_of_a_group_need_no_group() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        change = resource(ConfigKind.GROUP, "g", (SESSION, SET, "50000"))
        assert await alter(one, change, dry=True) == [ErrorCode.none]
        assert one.config.groups == {}
        assert await alter(one, change) == [ErrorCode.none]
        assert one.config.group("g").consumer_session_timeout_ms == 50_000
        assert await alter(one, resource(ConfigKind.GROUP, "g", (SESSION, DELETE, None))) == [
            ErrorCode.none
        ]
        assert one.config.groups == {}


async def test_levels_of_loggers_change_until_the_process_ends() -> None:
    logger = logging.getLogger("ottla.tests.levels")
    async with control_plane() as plane:
        one = await plane.start(1)
        louder = resource(ConfigKind.BROKER_LOGGER, "1", (logger.name, SET, "DEBUG"))
        assert await alter(one, louder, dry=True) == [ErrorCode.none]
        assert logger.level == logging.NOTSET
        assert await alter(one, louder) == [ErrorCode.none]
        assert logger.level == logging.DEBUG
        quiet = resource(ConfigKind.BROKER_LOGGER, "1", (logger.name, DELETE, None))
        assert await alter(one, quiet) == [ErrorCode.none]
        assert logger.level == logging.NOTSET


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (
            resource(ConfigKind.TOPIC, "missing", ("retention.ms", SET, "5")),
            ErrorCode.unknown_topic_or_partition,
        ),
        (resource(ConfigKind.TOPIC, "t", ("nonsense", SET, "5")), ErrorCode.invalid_config),
        (resource(ConfigKind.TOPIC, "t", ("retention.ms", APPEND, "5")), ErrorCode.invalid_config),
        (resource(ConfigKind.TOPIC, "t", ("retention.ms", SET, None)), ErrorCode.invalid_request),
        (resource(ConfigKind.TOPIC, "t", ("retention.ms", 9, "1")), ErrorCode.invalid_request),
        (resource(ConfigKind.BROKER, "1", ("broker.id", SET, "5")), ErrorCode.invalid_request),
        (
            resource(ConfigKind.BROKER, "2", ("log.cleaner.threads", SET, "2")),
            ErrorCode.invalid_request,
        ),
        (resource(ConfigKind.BROKER_LOGGER, "", ("root", SET, "INFO")), ErrorCode.invalid_request),
        (resource(ConfigKind.GROUP, "g", ("x", SET, "y")), ErrorCode.invalid_config),
        (resource(ConfigKind.GROUP, "g", (SESSION, SET, "1")), ErrorCode.invalid_config),
        (resource(ConfigKind.GROUP, "g", (SESSION, APPEND, "50000")), ErrorCode.invalid_config),
        (resource(ConfigKind.GROUP, "", (SESSION, SET, "50000")), ErrorCode.invalid_request),
        (resource(ConfigKind.CLIENT_METRICS, "m", ("x", SET, "y")), ErrorCode.invalid_request),
    ],
)
async def test_what_cannot_be_changed_is_refused(
    change: dict[str, object], code: ErrorCode
) -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await one.controller.create_topics([NewTopic("t")], 5_000)
        assert await alter(one, change) == [code]


async def test_a_resource_named_twice_is_refused_once() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await one.controller.create_topics([NewTopic("t")], 5_000)
        change = resource(ConfigKind.TOPIC, "t", ("retention.ms", SET, "5"))
        assert await alter(one, change, change) == [ErrorCode.invalid_request]
        assert one.config.topic_overrides("t") == {}
