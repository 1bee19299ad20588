"""Which batches are ready, and how they are drained."""

from __future__ import annotations

import pytest

from ottla.client.producer.buffer.accumulator import FOREVER_MS
from ottla.client.producer.buffer.batch import ProducerStamp
from ottla.model.clock import MonoMs
from ottla.model.ids import TopicPartition
from tests.client.producer.rig import TP, Rig, batch, cluster, record, topic

VIEW = cluster(topic(3))


def fill(rig: Rig, *partitions: int, size: int = 100) -> None:
    for partition in partitions:
        rig.intake.append(record(b"x" * size, TopicPartition("t", partition)))


@pytest.mark.spec("PRD-30", "PRD-31", "PRD-55")
def test_a_batch_waits_for_more_records_until_it_has_lingered_or_is_full() -> None:
    rig = Rig(linger_ms=20, batch_size=300)
    fill(rig, 0)
    rig.pass_ms(5)
    ready = rig.accumulator.ready(VIEW, MonoMs(rig.now_ms))
    assert (ready.nodes, ready.wait_ms) == ({}, 15)
    rig.pass_ms(15)
    assert list(rig.accumulator.ready(VIEW, MonoMs(rig.now_ms)).nodes) == [1]
    full = Rig(linger_ms=20_000, batch_size=300)
    fill(full, 0, 0)
    assert not full.accumulator.ready(VIEW, MonoMs(full.now_ms)).nodes
    fill(full, 0)
    assert list(full.accumulator.ready(VIEW, MonoMs(full.now_ms)).nodes) == [1]


@pytest.mark.spec("PRD-31", "PRD-38")
def test_the_next_look_is_due_when_the_first_of_those_that_wait_will_be_ready() -> None:
    rig = Rig(linger_ms=20, batch_size=300)
    fill(rig, 0)
    rig.pass_ms(5)
    fill(rig, 1)
    fill(rig, 2, 2, 2)
    ready = rig.accumulator.ready(VIEW, MonoMs(rig.now_ms))
    assert [queue.tp.partition for queue in ready.nodes[1]] == [2]
    assert ready.wait_ms == 15


@pytest.mark.spec("PRD-55")
def test_without_lingering_a_batch_goes_at_once() -> None:
    rig = Rig(linger_ms=0)
    fill(rig, 0)
    assert rig.accumulator.ready(VIEW, MonoMs(rig.now_ms)).nodes


@pytest.mark.spec("PRD-30", "PRD-57")
def test_nothing_lingers_when_memory_is_short_or_somebody_flushes_or_closes() -> None:
    def is_ready(rig: Rig) -> bool:
        return bool(rig.accumulator.ready(VIEW, MonoMs(rig.now_ms)).nodes)

    short = Rig(linger_ms=20_000, batch_size=1_000, buffer_memory=1_000)
    fill(short, 0)
    assert not is_ready(short)
    claim = short.intake.claim(1_000, lambda: None)
    assert is_ready(short)
    short.intake.give_up(claim)
    assert not is_ready(short)
    assert len(short.accumulator.begin_flush()) == 1
    assert is_ready(short)
    short.accumulator.end_flush()
    assert not is_ready(short)
    short.accumulator.is_closing = True
    assert is_ready(short)


@pytest.mark.spec("PRD-29", "PRD-32")
def test_data_for_a_partition_without_a_leader_asks_for_its_topic() -> None:
    rig = Rig(linger_ms=0)
    fill(rig, 0, 1)
    view = cluster(topic(3, {0: -1, 1: 2}))
    ready = rig.accumulator.ready(view, MonoMs(rig.now_ms))
    assert ready.leaderless == {"t"}
    assert list(ready.nodes) == [2]
    assert rig.accumulator.ready(cluster(), MonoMs(rig.now_ms)).leaderless == {"t"}


@pytest.mark.spec("PRD-30", "PRD-51")
def test_a_batch_that_failed_waits_its_pause_and_comes_first() -> None:
    rig = Rig(linger_ms=0)
    fill(rig, 0)
    [failed] = rig.drained(VIEW)
    fill(rig, 0)
    failed.leader_epoch = VIEW.leader_epoch(failed.tp)
    failed.attempts, failed.retry_at_ms = 1, MonoMs(rig.now_ms + 50)
    rig.accumulator.put_back([failed])
    ready = rig.accumulator.ready(VIEW, MonoMs(rig.now_ms))
    assert (ready.nodes, ready.wait_ms) == ({}, 50)
    rig.pass_ms(50)
    assert rig.drained(VIEW) == [failed]


@pytest.mark.spec("PRD-30", "PRD-51")
def test_a_batch_that_failed_goes_to_a_new_leader_at_once() -> None:
    rig = Rig(linger_ms=0)
    fill(rig, 0)
    [failed] = rig.drained(VIEW)
    failed.leader_epoch = VIEW.leader_epoch(failed.tp)
    failed.attempts, failed.retry_at_ms = 1, MonoMs(rig.now_ms + 50)
    rig.accumulator.put_back([failed])
    assert rig.accumulator.ready(VIEW, MonoMs(rig.now_ms)).wait_ms == 50
    view = cluster(topic(3, {0: 2})).with_leader(failed.tp, 1, failed.leader_epoch + 1)
    assert list(rig.accumulator.ready(view, MonoMs(rig.now_ms)).nodes) == [1]


@pytest.mark.spec("PRD-34", "PRD-39")
def test_a_request_has_one_batch_of_each_partition_of_its_broker() -> None:
    rig = Rig(linger_ms=0, batch_size=10)
    fill(rig, 0, 0, 1, 2)
    view = cluster(topic(3, {2: 2}))
    assert [each.tp.partition for each in rig.drained(view)] == [0, 1]
    assert [each.tp.partition for each in rig.drained(view)] == [0]
    assert [each.tp.partition for each in rig.drained(view, 2)] == [2]
    assert rig.drained(view) == []


@pytest.mark.spec("PRD-34")
def test_a_full_request_begins_with_another_partition_the_next_time() -> None:
    rig = Rig(linger_ms=0, batch_size=10, max_request_size=600)
    for _ in range(3):
        fill(rig, 0, 1, 2, size=200)
    taken = [[each.tp.partition for each in rig.drained(VIEW)] for _ in range(3)]
    assert taken == [[0, 1], [2, 0], [1, 2]]


@pytest.mark.spec("PRD-35")
def test_a_batch_larger_than_a_request_goes_alone() -> None:
    rig = Rig(linger_ms=0, max_request_size=100)
    for partition in (0, 1):
        rig.intake.add(batch(b"x" * 500, tp=TopicPartition("t", partition)))
    assert [len(rig.drained(VIEW)) for _ in range(3)] == [1, 1, 0]


@pytest.mark.spec("PRD-34")
def test_a_drained_batch_takes_no_more_records() -> None:
    rig = Rig(linger_ms=0)
    fill(rig, 0)
    [drained] = rig.drained(VIEW)
    fill(rig, 0)
    assert len(drained.values) == 1
    assert len(rig.queues.at(TP).batches) == 1


def test_what_may_not_go_is_passed_over() -> None:
    rig = Rig(linger_ms=0)
    fill(rig, 0, 1)
    queues = rig.accumulator.ready(VIEW, MonoMs(rig.now_ms)).nodes[1]
    taken = rig.accumulator.drain(1, queues, lambda tp, head: tp.partition == 1)
    assert [each.tp.partition for each in taken] == [1]


@pytest.mark.spec("PRD-36")
def test_with_one_request_in_flight_a_partition_waits_for_its_answer() -> None:
    rig = Rig(linger_ms=0, batch_size=10, max_in_flight_requests_per_connection=1)
    fill(rig, 0, 0, 1)
    first = rig.drained(VIEW)
    assert [each.tp.partition for each in first] == [0, 1]
    assert rig.accumulator.ready(VIEW, MonoMs(rig.now_ms)).nodes == {}
    rig.accumulator.unmute(first)
    assert [each.tp.partition for each in rig.drained(VIEW)] == [0]


@pytest.mark.spec("PRD-27", "OPEN-04")
def test_memory_is_free_when_a_batch_has_its_outcome_and_not_before() -> None:
    rig = Rig(linger_ms=0)
    fill(rig, 0)
    free = rig.queues.memory.free
    [drained] = rig.drained(VIEW)
    assert rig.queues.memory.free == free
    rig.accumulator.release(drained)
    rig.accumulator.release(drained)
    assert rig.queues.memory.free == rig.config.buffer_memory
    assert rig.accumulator.is_empty


@pytest.mark.spec("PRD-37", "CFG-101")
def test_what_has_waited_or_been_under_way_too_long_expires() -> None:
    rig = Rig(linger_ms=0, request_timeout_ms=10, delivery_timeout_ms=100)
    assert rig.accumulator.next_expiry_ms(MonoMs(rig.now_ms)) == FOREVER_MS
    fill(rig, 0)
    [incomplete_batches] = rig.drained(VIEW)
    rig.pass_ms(60)
    fill(rig, 1)
    assert rig.accumulator.next_expiry_ms(MonoMs(rig.now_ms)) == 40
    assert rig.accumulator.remove_expired(MonoMs(rig.now_ms)) == []
    rig.pass_ms(40)
    assert rig.accumulator.remove_expired(MonoMs(rig.now_ms)) == [incomplete_batches]
    rig.accumulator.release(incomplete_batches)
    rig.pass_ms(60)
    [waiting] = rig.accumulator.remove_expired(MonoMs(rig.now_ms))
    assert waiting.tp.partition == 1
    assert rig.drained(VIEW) == []


@pytest.mark.spec("TXN-51", "PRD-28")
def test_what_is_in_queues_can_be_taken_out_but_for_what_was_sent_before() -> None:
    rig = Rig(linger_ms=0)
    fill(rig, 0)
    [sent] = rig.drained(VIEW)

    sent.stamp = ProducerStamp(1, 0, 0)
    rig.accumulator.put_back([sent])
    fill(rig, 1)
    assert [each.tp.partition for each in rig.accumulator.take_unsent(numbered=False)] == [1]
    assert rig.accumulator.take_unsent(numbered=True) == [sent]
    assert len(rig.accumulator.incomplete_batches()) == 2


@pytest.mark.spec("PRD-53")
def test_parts_are_counted_and_sent_in_the_place_of_the_whole() -> None:
    rig = Rig(linger_ms=0)
    fill(rig, 0)
    [whole] = rig.drained(VIEW)
    fill(rig, 0)
    parts = [batch(b"a"), batch(b"b")]
    for number, part in enumerate(parts):
        part.ordinal = (*whole.ordinal, number)
    rig.accumulator.replace(whole, parts)
    assert list(rig.queues.at(TP).batches)[:2] == parts
    assert list(rig.queues.incomplete)[:2] == parts
