"""ElectLeaders."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.api.elect_leaders import API
from ottla.controller.events import NewTopic
from ottla.model.errors import ErrorCode
from tests.api.handler_client import ask
from tests.fakes.control_plane import control_plane, settle


def codes(said: Any) -> dict[tuple[str, int], ErrorCode]:
    return {
        (topic.topic, one.partition_id): one.error_code
        for topic in said.replica_election_results
        for one in topic.partition_result
    }


@pytest.mark.parametrize("version", API.versions)
async def test_a_leader_in_its_place_needs_no_election(version: int) -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        await one.controller.create_topics([NewTopic("t")], 5_000)
        asked = {
            "election_type": 0,
            "topic_partitions": [{"topic": "t", "partitions": [0, 7]}],
            "timeout": 5_000,
        }
        said = await ask(one, API, asked, version)
        assert codes(said) == {
            ("t", 0): ErrorCode.election_not_needed,
            ("t", 7): ErrorCode.unknown_topic_or_partition,
        }


async def test_a_preferred_replica_that_cannot_lead_is_named() -> None:
    async with control_plane() as plane:
        one, two = await plane.start(1), await plane.start(2)
        await settle()
        chosen = {0: (two.id, one.id)}
        await one.controller.create_topics([NewTopic("t", assignment=chosen)], 5_000)
        await plane.kill(2)
        everything = {"election_type": 0, "topic_partitions": None, "timeout": 5_000}
        said = await ask(one, API, everything)
        assert said.error_code is ErrorCode.none
        assert codes(said) == {("t", 0): ErrorCode.preferred_leader_not_available}
        unclean = {**everything, "election_type": 1}
        assert codes(await ask(one, API, unclean)) == {}


async def test_an_unknown_kind_of_election_is_refused() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        asked = {"election_type": 9, "topic_partitions": None, "timeout": 5_000}
        assert (await ask(one, API, asked)).error_code is ErrorCode.invalid_request
