"""DeleteTopics."""

from __future__ import annotations

from uuid import UUID

import pytest

from ottla.api.delete_topics import API
from ottla.controller.events import NewTopic
from ottla.model.errors import ErrorCode
from tests.api.handler_client import ask
from tests.fakes.control_plane import control_plane


async def test_topics_go_by_name_and_by_id() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await one.controller.create_topics([NewTopic("t"), NewTopic("u")], 5_000)
        ids = {name: topic.id for name, topic in one.metadata.image.topics.items()}
        topics = [{"name": "t", "topic_id": None}, {"name": None, "topic_id": ids["u"]}]
        said = await ask(one, API, {"topics": topics, "timeout": 5_000})
        told = [(r.name, r.topic_id, r.error_code) for r in said.responses]
        assert told == [
            ("t", ids["t"], ErrorCode.none),
            ("u", ids["u"], ErrorCode.none),
        ]
        assert one.metadata.image.topics == {}


@pytest.mark.parametrize("version", API.versions[:-1])
async def test_older_versions_name_topics(version: int) -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await one.controller.create_topics([NewTopic("t")], 5_000)
        said = await ask(one, API, {"topic_names": ["t", "v"], "timeout": 5_000}, version)
        assert {r.name: r.error_code for r in said.responses} == {
            "t": ErrorCode.none,
            "v": ErrorCode.unknown_topic_or_partition,
        }


async def test_what_names_no_topic_or_two_is_refused() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        topics = [
            {"name": None, "topic_id": UUID(int=7)},
            {"name": None, "topic_id": None},
            {"name": "t", "topic_id": UUID(int=7)},
            {"name": "u", "topic_id": None},
            {"name": "u", "topic_id": None},
        ]
        said = await ask(one, API, {"topics": topics, "timeout": 5_000})
        assert [r.error_code for r in said.responses] == [
            ErrorCode.unknown_topic_id,
            ErrorCode.invalid_request,
            ErrorCode.invalid_request,
            ErrorCode.invalid_request,
        ]


@pytest.mark.spec("CFG-058")
@pytest.mark.parametrize(
    ("version", "code"),
    [(2, ErrorCode.invalid_request), (4, ErrorCode.topic_deletion_disabled)],
)
async def test_deletion_can_be_disabled(version: int, code: ErrorCode) -> None:
    async with control_plane() as plane:
        one = await plane.start(1, {"delete.topic.enable": "false"})
        await one.controller.create_topics([NewTopic("t")], 5_000)
        said = await ask(one, API, {"topic_names": ["t"], "timeout": 5_000}, version)
        assert [r.error_code for r in said.responses] == [code]
        assert "t" in one.metadata.image.topics
