"""The producer as a whole: what waits, and how it ends."""

from __future__ import annotations

import asyncio

import pytest

from ottla.client.errors import UserError
from tests.client.producer.broker_rig import producing, until
from tests.fakes.scripted_broker import METADATA, PRODUCE, ScriptedBroker


@pytest.mark.spec("PRD-57", "PRD-28")
@pytest.mark.real_loop
async def test_closing_waits_for_what_was_sent_and_takes_nothing_more() -> None:
    async with ScriptedBroker() as broker, producing(broker, linger_ms=20_000) as producer:
        delivery = await producer.send("t", b"lingers")
        await producer.close()
        assert (await delivery).offset == 0
        with pytest.raises(UserError, match="the producer is closed"):
            await producer.send("t", b"")
        await producer.close()


@pytest.mark.spec("PRD-28")
@pytest.mark.real_loop
async def test_closing_with_too_little_time_gives_up_the_rest() -> None:
    async with ScriptedBroker() as broker, producing(broker) as producer:
        await (await producer.send("t", b"there"))
        broker.hold()
        delivery = await producer.send("t", b"held")
        await producer.close(timeout=0.05)
        with pytest.raises(ConnectionAbortedError):
            await delivery


@pytest.mark.spec("PRD-57")
@pytest.mark.real_loop
async def test_a_flush_waits_for_what_was_sent_before_it_and_lets_nothing_linger() -> None:
    async with ScriptedBroker() as broker, producing(broker, linger_ms=20_000) as producer:
        deliveries = [await producer.send("t", b"%d" % number) for number in range(3)]
        await producer.flush()
        assert all(each.done() for each in deliveries)
        assert broker.count(PRODUCE) == 1
        await producer.flush()


@pytest.mark.spec("PRD-06", "PRD-13", "PRD-16")
@pytest.mark.real_loop
async def test_a_partition_that_does_not_exist_is_waited_for_until_time_is_up() -> None:
    async with ScriptedBroker() as broker:
        async with producing(broker, max_block_ms=60_000) as producer:
            async with asyncio.TaskGroup() as tasks:
                sending = tasks.create_task(producer.send("t", b"", partition=4))
                await until(lambda: broker.count(METADATA) > 2)
                broker.topics["t"] = 5
            await sending.result()
            assert broker.arrived[0].tp.partition == 4
        async with producing(broker, max_block_ms=60) as producer:
            delivery = await producer.send("t", b"", partition=9)
            assert isinstance(delivery.exception(0), TimeoutError)


@pytest.mark.spec("CFG-084", "PRD-50")
@pytest.mark.real_loop
async def test_metadata_is_renewed_by_itself_and_unused_topics_are_forgotten() -> None:
    async with (
        ScriptedBroker(topics={"t": 1, "u": 1}) as broker,
        producing(broker, metadata_max_age_ms=20) as producer,
    ):
        await producer.partitions_for("u")
        await (await producer.send("t", b""))
        before = broker.count(METADATA)
        while broker.count(METADATA) < before + 2:
            await (await producer.send("t", b""))
        asked = [each for key, _, each in broker.asked if key == METADATA][-1]
        assert [each.name for each in asked.topics] == ["t"]
