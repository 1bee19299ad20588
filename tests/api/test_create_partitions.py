"""CreatePartitions."""

from __future__ import annotations

import pytest

from ottla.api.create_partitions import API
from ottla.controller.events import NewTopic
from ottla.model.errors import ErrorCode
from tests.api.handler_client import ask
from tests.fakes.control_plane import control_plane


def asked(*topics: tuple[str, int, list[list[int]] | None]) -> dict[str, object]:
    return {
        "topics": [
            {
                "name": name,
                "count": count,
                "assignments": None if chosen is None else [{"broker_ids": ids} for ids in chosen],
            }
            for name, count, chosen in topics
        ],
        "timeout": 5_000,
        "validate_only": False,
    }


@pytest.mark.parametrize("version", API.versions)
async def test_partitions_are_added(version: int) -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await one.controller.create_topics([NewTopic("t")], 5_000)
        said = await ask(one, API, asked(("t", 3, None)), version)
        assert [r.error_code for r in said.results] == [ErrorCode.none]
        assert len(one.metadata.image.topics["t"].partitions) == 3


async def test_each_refusal_has_its_code() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        made = [NewTopic(name, 2) for name in ("few", "same", "short", "wild", "twice")]
        await one.controller.create_topics(made, 5_000)
        request = asked(
            ("few", 1, None),
            ("same", 2, None),
            ("short", 4, [[1]]),
            ("wild", 3, [[9]]),
            ("missing", 3, None),
            ("twice", 3, None),
            ("twice", 4, None),
        )
        said = await ask(one, API, request)
        assert {r.name: r.error_code for r in said.results} == {
            "few": ErrorCode.invalid_partitions,
            "same": ErrorCode.invalid_partitions,
            "short": ErrorCode.invalid_replica_assignment,
            "wild": ErrorCode.invalid_replica_assignment,
            "missing": ErrorCode.unknown_topic_or_partition,
            "twice": ErrorCode.invalid_request,
        }
        refused = API.refuse
        assert refused is not None
