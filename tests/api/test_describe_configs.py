"""DescribeConfigs."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.api.config_resources import ConfigKind
from ottla.api.describe_configs import API
from ottla.controller.events import NewTopic
from ottla.model.errors import ErrorCode
from tests.api.handler_client import ask
from tests.fakes.control_plane import Node, control_plane


async def describe(
    node: Node, kind: int, name: str, *keys: str, version: int = -1, **fields: object
) -> Any:
    resource = {
        "resource_type": kind,
        "resource_name": name,
        "configuration_keys": list(keys) or None,
    }
    asked = {"include_synonyms": True, "include_documentation": False, **fields}
    said = await ask(node, API, {"resources": [resource], **asked}, version)
    (result,) = said.results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


@pytest.mark.parametrize("version", API.versions)
async def test_a_topics_settings_come_with_where_they_come_from(version: int) -> None:
    async with control_plane() as plane:
        one = await plane.start(1, {"log.retention.ms": "9"})
        new = NewTopic("t", config={"segment.ms": "5"})
        await one.controller.create_topics([new], 5_000)
        said = await describe(
            one, ConfigKind.TOPIC, "t", "retention.ms", "segment.ms", version=version
        )
        assert said.error_message == ""
        entries = {entry.name: entry for entry in said.configs}
        assert sorted(entries) == ["retention.ms", "segment.ms"]
        assert (entries["segment.ms"].value, entries["segment.ms"].config_source) == ("5", 1)
        assert entries["retention.ms"].config_source == 4
        assert entries["retention.ms"].synonyms[0].name == "log.retention.ms"


async def test_everything_is_described_when_nothing_is_named() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await one.controller.create_topics([NewTopic("t")], 5_000)
        topic = await describe(one, ConfigKind.TOPIC, "t", include_synonyms=False)
        assert len(topic.configs) > 25
        assert all(entry.synonyms == () for entry in topic.configs)
        broker = await describe(one, ConfigKind.BROKER, "1", include_documentation=True)
        assert len(broker.configs) > 100
        assert all(entry.documentation for entry in broker.configs)


async def test_settings_of_all_brokers_are_only_those_that_were_changed() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        assert (await describe(one, ConfigKind.BROKER, "")).configs == ()
        changed = {"min.insync.replicas": "2"}
        await one.shared.configs.change_broker(None, lambda _: changed)
        (entry,) = (await describe(one, ConfigKind.BROKER, "")).configs
        assert (entry.name, entry.value, entry.config_source) == ("min.insync.replicas", "2", 3)


async def test_a_groups_settings_come_from_it_or_from_the_broker() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        changed = {"consumer.session.timeout.ms": "50000"}
        await one.shared.configs.change_group("g", lambda _: changed)
        entries = (await describe(one, ConfigKind.GROUP, "g")).configs
        assert [(entry.name, entry.value, entry.config_source) for entry in entries] == [
            ("consumer.heartbeat.interval.ms", "5000", 5),
            ("consumer.session.timeout.ms", "50000", 8),
        ]
        assert len((await describe(one, ConfigKind.GROUP, "nobody")).configs) == 2


async def test_loggers_have_levels() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        said = await describe(one, ConfigKind.BROKER_LOGGER, "1", "ottla.controller.runtime.loop")
        (entry,) = said.configs
        assert (entry.name, entry.config_source) == ("ottla.controller.runtime.loop", 6)
        assert entry.value in {"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"}


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (ConfigKind.TOPIC, "missing", ErrorCode.unknown_topic_or_partition),
        (ConfigKind.TOPIC, "a/b", ErrorCode.invalid_topic_exception),
        (ConfigKind.BROKER, "7", ErrorCode.invalid_request),
        (ConfigKind.BROKER, "one", ErrorCode.invalid_request),
        (ConfigKind.BROKER_LOGGER, "", ErrorCode.invalid_request),
        (ConfigKind.GROUP, "", ErrorCode.invalid_request),
        (99, "x", ErrorCode.invalid_request),
    ],
)
async def test_what_cannot_be_described_is_refused(kind: int, name: str, code: ErrorCode) -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        said = await describe(one, kind, name)
        assert said.error_code is code
        assert said.configs == ()
