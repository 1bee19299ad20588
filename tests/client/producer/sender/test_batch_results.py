"""Retry, split, expire or give up."""

from __future__ import annotations

from random import Random

import pytest

from ottla.client.cluster import Cluster
from ottla.client.errors import ErrorCode, RecordTooLarge
from ottla.client.producer.buffer.batch_encoder import Encoder
from ottla.client.producer.sender.batch_numbering import BatchNumbering
from ottla.client.producer.sender.batch_results import BatchResults
from ottla.model.clock import MonoMs
from ottla.model.ids import TopicPartition
from tests.client.producer.broker_rig import producing
from tests.client.producer.rig import Rig, cluster, record, topic
from tests.fakes.scripted_broker import PRODUCE, ScriptedBroker


def results_for(rig: Rig) -> BatchResults:
    network = Cluster(rig.config, rig.clock, Random(1))
    numbering = BatchNumbering(network, None)
    return BatchResults(rig.config, network, rig.accumulator, numbering, rig.intake)


@pytest.mark.spec("MON-24", "PRD-37")
def test_each_batch_that_expires_is_counted_and_so_are_its_records() -> None:
    rig = Rig(delivery_timeout_ms=30_000, linger_ms=0, request_timeout_ms=20_000)
    results = results_for(rig)
    for partition in (0, 0, 1):
        rig.intake.append(record(tp=TopicPartition("t", partition)))
    rig.pass_ms(10_000)
    rig.intake.append(record(tp=TopicPartition("t", 2)))
    assert results.expire(MonoMs(rig.now_ms)) == 20_000
    assert results.counts.expired_batches == 0
    rig.pass_ms(20_000)
    assert results.expire(MonoMs(rig.now_ms)) == 10_000
    assert (results.counts.expired_batches, results.counts.failures) == (2, 3)


@pytest.mark.spec("MON-24", "PRD-53")
def test_a_split_is_counted_once_and_its_records_when_they_are_acknowledged() -> None:
    rig = Rig(linger_ms=0, compression_type="gzip")
    results, encoder = results_for(rig), Encoder("gzip", None)
    for _ in range(8):
        rig.intake.append(record(b"x" * 100))
    [whole] = rig.drained(cluster(topic()))
    encoder.encode(whole)
    results.split(whole, encoder, 500)
    assert results.counts.splits == 1
    assert results.counts.records == results.counts.retries == results.counts.failures == 0
    parts = whole.successors
    assert len(parts) > 1
    for part in parts:
        encoder.encode(part)
        results.succeed(part, 0, -1)
    assert (results.counts.splits, results.counts.batches) == (1, len(parts))
    assert results.counts.records == 8
    assert 0 < results.counts.compression_rate < 0.6


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
