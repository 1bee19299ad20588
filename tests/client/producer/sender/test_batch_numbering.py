"""What a batch needs before it may go."""

from __future__ import annotations

import asyncio

import pytest

from ottla.client.errors import ErrorCode, KafkaError
from tests.client.producer.broker_rig import producing, until
from tests.fakes.scripted_broker import HANG_UP, INIT_PRODUCER_ID, PRODUCE, ScriptedBroker


@pytest.mark.spec("TXN-05")
@pytest.mark.real_loop
async def test_a_producer_id_is_asked_for_once_and_before_anything_is_sent() -> None:
    async with ScriptedBroker() as broker, producing(broker) as producer:
        busy = {"error_code": ErrorCode.coordinator_load_in_progress, "producer_id": -1,
                "producer_epoch": -1}  # fmt: skip
        broker.script(INIT_PRODUCER_ID, busy, HANG_UP)
        for number in range(3):
            await (await producer.send("t", b"%d" % number))
        assert broker.count(INIT_PRODUCER_ID) == 3
        keys = [key for key, _, _ in broker.asked if key in (INIT_PRODUCER_ID, PRODUCE)]
        assert keys == [INIT_PRODUCER_ID] * 3 + [PRODUCE] * 3
        assert {each.producer_id for each in broker.arrived} == {5}


@pytest.mark.spec("TXN-05")
@pytest.mark.real_loop
async def test_a_producer_that_may_not_write_is_told_at_once_and_may_try_again() -> None:
    async with ScriptedBroker() as broker, producing(broker) as producer:
        denied = {"error_code": ErrorCode.cluster_authorization_failed, "producer_id": -1,
                  "producer_epoch": -1}  # fmt: skip
        broker.script(INIT_PRODUCER_ID, denied)
        delivery = await producer.send("t", b"denied")
        async with asyncio.timeout(20):
            with pytest.raises(KafkaError, match="no ACL allows this user to write") as raised:
                await delivery
        assert raised.value.code is ErrorCode.cluster_authorization_failed
        assert (await (await producer.send("t", b"allowed by now"))).offset == 0
        assert broker.count(PRODUCE) == 1


@pytest.mark.real_loop
async def test_without_idempotence_nobody_asks_for_one() -> None:
    async with ScriptedBroker() as broker, producing(broker, acks=1) as producer:
        await (await producer.send("t", b""))
        assert broker.count(INIT_PRODUCER_ID) == 0
        assert broker.arrived[0].producer_id == -1


@pytest.mark.spec("TXN-05", "TXN-13")
@pytest.mark.real_loop
async def test_a_producer_that_begins_anew_is_another_to_the_broker() -> None:
    async with ScriptedBroker() as broker:
        for number in (5, 6):
            broker.script(
                INIT_PRODUCER_ID, {"error_code": 0, "producer_id": number, "producer_epoch": 0}
            )
            async with producing(broker) as producer:
                await (await producer.send("t", b"the same"))
        assert [each[1:4] for each in broker.arrived] == [(5, 0, 0), (6, 0, 0)]


@pytest.mark.spec("TXN-30")
@pytest.mark.real_loop
async def test_when_epochs_are_used_up_another_producer_id_is_taken() -> None:
    async with ScriptedBroker() as broker, producing(broker) as producer:
        last = {"error_code": 0, "producer_id": 5, "producer_epoch": 0x7FFF}
        broker.script(INIT_PRODUCER_ID, last)
        await (await producer.send("t", b"before"))
        broker.script(INIT_PRODUCER_ID, {**last, "producer_id": 6, "producer_epoch": 0})
        broker.script(PRODUCE, broker.refuse(ErrorCode.out_of_order_sequence_number))
        await (await producer.send("t", b"after"))
        await until(lambda: len(broker.arrived) == 2)
        assert [each[1:4] for each in broker.arrived] == [(5, 0x7FFF, 0), (6, 0, 0)]
