"""AlterPartitionReassignments."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.api.alter_partition_reassignments import API
from ottla.controller.events import NewTopic
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from tests.api.handler_client import ask
from tests.fakes.control_plane import Node, control_plane, settle


async def move(node: Node, replicas: list[int] | None, version: int = -1, **fields: Any) -> Any:
    partitions = [{"partition_index": 0, "replicas": replicas}]
    asked = {"timeout": 5_000, "topics": [{"name": "t", "partitions": partitions}], **fields}
    said = await ask(node, API, asked, version)
    assert said.error_code is ErrorCode.none
    return said.responses[0].partitions[0].error_code


@pytest.mark.spec("REP-73")
@pytest.mark.parametrize("version", API.versions)
async def test_a_move_is_begun_and_called_off(version: int) -> None:
    async with control_plane() as plane:
        one, two = await plane.start(1), await plane.start(2)
        await settle()
        new = NewTopic("t", assignment={0: (one.id,)})
        await one.controller.create_topics([new], 5_000)
        assert await move(one, [2], version) is ErrorCode.none
        assert TopicPartition("t", 0) in one.controller.reassignments()
        assert await move(one, None, version) is ErrorCode.none
        assert one.controller.reassignments() == {}
        assert await move(one, None, version) is ErrorCode.no_reassignment_in_progress
        assert two.held.deleted == [] or two.held.deleted == [TopicPartition("t", 0)]


async def test_what_cannot_be_moved_there_is_refused() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        assert await move(one, [1]) is ErrorCode.unknown_topic_or_partition
        await one.controller.create_topics([NewTopic("t")], 5_000)
        assert await move(one, [9]) is ErrorCode.invalid_replica_assignment
        assert await move(one, []) is ErrorCode.invalid_replica_assignment
