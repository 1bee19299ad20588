"""From queues of batches to requests, and from replies to outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from ottla.client.errors import ErrorCode, KafkaError
from ottla.model.clock import MonoMs
from ottla.net.outbound_connection import OutboundConnection
from ottla.net.request_slot import Bytes
from tests.client.producer.broker_rig import producing, until
from tests.fakes.scripted_broker import HANG_UP, METADATA, PRODUCE, SILENCE, ScriptedBroker


@pytest.mark.spec("PRD-42", "PRD-43", "TXN-08", "OPEN-02", "OPEN-11")
@pytest.mark.real_loop
async def test_no_more_requests_are_unanswered_than_allowed_and_order_is_kept() -> None:
    async with ScriptedBroker() as broker, producing(broker, batch_size=10) as producer:
        await (await producer.send("t", b"first"))
        broker.hold()
        deliveries = [await producer.send("t", b"%d" % number) for number in range(12)]
        await until(lambda: producer.metrics()["requests-in-flight"] == 5)
        for _ in range(20):
            await asyncio.sleep(0)
        assert producer.metrics()["requests-in-flight"] == 5
        broker.release()
        assert [(await each).offset for each in deliveries] == list(range(1, 13))
        assert [each.sequence for each in broker.arrived] == list(range(13))


@pytest.mark.spec("PRD-34", "PRD-39")
@pytest.mark.real_loop
async def test_one_request_carries_a_batch_of_each_partition() -> None:
    async with (
        ScriptedBroker(topics={"t": 3, "u": 2}) as broker,
        producing(broker, linger_ms=20_000) as producer,
    ):
        for topic, partitions in broker.topics.items():
            for partition in range(partitions):
                await producer.send(topic, b"", partition=partition)
        await producer.flush()
        assert broker.count(PRODUCE) == 1
        assert len(broker.arrived) == 5


@pytest.mark.spec("MON-24")
@pytest.mark.parametrize("acks", ["all", "0"])
@pytest.mark.real_loop
async def test_requests_are_counted_whatever_their_outcome_and_timed_if_answered(acks: str) -> None:
    async with (
        ScriptedBroker(topics={"t": 3}) as broker,
        producing(broker, acks=acks, linger_ms=20_000) as producer,
    ):
        for number in range(6):
            await producer.send("t", b"", partition=number % 3)
        await producer.flush()
        assert producer.metrics()["records-per-request-avg"] == 6
        assert producer.metrics()["request-total"] == 1
        if acks == "all":
            broker.script(PRODUCE, broker.refuse(ErrorCode.not_enough_replicas), HANG_UP)
        await producer.send("t", b"")
        await producer.flush()
        assert producer.metrics()["record-send-total"] == 7
        assert producer.metrics()["request-total"] == (4 if acks == "all" else 2)
        assert (producer.metrics()["request-latency-max"] > 0) == (acks == "all")


@pytest.mark.spec("PRD-50", "PRD-51")
@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.not_leader_or_follower,
        ErrorCode.not_enough_replicas,
        ErrorCode.request_timed_out,
        ErrorCode.kafka_storage_error,
    ],
)
@pytest.mark.real_loop
async def test_what_passes_is_tried_again_with_the_same_number(code: ErrorCode) -> None:
    async with ScriptedBroker() as broker, producing(broker) as producer:
        broker.script(PRODUCE, broker.refuse(code), broker.refuse(code))
        sent = await (await producer.send("t", b"stubborn"))
        assert sent.offset == 0
        assert [(each.sequence, each.values) for each in broker.arrived] == [(0, [b"stubborn"])]
        assert producer.metrics()["record-retry-total"] == 2


@pytest.mark.spec("PRD-49", "PRD-50", "PRD-51")
@pytest.mark.real_loop
async def test_a_broker_that_goes_away_or_falls_silent_is_asked_again_over_another_connection() -> (
    None
):
    async with (
        ScriptedBroker() as broker,
        producing(broker, request_timeout_ms=100) as producer,
    ):
        await (await producer.send("t", b"0"))
        before = broker.connections
        broker.script(PRODUCE, HANG_UP, SILENCE)
        sent = await (await producer.send("t", b"1"))
        assert sent.offset == 1
        assert broker.connections >= before + 2
        assert broker.count(METADATA) >= 2


@pytest.mark.spec("PRD-50", "SEC-05")
@pytest.mark.parametrize(("acks", "method"), [("all", "post"), ("0", "put")])
@pytest.mark.real_loop
async def test_a_login_that_falls_due_while_a_batch_is_encoded_is_renewed_before_the_retry(
    acks: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = getattr(OutboundConnection, method)
    calls = 0

    def falls_due(connection: OutboundConnection, request: Sequence[Bytes]) -> object:
        nonlocal calls
        calls += 1
        assert calls < 10, "the batch is sent over and over on a connection that takes no more"
        if calls == 2:
            monkeypatch.setattr(connection, "_renew_ms", MonoMs(1))
        return write(connection, request)

    monkeypatch.setattr(OutboundConnection, method, falls_due)
    async with ScriptedBroker() as broker, producing(broker, acks=acks) as producer:
        await (await producer.send("t", b"0"))
        before = broker.connections
        await (await producer.send("t", b"1"))
        await until(lambda: len(broker.arrived) == 2)
        assert broker.connections == before + 1
        assert calls == 3


@pytest.mark.spec("PRD-51", "TXN-10", "TXN-11")
@pytest.mark.real_loop
async def test_batches_overtaken_by_a_failure_follow_in_their_order() -> None:
    """The first of several under way fails; the others are refused as out of order."""
    async with ScriptedBroker() as broker, producing(broker, batch_size=10) as producer:
        await (await producer.send("t", b"before"))
        out_of_order = broker.refuse(ErrorCode.out_of_order_sequence_number)
        broker.hold()
        deliveries = [await producer.send("t", b"%d" % number) for number in range(4)]
        await until(lambda: producer.metrics()["requests-in-flight"] == 4)
        broker.script(PRODUCE, broker.refuse(ErrorCode.not_enough_replicas), *[out_of_order] * 3)
        broker.release()
        assert [(await each).offset for each in deliveries] == [1, 2, 3, 4]
        assert [each.values for each in broker.arrived[1:]] == [[b"%d" % n] for n in range(4)]
        assert [(each.epoch, each.sequence) for each in broker.arrived] == [
            (0, number) for number in range(5)
        ]


@pytest.mark.spec("TXN-09", "TXN-11")
@pytest.mark.real_loop
async def test_the_first_batch_of_a_partition_is_first_however_often_it_is_refused() -> None:
    async with ScriptedBroker() as broker, producing(broker, batch_size=10) as producer:
        broker.script(PRODUCE, broker.refuse(ErrorCode.unknown_topic_or_partition))
        deliveries = [await producer.send("t", b"%d" % number) for number in range(4)]
        assert [(await each).offset for each in deliveries] == [0, 1, 2, 3]
        assert [each.sequence for each in broker.arrived] == [0, 1, 2, 3]


@pytest.mark.spec("TXN-08", "TXN-12")
@pytest.mark.real_loop
async def test_a_batch_the_broker_has_already_counts_as_delivered() -> None:
    async with ScriptedBroker() as broker, producing(broker) as producer:
        broker.script(PRODUCE, broker.refuse(ErrorCode.duplicate_sequence_number))
        assert (await (await producer.send("t", b"again"))).offset == -1
        assert (await (await producer.send("t", b"next"))).offset == 0
        assert broker.arrived[0].sequence == 1


@pytest.mark.spec("TXN-09", "TXN-12")
@pytest.mark.parametrize(
    "code", [ErrorCode.unknown_producer_id, ErrorCode.out_of_order_sequence_number]
)
@pytest.mark.real_loop
async def test_where_the_broker_has_lost_count_a_new_epoch_begins_at_zero(code: ErrorCode) -> None:
    async with ScriptedBroker(topics={"t": 2}) as broker, producing(broker) as producer:
        for partition in (0, 1):
            await (await producer.send("t", b"before", partition=partition))
        broker.script(PRODUCE, broker.refuse(code, log_start_offset=0))
        assert (await (await producer.send("t", b"after", partition=0))).offset == 1
        await (await producer.send("t", b"elsewhere", partition=1))
        stamps = [(each.tp.partition, each.epoch, each.sequence) for each in broker.arrived[2:]]
        assert stamps == [(0, 1, 0), (1, 1, 0)]


@pytest.mark.spec("PRD-51", "PRD-13")
@pytest.mark.real_loop
async def test_what_does_not_pass_fails_at_once_and_the_next_record_goes_on() -> None:
    async with ScriptedBroker() as broker, producing(broker) as producer:
        broker.script(PRODUCE, broker.refuse(ErrorCode.topic_authorization_failed))
        with pytest.raises(KafkaError, match="topic_authorization_failed"):
            await (await producer.send("t", b"forbidden"))
        assert (await (await producer.send("t", b"allowed"))).offset == 0
        assert [(each.epoch, each.sequence) for each in broker.arrived] == [(1, 0)]
        assert producer.metrics()["record-error-total"] == 1


@pytest.mark.spec("PRD-51", "CFG-090")
@pytest.mark.real_loop
async def test_without_idempotence_retries_are_counted() -> None:
    async with (
        ScriptedBroker() as broker,
        producing(broker, retries=2, enable_idempotence=False) as producer,
    ):
        again = broker.refuse(ErrorCode.not_leader_or_follower)
        broker.script(PRODUCE, again, again)
        assert (await (await producer.send("t", b"third time"))).offset == 0
        broker.script(PRODUCE, again, again, again)
        with pytest.raises(KafkaError, match="not_leader_or_follower"):
            await (await producer.send("t", b"never"))
        assert broker.arrived[0].producer_id == -1


@pytest.mark.spec("PRD-52", "TXN-01")
@pytest.mark.real_loop
async def test_without_idempotence_an_answer_that_gets_lost_doubles_a_record() -> None:
    async with (
        ScriptedBroker() as broker,
        producing(broker, enable_idempotence=False) as producer,
    ):

        def keeps_it_and_dies(request: object) -> str:
            broker.take(request)
            return HANG_UP

        broker.script(PRODUCE, keeps_it_and_dies)
        assert (await (await producer.send("t", b"twice"))).offset == 1
        assert [each.values for each in broker.arrived] == [[b"twice"], [b"twice"]]


@pytest.mark.spec("PRD-37", "CFG-101")
@pytest.mark.real_loop
async def test_a_record_that_takes_too_long_fails_and_numbers_begin_anew() -> None:
    async with (
        ScriptedBroker() as broker,
        producing(
            broker, request_timeout_ms=50, delivery_timeout_ms=120, retry_backoff_ms=1
        ) as producer,
    ):
        await (await producer.send("t", b"before"))
        broker.script(PRODUCE, *[SILENCE] * 10)
        with pytest.raises((TimeoutError, KafkaError)):
            await (await producer.send("t", b"late"))
        broker._script.clear()
        after = await producer.send("t", b"after")
        await after
        assert (broker.arrived[-1].epoch, broker.arrived[-1].sequence) == (1, 0)
        assert producer.metrics()["buffer-available-bytes"] == 32 << 20


@pytest.mark.spec("PRD-50")
@pytest.mark.real_loop
async def test_a_partition_that_moves_is_followed_also_by_the_old_leaders_word() -> None:
    async with ScriptedBroker(id=1) as old, ScriptedBroker(id=2) as new:
        for broker, other in ((old, new), (new, old)):
            broker.others = {other.id: other}
            broker.leader = 1
        async with producing(old) as producer:
            await (await producer.send("t", b"to the old"))
            leader = {"current_leader": {"leader_id": 2, "leader_epoch": 1}}
            old.script(PRODUCE, old.refuse(ErrorCode.not_leader_or_follower, **leader))
            await (await producer.send("t", b"to the new"))
        assert [each.values for each in new.arrived] == [[b"to the new"]]
        assert new.arrived[0].sequence == 1


@pytest.mark.spec("PRD-29", "PRD-32", "PRD-33")
@pytest.mark.real_loop
async def test_a_partition_without_a_leader_is_asked_about_until_it_has_one() -> None:
    async with ScriptedBroker() as broker, producing(broker) as producer:
        broker.leader = -1
        delivery = await producer.send("t", b"patient")
        await until(lambda: broker.count(METADATA) > 3)
        assert not delivery.done()
        broker.leader = 0
        assert (await delivery).offset == 0


@pytest.mark.real_loop
async def test_a_broker_that_asks_for_a_pause_gets_it() -> None:
    async with ScriptedBroker() as broker, producing(broker) as producer:

        def slow_down(request: object) -> object:
            return {**broker.take(request), "throttle_time": 50}

        broker.script(PRODUCE, slow_down)
        loop = asyncio.get_running_loop()
        await (await producer.send("t", b"1"))
        began = loop.time()
        await (await producer.send("t", b"2"))
        assert loop.time() - began >= 0.045


@pytest.mark.spec("PRD-41")
@pytest.mark.real_loop
async def test_with_acks_0_nothing_is_waited_for() -> None:
    async with ScriptedBroker() as broker, producing(broker, acks=0) as producer:
        for number in range(3):
            assert (await (await producer.send("t", b"%d" % number))).offset == -1
        await until(lambda: len(broker.arrived) == 3)
        assert [each.values for each in broker.arrived] == [[b"0"], [b"1"], [b"2"]]


@pytest.mark.spec("PRD-44", "PRD-48")
@pytest.mark.real_loop
async def test_metadata_is_asked_for_where_least_is_under_way_however_full_pipelines_are() -> None:
    async with (
        ScriptedBroker(id=1, topics={"t": 1, "u": 1}) as busy,
        ScriptedBroker(id=2, topics={"t": 1, "u": 1}) as idle,
        producing(busy, max_in_flight_requests_per_connection=1) as producer,
    ):
        busy.others, idle.others, idle.leader = {2: idle}, {1: busy}, 1
        await (await producer.send("t", b""))
        await producer._core.cluster.versions(2)  # connected, with nothing under way
        busy.hold()
        waiting = [await producer.send("t", b"") for _ in range(2)]
        await until(lambda: producer.metrics()["requests-in-flight"] == 1)
        other = await producer.send("u", b"")
        assert idle.count(METADATA) > 0
        assert not any(each.done() for each in waiting)
        busy.release()
        for each in (*waiting, other):
            await each
