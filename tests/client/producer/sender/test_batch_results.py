"""Retry, split, expire or give up."""

from __future__ import annotations

import pytest

from ottla.client.errors import ErrorCode, RecordTooLarge
from tests.client.producer.broker_rig import producing
from tests.fakes.scripted_broker import PRODUCE, ScriptedBroker


@pytest.mark.spec("PRD-53")
@pytest.mark.real_loop
async def test_a_batch_that_is_too_large_is_halved_until_it_fits_and_that_is_no_retry() -> None:
    async with (
        ScriptedBroker() as broker,
        producing(broker, linger_ms=20_000, retries=1) as producer,
    ):

        def takes_small_ones(request: object) -> object:
            too_large = broker.refuse(ErrorCode.message_too_large)
            sizes: list[int] = [
                len(part.records)
                for topic in request.topic_data  # type: ignore[attr-defined]
                for part in topic.partition_data
            ]
            return too_large(request) if sum(sizes) > 400 else ...

        broker.script(PRODUCE, *[takes_small_ones] * 40)
        deliveries = [await producer.send("t", b"%3d" % n * 20) for n in range(20)]
        await producer.flush()
        assert [(await each).offset for each in deliveries] == list(range(20))
        sequences = [each.sequence for each in broker.arrived]
        assert sequences == sorted(sequences)
        assert broker.ends[broker.arrived[0].tp] == 20
        assert producer.metrics()["record-retry-total"] == 0


@pytest.mark.spec("PRD-51")
@pytest.mark.real_loop
async def test_a_single_record_that_is_too_large_fails() -> None:
    async with ScriptedBroker() as broker, producing(broker) as producer:
        broker.script(PRODUCE, broker.refuse(ErrorCode.message_too_large))
        with pytest.raises(RecordTooLarge):
            await (await producer.send("t", b"large"))


@pytest.mark.spec("PRD-27", "PRD-28")
@pytest.mark.real_loop
async def test_when_the_producer_is_closed_at_once_everything_is_given_up_and_told() -> None:
    async with ScriptedBroker() as broker, producing(broker, linger_ms=20_000) as producer:
        delivery = await producer.send("t", b"never")
        told: list[BaseException | None] = []
        delivery.add_done_callback(lambda done: told.append(done.exception(0)))
        await producer.close(timeout=0)
        with pytest.raises(ConnectionAbortedError, match="the producer was closed"):
            await delivery
        assert len(told) == 1
        assert broker.arrived == []
