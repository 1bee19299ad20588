"""DescribeTopicPartitions: topics by name, a page at a time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.api.describe_topic_partitions import API
from ottla.controller.events import NewTopic
from ottla.model.errors import ErrorCode
from tests.api.allowed import ON_TOPIC
from tests.api.handler_client import ask
from tests.fakes.control_plane import Node, control_plane


def fields(*names: str, limit: int = 2_000, cursor: tuple[str, int] | None = None) -> Any:
    return {
        "topics": [{"name": name} for name in names],
        "response_partition_limit": limit,
        "cursor": cursor and {"topic_name": cursor[0], "partition_index": cursor[1]},
    }


def shown(said: Any) -> list[tuple[str, int]]:
    return [(t.name, p.partition_index) for t in said.topics for p in t.partitions]


def following(said: Any) -> tuple[str, int] | None:
    cursor = said.next_cursor
    return None if cursor is None else (cursor.topic_name, cursor.partition_index)


async def with_topics(node: Node, **counts: int) -> None:
    topics = [NewTopic(name, count) for name, count in counts.items()]
    await node.controller.create_topics(topics, 5_000)


async def test_topics_come_in_the_order_of_their_names() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await with_topics(one, c=1, a=2, b=1)
        everything = [("a", 0), ("a", 1), ("b", 0), ("c", 0)]
        said = await ask(one, API, fields())
        assert (shown(said), following(said)) == (everything, None)
        assert said.topics[0].topic_authorized_operations == ON_TOPIC
        assert said.topics[0].topic_id == one.metadata.image.topics["a"].id
        said = await ask(one, API, fields("c", "a", "c"))
        assert shown(said) == [("a", 0), ("a", 1), ("c", 0)]


@settings(max_examples=30)
@given(
    counts=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    limit=st.integers(-1, 12),
    cap=st.integers(1, 12),
)
async def test_pages_joined_are_the_whole_and_none_is_larger_than_asked(
    counts: list[int], limit: int, cap: int
) -> None:
    async with control_plane() as plane:
        one = await plane.start(1, {"max.request.partition.size.limit": str(cap)})
        names = {f"t{at}": count for at, count in enumerate(counts)}
        await with_topics(one, **names)
        pages: list[tuple[str, int]] = []
        cursor = None
        while True:
            said = await ask(one, API, fields(limit=limit, cursor=cursor))
            assert len(shown(said)) <= max(1, min(limit, cap))
            pages += shown(said)
            cursor = following(said)
            if cursor is None:
                break
            assert cursor > pages[-1]
        assert pages == [(name, at) for name, n in names.items() for at in range(n)]


async def test_topics_that_are_not_there_are_named_with_their_errors() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await with_topics(one, a=1)
        said = await ask(one, API, fields("a", "missing", "no/name"))
        assert {topic.name: topic.error_code for topic in said.topics} == {
            "a": ErrorCode.none,
            "missing": ErrorCode.unknown_topic_or_partition,
            "no/name": ErrorCode.invalid_topic_exception,
        }


@pytest.mark.parametrize("cursor", [("a", -1), ("b", 0)])
async def test_a_cursor_that_points_nowhere_is_refused(cursor: tuple[str, int]) -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await with_topics(one, a=1)
        said = await ask(one, API, fields("a", cursor=cursor))
        assert [topic.error_code for topic in said.topics] == [ErrorCode.invalid_request]
