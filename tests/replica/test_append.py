"""Producing to the partitions led here: what is answered, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from ottla.log import validate
from ottla.log.log import Origin
from ottla.model.errors import ErrorCode
from ottla.model.ids import CONSUMER_OFFSETS, LeaderEpoch, TopicPartition
from ottla.protocol.hot import ProducedPartition
from ottla.protocol.records.batch import build, compute_crc, read_header
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.record import NewRecord
from ottla.replica.append import AppendOptions, PartitionAppend
from tests.fakes.data_side import ME, OTHER, TP, DataSide, data_side, values_of

TWO = (ME, OTHER)
SECOND, NOWHERE = TopicPartition("t", 1), TopicPartition("u", 0)


@pytest.fixture
def no_kernels() -> Iterator[None]:
    """As in the first moments of a broker."""
    loaded = validate.native
    validate.use_native_kernels(None)
    yield
    validate.use_native_kernels(loaded)


def idempotent(side: DataSide, sequence: int, *values: bytes, epoch: int = 0) -> bytes:
    return side.batch(*values, producer_id=9, producer_epoch=epoch, base_sequence=sequence)


@pytest.mark.spec("WIRE-11", "WIRE-13", "REP-59")
@pytest.mark.parametrize("acks", [0, 1])
async def test_without_followers_to_wait_for_the_answer_comes_at_once(acks: int) -> None:
    async with data_side() as side:
        await side.lead(replicas=TWO)
        assert side.start_append(b"a", b"b", acks=acks).done()
        second = side.start_append(b"c", acks=acks).result()
        assert second == ProducedPartition(0, ErrorCode.none, 2, -1, 0)


@pytest.mark.spec("DLY-28", "WIRE-11", "REP-59", "REP-21", "REP-63")
async def test_acks_all_waits_until_every_in_sync_replica_has_it() -> None:
    async with data_side() as side:
        await side.lead(replicas=TWO)
        waiting = side.start_append(b"a", b"b", acks=-1)
        side.start_fetch(1, replica_id=OTHER)
        assert not waiting.done()
        side.start_fetch(2, replica_id=OTHER)
        assert waiting.result().error_code is ErrorCode.none
        assert side.hosted.waiting.produce.delayed == 0


@pytest.mark.spec("DLY-28", "REP-59")
async def test_one_produce_waits_for_all_of_its_partitions() -> None:
    async with data_side() as side:
        await side.lead(TP, replicas=TWO)
        await side.lead(SECOND)
        batch = side.batch(b"x")
        answered: list[list[ProducedPartition]] = []
        side.services.appends.append(
            [
                PartitionAppend(TP, batch),
                PartitionAppend(SECOND, batch),
                PartitionAppend(NOWHERE, b""),
            ],
            AppendOptions(-1, 1_000),
            answered.append,
        )
        assert not answered, "the first partition has a follower"
        side.start_fetch(1, replica_id=OTHER)
        assert [o.error_code for o in answered[0]] == [
            ErrorCode.none,
            ErrorCode.none,
            ErrorCode.unknown_topic_or_partition,
        ]


@pytest.mark.spec("DLY-28")
async def test_a_follower_that_never_comes_is_a_timeout() -> None:
    async with data_side() as side:
        await side.lead(replicas=TWO)
        began = side.clock.mono_ms()
        late = await side.start_append(b"a", acks=-1, timeout_ms=700)
        assert late.error_code is ErrorCode.request_timed_out
        assert side.clock.mono_ms() - began == 700
        assert values_of(await side.read(0, replica_id=OTHER)) == [b"a"], "it stays appended"


async def test_a_leader_out_of_touch_with_the_store_sends_clients_to_look_for_another() -> None:
    async with data_side() as side:
        await side.lead(replicas=TWO)
        side.hosted.environment.store_contact.is_overdue = True
        late = await side.start_append(b"a", acks=-1, timeout_ms=700)
        assert late.error_code is ErrorCode.not_leader_or_follower


@pytest.mark.spec("DLY-28")
async def test_a_produce_with_no_time_to_wait_is_told_so_at_once() -> None:
    async with data_side() as side:
        await side.lead(replicas=TWO)
        late = side.start_append(b"a", acks=-1, timeout_ms=0)
        assert late.result().error_code is ErrorCode.request_timed_out


async def test_the_time_of_a_produce_is_for_followers_and_not_for_the_disk() -> None:
    async with data_side({"flush.before.ack": "all"}) as side:
        await side.lead()
        produced = side.start_append(b"a", acks=-1, timeout_ms=-1)
        assert not produced.done(), "the batch is not on the disk yet"
        assert (await produced).error_code is ErrorCode.none


@pytest.mark.spec("DLY-28", "REP-68")
async def test_who_waits_hears_when_the_leadership_is_lost() -> None:
    async with data_side() as side:
        await side.lead(replicas=TWO)
        waiting = side.start_append(b"a", acks=-1)
        await side.follow(epoch=1)
        assert waiting.result().error_code is ErrorCode.not_leader_or_follower
        refused = side.start_append(b"b", acks=1).result()
        assert refused.error_code is ErrorCode.not_leader_or_follower


@pytest.mark.spec("DLY-28")
async def test_who_waits_goes_on_waiting_when_the_same_leader_gets_a_next_epoch() -> None:
    async with data_side() as side:
        await side.lead(replicas=TWO)
        waiting = side.start_append(b"a", acks=-1)
        await side.lead(epoch=1, replicas=TWO)
        assert not waiting.done()
        await side.lead(epoch=2, replicas=TWO, isr=(ME,))  # the follower has left
        assert waiting.result().error_code is ErrorCode.none


@pytest.mark.spec("DLY-28")
async def test_what_an_earlier_leadership_appended_is_not_acknowledged_by_a_later_one() -> None:
    async with data_side() as side:
        partition = await side.lead(replicas=TWO)
        await side.append(b"a")
        await side.follow(epoch=1)
        await side.lead(epoch=2, replicas=(ME,))
        assert partition.acknowledged(LeaderEpoch(0), 1) is ErrorCode.not_leader_or_follower
        assert partition.acknowledged(LeaderEpoch(2), 1) is ErrorCode.none


@pytest.mark.spec("REP-22")
@pytest.mark.parametrize(
    ("acks", "code"),
    [(-1, ErrorCode.not_enough_replicas), (1, ErrorCode.none), (0, ErrorCode.none)],
)
async def test_too_few_in_sync_refuses_acks_all_before_anything_is_written(
    acks: int, code: ErrorCode
) -> None:
    async with data_side({"min.insync.replicas": "2"}) as side:
        partition = await side.lead(replicas=TWO, isr=(ME,))
        outcome = side.start_append(b"a", acks=acks).result()
        assert outcome.error_code is code
        assert partition.log.end_offset == (code is ErrorCode.none)


@pytest.mark.spec("REP-22")
async def test_too_few_in_sync_after_the_append_is_said_too() -> None:
    async with data_side() as side:
        partition = await side.lead(replicas=TWO)
        waiting = side.start_append(b"a", acks=-1)
        side.config.set_topic("t", {"min.insync.replicas": "2"})
        leadership = partition.require_leadership()
        leadership.isr = frozenset({ME})
        partition.log.raise_high_watermark(1)
        side.hosted.waiting.produce.check(TP)
        assert waiting.result().error_code is ErrorCode.not_enough_replicas_after_append


@pytest.mark.spec("REP-22")
async def test_one_copy_is_all_that_a_topic_with_one_replica_can_be_asked_for() -> None:
    async with data_side({"min.insync.replicas": "2"}) as side:
        await side.lead()
        assert (await side.append(b"a", acks=-1)).error_code is ErrorCode.none


@pytest.mark.spec("REP-58")
async def test_clients_may_not_write_internal_topics_but_coordinators_may() -> None:
    async with data_side() as side:
        key = TopicPartition(CONSUMER_OFFSETS, 0)
        await side.lead(key)
        refused = await side.append(b"x", key=key)
        assert refused.error_code is ErrorCode.invalid_topic_exception
        answered: list[list[ProducedPartition]] = []
        side.services.appends.append(
            [PartitionAppend(key, side.batch(b"x", key=b"k"))],
            AppendOptions(1, 0, Origin.COORDINATOR),
            answered.append,
        )
        assert answered[0][0].error_code is ErrorCode.none


@pytest.mark.spec("REP-57", "REP-59")
async def test_where_a_partition_is_decides_what_is_answered() -> None:
    async with data_side() as side:
        nowhere = await side.append(b"x")
        assert nowhere.error_code is ErrorCode.unknown_topic_or_partition
        await side.lead()
        side.hosted.remove(TP)
        elsewhere = await side.append(b"x")
        assert elsewhere.error_code is ErrorCode.not_leader_or_follower
        side.hosted.mark_offline([TP])
        lost = await side.append(b"x")
        assert lost.error_code is ErrorCode.kafka_storage_error


async def test_what_the_api_layer_refused_is_not_appended() -> None:
    async with data_side() as side:
        partition = await side.lead()
        answered: list[list[ProducedPartition]] = []
        bad = ErrorCode.invalid_required_acks
        side.services.appends.append(
            [PartitionAppend(TP, side.batch(b"x"), bad)], AppendOptions(2, 0), answered.append
        )
        assert [o.error_code for o in answered[0]] == [bad]
        assert partition.log.end_offset == 0


async def test_a_refusal_says_which_record_and_why() -> None:
    async with data_side({"log.cleanup.policy": "compact"}) as side:
        await side.lead()
        refused = await side.append(b"x")
        assert refused.error_code is ErrorCode.invalid_record
        assert (refused.base_offset, refused.log_start_offset) == (-1, 0)
        assert refused.error_message
        assert refused.record_errors == [
            (0, "Compacted topic cannot accept message without key in topic partition t-0")
        ]


async def code_of(side: DataSide, sequence: int) -> ErrorCode:
    """What an idempotent producer's batch with this sequence is answered."""
    outcome = await side.start_append(records=idempotent(side, sequence, b"x"), acks=-1)
    return outcome.error_code


@pytest.mark.spec("TXN-07")
async def test_batches_behind_one_that_was_refused_are_refused_for_the_same_reason() -> None:
    """Out of order, librdkafka would send whatever it has under way again, as something new."""
    gone, good = ErrorCode.not_leader_or_follower, ErrorCode.none
    async with data_side() as side:
        await side.lead()
        assert await code_of(side, 0) is good
        await side.follow(epoch=1)
        assert await code_of(side, 1) is gone
        await side.lead(epoch=2)
        assert [await code_of(side, sequence) for sequence in (2, 3)] == [gone, gone]
        assert [await code_of(side, sequence) for sequence in (1, 2, 1, 3)] == [good] * 4
        await side.follow(epoch=3)
        assert await code_of(side, 4) is gone
        await side.lead(epoch=4)
        await asyncio.sleep(1)
        assert await code_of(side, 5) is ErrorCode.out_of_order_sequence_number, "it never comes"


@pytest.mark.spec("TXN-07", "REP-22")
async def test_batches_behind_one_that_too_few_replicas_refused_do_not_overtake_it() -> None:
    few = ErrorCode.not_enough_replicas
    async with data_side({"min.insync.replicas": "2"}) as side:
        partition = await side.lead(replicas=TWO, isr=(ME,))
        assert await code_of(side, 0) is few
        partition.set_isr(frozenset(TWO), 1)
        assert await code_of(side, 1) is few, "of a producer that was not known"
        waiting = side.start_append(records=idempotent(side, 0, b"a"), acks=-1)
        side.start_fetch(1, replica_id=OTHER)
        assert (await waiting).error_code is ErrorCode.none


@pytest.mark.spec("TXN-07")
async def test_batches_behind_one_that_came_before_the_replica_do_not_overtake_it() -> None:
    async with data_side() as side:
        await side.lead()
        log = side.hosted.get(TP).log
        side.hosted.remove(TP)
        assert await code_of(side, 0) is ErrorCode.not_leader_or_follower
        side.hosted.host(log)
        await side.lead(epoch=1)
        assert await code_of(side, 1) is ErrorCode.not_leader_or_follower
        assert [await code_of(side, sequence) for sequence in (0, 1)] == [ErrorCode.none] * 2


@pytest.mark.spec("TXN-07", "TXN-08", "TXN-10", "LOG-50")
async def test_a_repeat_is_answered_with_its_first_offset_and_a_gap_is_refused() -> None:
    async with data_side() as side:
        partition = await side.lead()
        first = idempotent(side, 0, b"a", b"b")
        assert (await side.start_append(records=first, acks=-1)).base_offset == 0
        await side.start_append(records=idempotent(side, 2, b"c"), acks=-1)
        again = await side.start_append(records=first, acks=-1)
        assert (again.error_code, again.base_offset) == (ErrorCode.none, 0)
        gap = await side.start_append(records=idempotent(side, 5, b"f"), acks=-1)
        assert gap.error_code is ErrorCode.out_of_order_sequence_number
        old = await side.start_append(records=idempotent(side, 0, b"z", epoch=1), acks=-1)
        assert old.error_code is ErrorCode.none
        fenced = await side.start_append(records=idempotent(side, 3, b"d"), acks=-1)
        assert fenced.error_code is ErrorCode.invalid_producer_epoch
        assert partition.log.end_offset == 4


@pytest.mark.spec("TXN-08", "DLY-28")
async def test_a_repeat_of_what_is_not_replicated_yet_waits_like_the_first() -> None:
    async with data_side() as side:
        await side.lead(replicas=TWO)
        batch = idempotent(side, 0, b"a")
        first = side.start_append(records=batch, acks=-1)
        again = side.start_append(records=batch, acks=-1)
        assert not first.done()
        assert not again.done()
        side.start_fetch(1, replica_id=OTHER)
        assert first.result() == again.result()


GZIP = {"compression.type": "gzip", "record.validation": "header"}


@pytest.mark.spec("LOG-46")
async def test_a_batch_in_another_codec_is_rewritten_off_the_loop() -> None:
    async with data_side(GZIP) as side:
        partition = await side.lead()
        side.pool.held = True
        waiting = side.start_append(b"a" * 100, b"b")
        await side.settle()
        assert not waiting.done()
        assert partition.log.end_offset == 0
        side.pool.run_all()
        assert (await waiting).base_offset == 0
        part = await side.read()
        assert values_of(part) == [b"a" * 100, b"b"]
        assert read_header(part.records.read()).codec is Codec.GZIP  # type: ignore[union-attr]


@pytest.mark.spec("LOG-46", "TXN-07")
async def test_later_appends_queue_behind_a_rewrite_so_that_sequences_hold() -> None:
    async with data_side(GZIP) as side:
        await side.lead()
        side.pool.held = True
        waiting = [
            side.start_append(records=idempotent(side, sequence, b"%d" % sequence), acks=-1)
            for sequence in range(5)
        ]
        ready = side.batch(b"ready made", codec=Codec.GZIP)
        waiting.append(side.start_append(records=ready, acks=-1))
        for count in range(1, 6):  # each is rewritten in its turn
            side.pool.run_all()
            await side.settle()
            done = 6 if count == 5 else count  # the last needs no rewriting
            assert [one.done() for one in waiting] == [True] * done + [False] * (6 - done)
        assert [(one.result().error_code, one.result().base_offset) for one in waiting] == [
            (ErrorCode.none, offset) for offset in range(6)
        ]


async def test_what_was_queued_is_a_copy_that_outlives_the_receive_buffer() -> None:
    async with data_side(GZIP) as side:
        await side.lead()
        side.pool.held = True
        buffers = [bytearray(side.batch(b"one")), bytearray(side.batch(b"two"))]
        waiting = [side.start_append(records=buffer) for buffer in buffers]  # type: ignore[arg-type]
        for buffer in buffers:
            buffer[:] = bytes(len(buffer))
        side.pool.held = False
        side.pool.run_all()
        await asyncio.gather(*waiting)
        assert values_of(await side.read()) == [b"one", b"two"]


async def test_a_leadership_lost_during_a_rewrite_refuses_it_and_what_queues_behind() -> None:
    async with data_side(GZIP) as side:
        partition = await side.lead()
        side.pool.held = True
        first, second = side.start_append(b"a"), side.start_append(b"b")
        await side.follow(epoch=1)
        side.pool.run_all()
        await side.settle()
        side.pool.run_all()
        for one in (first, second):
            assert (await one).error_code is ErrorCode.not_leader_or_follower
        assert partition.log.end_offset == 0


async def test_a_rewrite_that_fails_in_an_unforeseen_way_does_not_hold_up_the_partition(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with data_side(GZIP) as side:
        await side.lead()
        side.pool.fault = MemoryError()
        failed = await side.append(b"a")
        assert failed.error_code is ErrorCode.unknown_server_error
        side.pool.fault = None
        assert (await side.append(b"b")).base_offset == 0
    assert "failed to rewrite a batch for t-0" in caplog.text


async def test_records_that_take_long_to_examine_are_examined_off_the_loop_and_in_order(
    no_kernels: None,
) -> None:
    async with data_side() as side:
        partition = await side.lead(TP)
        other = await side.lead(SECOND)
        side.pool.held = True
        many = [b"%d" % number for number in range(5_000)]
        first = side.start_append(records=idempotent(side, 0, *many))
        second = side.start_append(records=idempotent(side, 5_000, b"small"))
        bad = bytearray(side.batch(*many))
        bad[-1] = 2  # the last record says that it has a header
        bad[17:21] = compute_crc(bad).to_bytes(4, "big")
        third = side.start_append(records=bytes(bad))
        fourth = side.start_append(records=idempotent(side, 5_001, b"last"))
        elsewhere = side.start_append(b"a", key=SECOND)
        await side.settle()
        assert elsewhere.done(), "another partition does not wait"
        assert other.log.end_offset == 1
        assert partition.log.end_offset == 0
        while not fourth.done():
            side.pool.run_all()
            await side.settle()
        assert (first.result().base_offset, second.result().base_offset) == (0, 5_000)
        assert third.result().error_code is ErrorCode.invalid_record
        assert fourth.result().base_offset == 5_001


@pytest.mark.parametrize(
    ("code", "log_start"),
    [
        (ErrorCode.corrupt_message, -1),
        (ErrorCode.message_too_large, -1),
        (ErrorCode.invalid_timestamp, 1),
        (ErrorCode.out_of_order_sequence_number, 1),
    ],
)
async def test_a_refusal_says_where_the_log_starts_where_kafka_says_it(
    code: ErrorCode, log_start: int
) -> None:
    async with data_side({"message.max.bytes": "500"}) as side:
        partition = await side.lead()
        await side.start_append(records=idempotent(side, 0, b"a"))
        partition.log.raise_start_offset(1)
        records = {
            ErrorCode.corrupt_message: side.batch(b"a")[:-1] + b"?",
            ErrorCode.message_too_large: side.batch(bytes(1_000)),
            ErrorCode.invalid_timestamp: build([NewRecord(None, b"v", timestamp=2**60)]),
            ErrorCode.out_of_order_sequence_number: idempotent(side, 5, b"a"),
        }[code]
        refused = await side.start_append(records=records)
        assert (refused.error_code, refused.log_start_offset) == (code, log_start)


@pytest.mark.spec("MON-12", "MON-26")
async def test_what_comes_in_and_what_is_refused_is_counted() -> None:
    async with data_side() as side:
        await side.lead()
        batch = side.batch(b"a", b"b")
        await side.start_append(records=batch)
        await side.start_append(records=b"junk")
        group = "kafka_server_brokertopicmetrics"
        assert side.count(f"{group}_messages_in_total", topic="t") == 2
        assert side.count(f"{group}_bytes_in_total", topic="t") == len(batch)
        assert side.count(f"{group}_all_topics_messages_in_total") == 2
        assert side.count(f"{group}_all_topics_total_produce_requests_total") == 2
        assert side.count(f"{group}_all_topics_failed_produce_requests_total") == 1
        assert side.count(f"{group}_failed_produce_requests_total", topic="t") == 1
        assert side.count(f"{group}_bytes_rejected_total", topic="t") == len(b"junk")
        await side.append(b"x", key=NOWHERE)
        assert side.count(f"{group}_all_topics_failed_produce_requests_total") == 2
        assert side.count(f"{group}_total_produce_requests_total", topic="t") == 2


async def test_the_first_record_set_is_announced_once() -> None:
    async with data_side() as side:
        await side.lead()
        heard: list[int] = []
        side.hosted.on_first_append = lambda: heard.append(1)
        await side.append(b"a")
        await side.append(b"b")
        assert heard == [1]
