from __future__ import annotations

import asyncio
from typing import Any

import pytest

import ottla
import ottla.aio
from ottla import TopicPartition
from ottla.client.consumer.errors import ConcurrentUse, Wakeup
from ottla.client.consumer.rebalance_listener import RebalanceListener
from tests.client.consumer.conftest import WAIT_S, Filled

Consumer = ottla.aio.Consumer


def options(bootstrap: str, **more: Any) -> dict[str, Any]:
    return {"bootstrap_servers": bootstrap, "auto_offset_reset": "earliest", **more}


@pytest.mark.real_loop
async def test_records_come_by_poll_and_by_iteration(bootstrap: str, filled: Filled) -> None:
    topic = filled(1, 20)
    async with Consumer(topic, **options(bootstrap, group_id="aio")) as consumer:
        first = await consumer.poll(WAIT_S, max_records=5)
        assert [record.offset for record in first] == [0, 1, 2, 3, 4]
        seen: list[int] = []
        async for record in consumer:
            seen.append(record.offset)
            if record.offset == 9:
                break
        assert seen == [5, 6, 7, 8, 9]
        assert await consumer.position(TopicPartition(topic, 0)) == 10
        await consumer.commit()
        assert (await consumer.committed([TopicPartition(topic, 0)])).popitem()[1].offset == 10
        rest = await consumer.poll(WAIT_S)
        assert [record.offset for record in rest] == [*range(10, 20)]


@pytest.mark.real_loop
async def test_a_seek_in_the_middle_of_an_iteration_counts_at_once(
    bootstrap: str, filled: Filled
) -> None:
    topic = filled(1, 20)
    here = TopicPartition(topic, 0)
    async with Consumer(**options(bootstrap)) as consumer:
        consumer.assign([here])
        seen: list[int] = []
        async for record in consumer:
            seen.append(record.offset)
            if record.offset == 2 and len(seen) < 5:
                consumer.seek(here, 18)
            if record.offset == 19:
                break
        assert seen == [0, 1, 2, 18, 19]


@pytest.mark.spec("CON-27")
@pytest.mark.real_loop
async def test_listeners_may_be_coroutines_that_use_the_consumer(
    bootstrap: str, filled: Filled
) -> None:
    topic = filled(2, 10)
    offsets: dict[TopicPartition, int] = {}

    class Seeking(RebalanceListener):
        async def on_assigned(self, partitions: frozenset[TopicPartition]) -> None:
            offsets.update(await consumer.end_offsets(partitions))
            consumer.seek_to_end()

    async with Consumer(**options(bootstrap, group_id="aio-listener")) as consumer:
        consumer.subscribe([topic], listener=Seeking())
        assert await consumer.poll(1.0) == []
        assert offsets == {TopicPartition(topic, 0): 5, TopicPartition(topic, 1): 5}
        assert await consumer.partitions_for(topic) == (0, 1)


@pytest.mark.spec("CON-49")
@pytest.mark.real_loop
async def test_a_second_task_is_told_who_is_inside(bootstrap: str, filled: Filled) -> None:
    async with Consumer(filled(1), **options(bootstrap)) as consumer:
        async with asyncio.TaskGroup() as tasks:
            polling = tasks.create_task(consumer.poll(WAIT_S), name="polling")
            await asyncio.sleep(0.1)
            with pytest.raises(ConcurrentUse, match="while task 'polling' was inside"):
                await consumer.poll(0)
            polling.cancel()
        assert await consumer.poll(0) == []


@pytest.mark.spec("CON-50")
@pytest.mark.real_loop
async def test_wakeup_ends_a_poll(bootstrap: str, filled: Filled) -> None:
    async with Consumer(filled(1), **options(bootstrap)) as consumer:
        asyncio.get_running_loop().call_later(0.1, consumer.wakeup)
        with pytest.raises(Wakeup):
            await consumer.poll(WAIT_S)


@pytest.mark.real_loop
async def test_columns_come_by_poll_arrow(bootstrap: str, filled: Filled) -> None:
    topic = filled(2, 10)
    async with Consumer(topic, **options(bootstrap)) as consumer:
        rows = 0
        while rows < 10:
            table = await consumer.poll_arrow(WAIT_S)
            rows += table.num_rows
        assert table.column_names == [
            "topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value",
        ]  # fmt: skip
        assert (await consumer.poll_arrow(0)).num_rows == 0
        assert consumer.metrics()["records-consumed-total"] == 10


@pytest.mark.real_loop
async def test_a_consumer_is_used_inside_its_block(bootstrap: str) -> None:
    consumer = Consumer("t", **options(bootstrap))
    with pytest.raises(ottla.UserError, match="async with"):
        await consumer.poll(0)
    async with consumer:
        pass
    await consumer.close()
    with pytest.raises(ottla.UserError, match="async with"):
        consumer.pause()
