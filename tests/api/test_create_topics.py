"""CreateTopics."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.api.create_topics import API
from ottla.model.errors import ErrorCode
from tests.api.handler_client import ask
from tests.api.topic_fields import topic
from tests.fakes.control_plane import Node, control_plane


async def create(node: Node, *topics: dict[str, object], version: int = -1, **fields: Any) -> Any:
    asked = {"topics": topics, "timeout": 5_000, "validate_only": False, **fields}
    return (await ask(node, API, asked, version)).topics


async def test_the_reply_tells_the_id_the_numbers_and_the_settings() -> None:
    async with control_plane() as plane:
        one = await plane.start(1, {"num.partitions": "2"})
        configs = [{"name": "retention.ms", "value": "77"}]
        (made,) = await create(one, topic("t", configs=configs))
        assert made.error_code is ErrorCode.none
        assert made.topic_id == one.metadata.image.topics["t"].id
        assert (made.num_partitions, made.replication_factor) == (2, 1)
        entries = {entry.name: entry for entry in made.configs}
        assert (entries["retention.ms"].value, entries["retention.ms"].config_source) == (
            "77",
            1,
        )
        assert entries["cleanup.policy"].value == "delete"
        assert entries["cleanup.policy"].config_source == 5


@pytest.mark.parametrize("version", API.versions)
async def test_every_version_creates(version: int) -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        asked = topic("t", num_partitions=3, replication_factor=1)
        (made,) = await create(one, asked, version=version)
        assert made.error_code is ErrorCode.none
        assert len(one.metadata.image.topics["t"].partitions) == 3


async def test_trying_out_tells_the_same_and_creates_nothing() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        configs = [{"name": "retention.ms", "value": "77"}]
        (made,) = await create(one, topic("t", configs=configs), validate_only=True)
        assert made.error_code is ErrorCode.none
        assert made.num_partitions == 1
        assert {e.name: e.value for e in made.configs}["retention.ms"] == "77"
        assert one.metadata.image.topics == {}


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (topic(""), ErrorCode.invalid_topic_exception),
        (topic(".."), ErrorCode.invalid_topic_exception),
        (topic("a/b"), ErrorCode.invalid_topic_exception),
        (topic("x" * 250), ErrorCode.invalid_topic_exception),
        (topic("t", num_partitions=0), ErrorCode.invalid_partitions),
        (topic("t", num_partitions=1_000_000), ErrorCode.policy_violation),
        (topic("t", replication_factor=2), ErrorCode.invalid_replication_factor),
        (
            topic("t", assignments=[{"partition_index": 0, "broker_ids": [1, 1]}]),
            ErrorCode.invalid_replica_assignment,
        ),
        (
            topic("t", assignments=[{"partition_index": 0, "broker_ids": [1]}] * 2),
            ErrorCode.invalid_replica_assignment,
        ),
        (topic("t", configs=[{"name": "retention.ms", "value": "x"}]), ErrorCode.invalid_config),
        (topic("t", configs=[{"name": "retention.ms", "value": None}]), ErrorCode.invalid_config),
        (topic("t", configs=[{"name": "nonsense", "value": "x"}]), ErrorCode.invalid_config),
    ],
)
async def test_a_bad_topic_is_refused_with_kafkas_code_and_a_reason(
    asked: dict[str, object], code: ErrorCode
) -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        (refused,) = await create(one, asked)
        assert refused.error_code is code
        assert refused.error_message
        assert refused.topic_id is None


async def test_the_same_topic_twice_is_answered_once_and_not_created() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        said = await create(one, topic("t"), topic("t"), topic("u"))
        assert {t.name: t.error_code for t in said} == {
            "t": ErrorCode.invalid_request,
            "u": ErrorCode.none,
        }
        (again,) = await create(one, topic("u"))
        assert again.error_code is ErrorCode.topic_already_exists


async def test_a_broker_that_is_not_the_controller_says_so_for_every_topic() -> None:
    async with control_plane() as plane:
        await plane.start(1)
        two = await plane.start(2)
        said = await create(two, topic("t"), topic("u"))
        assert {t.error_code for t in said} == {ErrorCode.not_controller}
