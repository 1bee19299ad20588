"""The producer for asyncio."""

from __future__ import annotations

import asyncio

import pytest

from tests.client.producer.broker_rig import producing, until
from tests.fakes.scripted_broker import ScriptedBroker


@pytest.mark.spec("PRD-25")
@pytest.mark.real_loop
async def test_memory_is_waited_for_without_stopping_the_loop() -> None:
    options = {"buffer_memory": 1_000, "batch_size": 1_000}
    async with ScriptedBroker() as broker, producing(broker, **options) as producer:
        await (await producer.send("t", b"0"))
        broker.hold()
        first = await producer.send("t", b"1")
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(producer.send("t", b"2", partition=0))
            await until(lambda: producer.metrics()["waiting-threads"] == 1)
            assert not waiting.done()
            broker.release()
        await first
        await waiting.result()
        assert producer.metrics()["waiting-threads"] == 0


@pytest.mark.real_loop
async def test_one_who_waits_for_memory_may_be_cancelled_or_run_out_of_time() -> None:
    options = {"buffer_memory": 1_000, "batch_size": 1_000, "max_block_ms": 60}
    async with ScriptedBroker() as broker, producing(broker, **options) as producer:
        await (await producer.send("t", b"0"))
        broker.hold()
        await producer.send("t", b"1")
        late = await producer.send("t", b"2", partition=0)
        assert "is full" in str(late.exception(0))
        async with asyncio.TaskGroup() as tasks:
            cancelled = tasks.create_task(producer.send("t", b"3", partition=0))
            await until(lambda: producer.metrics()["waiting-threads"] == 1)
            cancelled.cancel()
        assert producer.metrics()["waiting-threads"] == 0
        broker.release()


@pytest.mark.real_loop
async def test_one_who_never_waits_lets_the_sender_have_its_turn() -> None:
    async with ScriptedBroker() as broker, producing(broker, batch_size=200) as producer:
        for number in range(500):
            await producer.send("t", b"%d" % number)
        assert len(broker.arrived) > 10, "sent while the caller went on"
        await producer.flush()


@pytest.mark.real_loop
async def test_a_transaction_block_aborts_when_it_raises() -> None:
    async with ScriptedBroker() as broker:
        broker.features["transaction.version"] = 2
        async with producing(broker, transactional_id="x") as producer:
            await producer.init_transactions()
            with pytest.raises(ZeroDivisionError):
                async with producer.transaction():
                    await (await producer.send("t", b""))
                    raise ZeroDivisionError
            ends = [asked.committed for key, _, asked in broker.asked if key == 26]
            assert ends == [False]
