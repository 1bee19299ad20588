"""AlterReplicaLogDirs: partitions that really move, while they are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.api.alter_replica_log_dirs import API
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from tests.fakes.api_side import Caller, api_side
from tests.fakes.data_side import TP
from tests.log.memory_directories import values

pytestmark = pytest.mark.spec("REP-75")

DIRS = ("/a", "/b")


async def move(
    caller: Caller, path: str, *keys: TopicPartition, version: int = -1
) -> dict[TopicPartition, ErrorCode]:
    topics: Any = [{"name": key.topic, "partitions": [key.partition]} for key in keys]
    said = await caller.ask(API, version, dirs=[{"path": path, "topics": topics}])
    return {
        TopicPartition(topic.topic_name, one.partition_index): one.error_code
        for topic in said.results
        for one in topic.partitions
    }


@pytest.mark.parametrize("version", API.versions)
async def test_a_partition_moves_while_it_is_written(version: int) -> None:
    async with api_side(dirs=DIRS) as side:
        partition = await side.data.lead()
        side.data.run(side.data.services.moves.run())
        sent = []
        for index in range(100):
            if index == 30:
                codes = await move(side.caller, "/b", TP, version=version)
                assert codes == {TP: ErrorCode.none}
            sent.append(b"%d" % index)
            outcome = await side.data.append(sent[-1])
            assert outcome.base_offset == index
        await side.data.settle()
        assert partition.log.dir == Path("/b/t-0")
        assert values(partition.log) == sent


async def test_what_cannot_be_moved_is_said_for_each_partition() -> None:
    async with api_side(dirs=DIRS) as side:
        await side.data.lead()
        nowhere = TopicPartition("u", 0)
        assert await move(side.caller, "/c", TP, nowhere) == {
            TP: ErrorCode.log_dir_not_found,
            nowhere: ErrorCode.log_dir_not_found,
        }
        unknown = {nowhere: ErrorCode.unknown_topic_or_partition}
        assert await move(side.caller, "/b", nowhere) == unknown
        assert await move(side.caller, "/a", TP) == {TP: ErrorCode.none}
        assert side.data.directories.futures == {}, "it is there already"


async def test_a_partition_that_is_not_here_yet_is_made_where_it_was_asked_for() -> None:
    async with api_side(dirs=DIRS) as side:
        await side.data.lead()
        side.data.hosted.remove(TP)
        side.data.directories.delete(TP)
        assert await move(side.caller, "/b", TP) == {TP: ErrorCode.replica_not_available}
        partition = await side.data.lead(epoch=1)
        assert partition.log.dir == Path("/b/t-0")
