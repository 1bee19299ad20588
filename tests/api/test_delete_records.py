"""DeleteRecords, in the words of every version."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.api.delete_records import API
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from tests.fakes.api_side import Caller, api_side
from tests.fakes.data_side import ME, OTHER


async def deleted(
    caller: Caller, *asked: tuple[str, int, int], version: int = -1, patience_ms: int = 1_000
) -> list[tuple[str, int, int, ErrorCode]]:
    topics: dict[str, list[dict[str, int]]] = {}
    for topic, index, offset in asked:
        topics.setdefault(topic, []).append({"partition_index": index, "offset": offset})
    named: Any = [{"name": name, "partitions": parts} for name, parts in topics.items()]
    said = await caller.ask(API, version, topics=named, timeout=patience_ms)
    return [
        (topic.name, one.partition_index, one.low_watermark, one.error_code)
        for topic in said.topics
        for one in topic.partitions
    ]


@pytest.mark.spec("REP-70", "REP-78")
@pytest.mark.parametrize("version", API.versions)
async def test_each_partition_is_answered_with_its_low_watermark(version: int) -> None:
    async with api_side() as side:
        keys = [TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)]
        for key in keys:
            await side.data.lead(key)
            for _ in range(4):
                await side.data.append(b"x", key=key)
        asked = (("t", 1, 2), ("t", 0, -1), ("u", 0, 9), ("v", 0, 1))
        assert await deleted(side.caller, *asked, version=version) == [
            ("t", 1, 2, ErrorCode.none),
            ("t", 0, 4, ErrorCode.none),
            ("u", 0, -1, ErrorCode.offset_out_of_range),
            ("v", 0, -1, ErrorCode.unknown_topic_or_partition),
        ]


@pytest.mark.spec("DLY-30")
async def test_the_clients_own_patience_is_the_limit() -> None:
    async with api_side() as side:
        await side.data.lead(replicas=(ME, OTHER))
        await side.data.append(b"x")
        side.data.start_fetch(1, replica_id=OTHER, max_wait_ms=0)
        [(_, _, _, code)] = await deleted(side.caller, ("t", 0, 1), patience_ms=300)
        assert (code, side.data.clock.mono_ms()) == (ErrorCode.request_timed_out, 300)
