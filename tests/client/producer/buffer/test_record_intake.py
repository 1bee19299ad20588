"""A record on its way into a batch."""

from __future__ import annotations

import threading

import pytest

from ottla.client.errors import RecordTooLarge, SerializationError, UserError
from ottla.client.partitioners import RoundRobin
from ottla.client.producer.buffer.record_intake import Hooks
from ottla.client.serializers import from_json, from_str
from ottla.model.clock import MonoMs
from ottla.model.ids import TopicPartition
from tests.client.producer.rig import STAMP_NS, TP, Rig, batch, cluster, record, topic


@pytest.mark.spec("PRD-08")
def test_keys_and_values_are_serialized_and_null_stays_null() -> None:
    rig = Rig(Hooks(from_str, from_json))
    made = rig.prepare(topic(), {"a": 1}, "key")
    assert (made.key, made.value) == (b"key", b'{"a":1}')
    assert rig.prepare(topic(), None, None).value is None
    with pytest.raises(SerializationError):
        rig.prepare(topic(), {"a": 1}, 5)
    with pytest.raises(SerializationError, match="expected bytes, got str"):
        Rig().prepare(topic(), "text")


@pytest.mark.spec("PRD-09", "PRD-14", "PRD-16")
def test_the_partition_is_the_one_given_else_the_partitioners_else_the_keys() -> None:
    view = topic(12)
    assert Rig().prepare(view, b"", b"21", partition=3).tp == TopicPartition("t", 3)
    assert Rig().prepare(view, b"", b"21").tp.partition == (-973932308 & 0x7FFFFFFF) % 12
    custom = Rig(Hooks(partitioner=lambda name, key, everywhere, available: len(key or b"")))
    assert custom.prepare(view, b"", b"12345").tp.partition == 5
    with pytest.raises(UserError, match=r"got 12 for topic t, expected one of range\(0, 12\)"):
        custom.prepare(view, b"", b"x" * 12)
    robin = Rig(Hooks(partitioner=RoundRobin()))
    assert [robin.prepare(topic(2), b"").tp.partition for _ in range(3)] == [0, 1, 0]


@pytest.mark.spec("PRD-15")
def test_without_a_key_only_partitions_with_a_leader_are_chosen() -> None:
    some = topic(3, {0: -1, 1: 1, 2: -1})
    assert {Rig().prepare(some).tp.partition for _ in range(20)} == {1}
    none = topic(3, dict.fromkeys(range(3), -1))
    assert 0 <= Rig().prepare(none).tp.partition < 3


def test_keys_can_be_ignored() -> None:
    rig = Rig(partitioner_ignore_keys=True, batch_size=0)
    chosen = set()
    for _ in range(50):
        chosen.add(rig.prepare(topic(), b"", b"same key").tp.partition)
        rig.queues.sticky["t"].count(1)
    assert chosen == {0, 1, 2}


def test_a_record_has_its_own_time_or_the_present() -> None:
    assert Rig().prepare(topic(), b"", timestamp_ms=5).timestamp_ns == 5_000_000
    assert Rig().prepare(topic(), b"").timestamp_ns == STAMP_NS


@pytest.mark.spec("PRD-11", "PRD-13", "PRD-26")
def test_a_record_larger_than_a_request_or_all_memory_is_refused() -> None:
    with pytest.raises(RecordTooLarge, match=r"larger than max\.request\.size \(1000\)"):
        Rig(max_request_size=1_000).intake.append(record(b"x" * 1_000))
    with pytest.raises(RecordTooLarge, match=r"larger than buffer\.memory \(1000\)"):
        Rig(buffer_memory=1_000).intake.append(record(b"x" * 1_000))


@pytest.mark.spec("PRD-12", "PRD-20", "PRD-21")
def test_records_share_a_batch_while_it_has_room_and_the_sender_hears_of_new_ones() -> None:
    rig = Rig(batch_size=300)
    first = rig.intake.append(record(b"x" * 100))
    woken = rig.woken
    assert woken > 0
    assert rig.intake.append(record(b"x" * 100)) is not None
    assert rig.woken == woken, "nothing new for the sender"
    third = rig.intake.append(record(b"x" * 100))
    assert rig.woken > woken
    assert [len(each.values) for each in rig.queues.at(TP).batches] == [2, 1]
    assert first is not None
    assert third is not None


@pytest.mark.spec("PRD-20")
def test_an_empty_batch_takes_a_record_of_any_size() -> None:
    rig = Rig(batch_size=100)
    assert rig.intake.append(record(b"x" * 5_000)) is not None
    [only] = rig.queues.at(TP).batches
    assert only.reserved >= 5_000
    assert rig.queues.memory.free == rig.config.buffer_memory - only.reserved


@pytest.mark.spec("PRD-21", "PRD-24")
def test_a_batch_takes_memory_as_it_grows() -> None:
    rig = Rig(batch_size=50_000)
    taken = []
    for _ in range(60):
        rig.intake.append(record(b"x" * 1_000))
        taken.append(rig.config.buffer_memory - rig.queues.memory.free)
    assert sorted(set(taken)) == [16_384, 32_768, 50_000, 66_384], "another one begins"
    first, second = rig.queues.at(TP).batches
    assert first.is_closed
    assert 48_000 < first.size <= 50_000
    assert (first.reserved, second.reserved) == (50_000, 16_384)


@pytest.mark.spec("PRD-21")
def test_a_batch_that_finds_no_memory_to_grow_is_closed_and_another_is_waited_for() -> None:
    rig = Rig(batch_size=50_000, buffer_memory=20_000)
    while rig.intake.append(record(b"x" * 1_000)) is not None:
        pass
    [only] = rig.queues.at(TP).batches
    assert only.is_closed
    assert only.reserved == 16_384


def test_a_hundred_partitions_have_open_batches_in_the_memory_that_comes_by_default() -> None:
    rig = Rig()
    for partition in range(100):
        assert rig.intake.append(record(b"x", TopicPartition("t", partition))) is not None


@pytest.mark.spec("PRD-21", "PRD-24")
def test_a_buffer_smaller_than_a_batch_still_takes_records() -> None:
    rig = Rig(buffer_memory=1_000)
    assert rig.intake.append(record(b"x")) is not None


@pytest.mark.spec("PRD-21", "PRD-25")
def test_memory_waited_for_goes_back_when_another_has_begun_a_batch_meanwhile() -> None:
    rig = Rig(batch_size=1_000, buffer_memory=2_000)
    mine = record(b"x", TopicPartition("t", 2))
    for partition in (0, 1):
        assert rig.intake.append(record(b"x", TopicPartition("t", partition))) is not None
    assert rig.intake.append(mine) is None
    granted = threading.Event()
    claim = rig.intake.claim(rig.intake.needed_bytes(mine), granted.set)
    assert not granted.is_set()
    rig.accumulator.release(next(iter(rig.queues.incomplete)))
    assert granted.is_set()
    rig.queues.begin(rig.queues.at(mine.tp), batch(tp=mine.tp))
    rig.queues.at(mine.tp).batches[-1].is_closed = False
    assert rig.intake.append(mine, claim) is not None
    assert rig.queues.memory.free == 1_000


@pytest.mark.spec("PRD-21")
def test_memory_waited_for_is_the_new_batchs() -> None:
    rig = Rig(batch_size=1_000, buffer_memory=1_000)
    claim = rig.intake.claim(rig.intake.needed_bytes(record()), lambda: None)
    assert rig.intake.append(record(), claim) is not None
    assert rig.queues.memory.free == 0


def test_who_gives_up_waiting_is_forgotten() -> None:
    rig = Rig(batch_size=1_000, buffer_memory=1_000)
    rig.intake.append(record())
    claim = rig.intake.claim(1_000, lambda: None)
    rig.intake.give_up(claim)
    assert rig.queues.memory.waiting == 0


def test_a_closed_producer_takes_nothing() -> None:
    rig = Rig()
    rig.intake.is_closed = True
    with pytest.raises(UserError, match="the producer is closed"):
        rig.intake.append(record())


@pytest.mark.spec("TXN-31", "TXN-48")
def test_a_transactional_producer_takes_records_only_in_a_transaction() -> None:
    rig = Rig(name="t")
    with pytest.raises(UserError, match=r"call init_transactions\(\) first"):
        rig.intake.append(record())


def test_closing_what_is_open_ends_the_quick_way_in() -> None:
    rig = Rig()
    rig.intake.append(rig.prepare(topic()))
    assert list(rig.queues.open) == ["t"]
    rig.intake.close_open_batches()
    assert not rig.queues.open
    assert rig.queues.backlog == 1


def test_a_whole_batch_closes_the_one_that_gathers() -> None:
    rig = Rig()
    rig.intake.append(record())
    rig.intake.add(batch(b"whole"))
    assert [each.is_closed for each in rig.queues.at(TP).batches] == [True, True]
    assert rig.queues.backlog == 2


def test_the_sender_is_woken_once_for_whole_batches_and_not_behind_one_that_may_go() -> None:
    rig = Rig()
    other = TopicPartition("t", 1)
    rig.intake.add(batch(), batch(), batch())
    assert (rig.woken, rig.queues.waiting(TP)) == (1, 3)
    rig.intake.add(batch())
    assert rig.woken == 1  # it finds that one when it takes the others
    rig.intake.add(batch(), batch(tp=other))
    assert rig.woken == 2  # of the other partition it has not heard


def test_the_sender_is_woken_for_a_batch_that_a_whole_one_closes() -> None:
    rig = Rig(linger_ms=1_000)
    rig.intake.append(record())
    before = rig.woken
    rig.intake.add(batch())
    assert rig.woken == before + 1
    assert rig.accumulator.ready(cluster(topic()), MonoMs(rig.now_ms)).nodes


def test_none_of_several_batches_is_taken_where_one_may_not_be() -> None:
    rig = Rig()
    rig.intake.is_closed = True
    with pytest.raises(UserError, match="the producer is closed"):
        rig.intake.add(batch(), batch())
    assert rig.queues.waiting(TP) == 0


def test_who_waits_for_memory_wakes_the_sender_only_where_records_linger() -> None:
    rig = Rig(batch_size=1_000, buffer_memory=1_000, linger_ms=1_000)
    rig.intake.append(record())
    before = rig.woken
    rig.intake.claim(1_000, lambda: None)
    assert rig.woken == before + 1
    rig.intake.close_open_batches()
    rig.queues.close(rig.queues.at(TP).batches[0])
    rig.intake.claim(1_000, lambda: None)
    assert rig.woken == before + 1


def test_rows_without_keys_are_spread_by_size() -> None:
    rig = Rig(batch_size=100)
    assert {rig.intake.next_sticky_partition(topic(), 100) for _ in range(50)} == {0, 1, 2}
    first = rig.intake.next_sticky_partition(topic(), 0)
    assert rig.intake.next_sticky_partition(topic(), 0) == first
