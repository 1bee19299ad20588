"""Appending to an internal topic in batches it can hold, in the codec it wants."""

from __future__ import annotations

import asyncio

import pytest

from ottla.coordinator.deferred_reply import wait_for_commit
from ottla.coordinator.group.records import tombstone
from ottla.coordinator.internal_topic_log import InternalTopicLog
from ottla.model.errors import ErrorCode
from ottla.protocol.records.batch import read_header
from ottla.protocol.records.compression import Codec
from tests.coordinator.group_coordinator import OFFSETS
from tests.fakes.data_side import ME, OTHER, DataSide, data_side

RECORDS = [tombstone(f"group-{number}") for number in range(200)]


def topic_log(side: DataSide, codec: Codec = Codec.NONE) -> InternalTopicLog:
    return InternalTopicLog(side.hosted, timeout_ms=500, codec=codec)


@pytest.mark.spec("GRP-58")
@pytest.mark.parametrize(("topic", "expected"), [("producer", Codec.GZIP), ("lz4", Codec.LZ4)])
async def test_records_are_in_the_codec_of_the_topic_or_else_of_the_setting(
    topic: str, expected: Codec
) -> None:
    async with data_side({"compression.type": topic}) as side:
        partition = await side.lead(OFFSETS)
        batch = topic_log(side, Codec.GZIP).batch(partition, RECORDS, None)
        assert read_header(batch).codec is expected
        assert await topic_log(side).append(partition, batch) is ErrorCode.none


async def test_parts_are_no_larger_than_the_topics_largest_batch() -> None:
    async with data_side({"message.max.bytes": "2000"}) as side:
        partition = await side.lead(OFFSETS)
        parts = topic_log(side).parts(partition, RECORDS)
        assert [record for part in parts for record in part] == RECORDS
        sizes = [len(topic_log(side).batch(partition, part, None)) for part in parts]
        assert len(sizes) > 1 and max(sizes) <= 2000
        assert topic_log(side).parts(partition, RECORDS[:1]) == [RECORDS[:1]]


async def test_all_that_stands_in_the_log_is_waited_for_no_longer_than_allowed() -> None:
    async with data_side() as side:
        partition = await side.lead(OFFSETS, replicas=(ME, OTHER))
        assert topic_log(side).settled(partition) is None
        batch = topic_log(side).batch(partition, RECORDS, None)
        appended = topic_log(side).append(partition, batch)
        settled = topic_log(side).settled(partition)
        assert settled is not None
        for waiting in (appended, settled):
            assert await waiting is ErrorCode.coordinator_not_available


async def test_whoever_stops_waiting_disturbs_nobody() -> None:
    async with data_side() as side:
        partition = await side.lead(OFFSETS, replicas=(ME, OTHER))
        batch = topic_log(side).batch(partition, RECORDS, None)
        waiting = asyncio.ensure_future(wait_for_commit(topic_log(side).append(partition, batch)))
        await side.settle()
        waiting.cancel()
        await asyncio.sleep(1)
        assert len(side.hosted.waiting.commits) == 0
