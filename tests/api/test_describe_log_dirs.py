"""DescribeLogDirs: what each directory holds, and how much room there is."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from ottla.api.describe_log_dirs import API
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from tests.fakes.api_side import ApiSide, api_side

DIRS = ("/a", "/b")
KEYS = [TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)]


async def fill(side: ApiSide) -> None:
    for key in KEYS:
        await side.data.lead(key)
        await side.data.append(b"x", key=key)


def held(directory: Any) -> set[tuple[str, int]]:
    return {(t.name, p.partition_index) for t in directory.topics for p in t.partitions}


@pytest.mark.parametrize("version", API.versions)
async def test_every_version_tells_what_is_where(version: int) -> None:
    async with api_side(dirs=DIRS) as side:
        await fill(side)
        said = await side.caller.ask(API, version, topics=None)
        first, second = said.results
        assert (first.log_dir, second.log_dir) == DIRS
        assert held(first) == {("t", 0), ("u", 0)}
        assert held(second) == {("t", 1)}
        [one] = second.topics[0].partitions
        size = side.data.hosted.get(KEYS[1]).log.size
        assert (one.partition_size, one.offset_lag, one.is_future_key) == (size, 0, False)
        if version >= 4:
            assert 0 < first.usable_bytes < first.total_bytes


async def test_only_what_is_asked_for_is_told() -> None:
    async with api_side(dirs=DIRS) as side:
        await fill(side)
        asked = [{"topic": "t", "partitions": [1, 7]}]
        said = await side.caller.ask(API, topics=asked)
        assert [held(one) for one in said.results] == [set(), {("t", 1)}]
        said = await side.caller.ask(API, topics=[])
        assert [held(one) for one in said.results] == [set(), set()]


async def test_a_failed_directory_is_told_as_such() -> None:
    async with api_side(dirs=DIRS) as side:
        await fill(side)
        side.data.directories.failed(Path("/b"), OSError(errno.EIO, "broken"))
        said = await side.caller.ask(API, topics=None)
        assert [(one.log_dir, one.error_code) for one in said.results] == [
            ("/a", ErrorCode.none),
            ("/b", ErrorCode.kafka_storage_error),
        ]
        assert held(said.results[1]) == set()
        assert (said.results[1].total_bytes, said.results[1].usable_bytes) == (-1, -1)


@pytest.mark.spec("REP-75")
async def test_a_partition_on_the_move_is_told_in_both_places() -> None:
    async with api_side(dirs=DIRS) as side:
        await fill(side)
        side.data.services.moves.begin(KEYS[0], Path("/b"))
        said = await side.caller.ask(API, topics=[{"topic": "t", "partitions": [0]}])
        copies = [one.topics[0].partitions[0] for one in said.results]
        assert [(one.is_future_key, one.offset_lag) for one in copies] == [
            (False, 0),
            (True, 1),
        ]
