"""DescribeProducers."""

from __future__ import annotations

from ottla.api.describe_producers import API
from ottla.model.errors import ErrorCode
from tests.api.transaction_requests import transacting
from tests.fakes.data_side import TP


async def test_who_writes_to_a_partition_is_shown_with_what_is_open() -> None:
    async with transacting() as broker:
        await broker.side.append(b"before")
        me = await broker.begun()
        await broker.add(me)
        await broker.write(me)
        asked = [{"name": TP.topic, "partition_indexes": [0, 9]}]
        said = await broker.ask(API, topics=asked)
        first, unknown = said.topics[0].partitions
        [producer] = first.active_producers
        assert [producer.producer_id, producer.producer_epoch] == list(me)
        assert (producer.last_sequence, producer.current_txn_start_offset) == (0, 1)
        assert unknown.error_code is ErrorCode.unknown_topic_or_partition
        odd = await broker.ask(API, topics=[{"name": "a/b", "partition_indexes": [0]}])
        [part] = odd.topics[0].partitions
        assert part.error_code is ErrorCode.invalid_topic_exception
        await broker.end(me, version=4)
        said = await broker.ask(API, topics=asked)
        [producer] = said.topics[0].partitions[0].active_producers
        assert (producer.coordinator_epoch, producer.current_txn_start_offset) == (0, -1)
