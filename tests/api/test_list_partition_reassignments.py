"""ListPartitionReassignments."""

from __future__ import annotations

import pytest

from ottla.api.list_partition_reassignments import API
from ottla.controller.events import NewTopic
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from tests.api.handler_client import ask
from tests.fakes.control_plane import control_plane, settle


@pytest.mark.spec("REP-73")
async def test_moves_under_way_are_listed_all_or_by_name() -> None:
    async with control_plane() as plane:
        one, two = await plane.start(1), await plane.start(2)
        await settle()
        new = NewTopic("t", assignment={0: (one.id,)})
        await one.controller.create_topics([new], 5_000)
        await one.controller.reassign_partitions({TopicPartition("t", 0): (two.id,)}, 5_000)
        said = await ask(one, API, {"timeout": 5_000, "topics": None})
        (topic,) = said.topics
        (moving,) = topic.partitions
        assert (topic.name, moving.replicas) == ("t", (2, 1))
        assert (moving.adding_replicas, moving.removing_replicas) == ((2,), (1,))
        other = [{"name": "t", "partition_indexes": [1]}]
        said = await ask(one, API, {"timeout": 5_000, "topics": other})
        assert said.topics == ()
        said = await ask(two, API, {"timeout": 5_000, "topics": None})
        assert said.error_code is ErrorCode.not_controller
