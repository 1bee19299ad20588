"""A batch from its first record to its outcome."""

from __future__ import annotations

import threading

import pytest

from ottla.client.producer.buffer.batch import Batch, ProducerStamp, RecordMetadata, size_of
from ottla.client.producer.delivery import Delivery
from ottla.model.clock import MonoMs
from tests.client.producer.rig import STAMP_NS, TP, batch


def test_columns_are_filled_only_as_far_as_records_need_them() -> None:
    made = Batch(TP, 1_000, 0, MonoMs(0), threading.Lock())
    assert made.append(None, b"a", (), STAMP_NS) == 0
    assert made.keys is None
    assert made.append(b"k", None, (("h", b"1"),), STAMP_NS) == 1
    assert made.append(None, b"c", (), STAMP_NS) == 2
    assert made.keys == [None, b"k", None]
    assert made.headers == {1: (("h", b"1"),)}
    assert made.values == [b"a", None, b"c"]


@pytest.mark.spec("PRD-20")
def test_room_shrinks_by_what_a_record_takes() -> None:
    made = Batch(TP, 1_000, 0, MonoMs(0), threading.Lock())
    before = made.room
    made.append(b"key", b"value", (("h", b"1"),), STAMP_NS)
    assert before - made.room == size_of(b"key", b"value", (("h", b"1"),))
    assert made.size == 1_000 - made.room


@pytest.mark.spec("PRD-04")
def test_each_record_has_its_own_offset_and_time() -> None:
    made = batch(b"a", b"b")
    made.succeed(40, -1)
    assert made.metadata(1) == RecordMetadata("t", 0, 41, STAMP_NS // 1_000_000)
    stamped = batch(b"a")
    stamped.succeed(7, 123)
    assert stamped.metadata(0) == RecordMetadata("t", 0, 7, 123)
    unseen = batch(b"a")
    unseen.succeed(-1, -1)
    assert unseen.metadata(0).offset == -1


@pytest.mark.spec("PRD-23")
def test_callbacks_come_in_the_order_of_records_whenever_they_were_asked_for() -> None:
    made, called = batch(b"a", b"b", b"c"), list[int]()
    for index in (2, 0, 1, 0):
        made.add_callback(index, lambda done: called.append(done.index), Delivery.of(made, index))
    made.succeed(0, -1)
    assert called == [0, 0, 1, 2]
    assert not made.add_callback(0, called.append, Delivery.of(made, 0))  # type: ignore[arg-type]


def test_an_outcome_lets_go_of_the_records() -> None:
    made = batch(b"a" * 1_000)
    made.encoded = bytearray(10)
    made.succeed(0, -1)
    assert made.values == []
    assert getattr(made, "encoded") is None  # noqa: B009 - mypy remembers what was put there


def test_there_is_one_outcome_only() -> None:
    made = batch()
    made.fail(ValueError())
    with pytest.raises(AssertionError):
        made.succeed(0, -1)


@pytest.mark.spec("PRD-53")
def test_parts_take_over_records_callbacks_and_those_who_wait() -> None:
    whole, parts = batch(b"a", b"b", b"c"), [batch(b"a", b"b"), batch(b"c")]
    woken, offsets = list[str](), list[int]()
    deliveries = [Delivery.of(whole, index) for index in range(3)]
    for delivery in deliveries:
        delivery.add_done_callback(lambda done: offsets.append(done.result(0).offset))
    whole.watch(lambda: woken.append("whole"))
    whole.split_into(parts)
    assert woken == ["whole"]
    assert whole.successors == parts
    parts[0].succeed(10, -1)
    assert not deliveries[2].done()
    parts[1].succeed(20, -1)
    assert [each.result(0).offset for each in deliveries] == offsets == [10, 11, 20]


@pytest.mark.spec("TXN-06")
def test_after_the_last_sequence_comes_zero() -> None:
    made = batch(b"a", b"b")
    made.stamp = ProducerStamp(1, 0, 2**31 - 1)
    assert made.last_sequence == 0


def test_sizes_are_never_much_too_small() -> None:
    assert size_of(None, None, ()) >= 7
    assert size_of(b"k" * 10_000, b"v" * 10_000, ()) >= 20_000 + 15
    assert size_of(None, None, (("ä" * 10, b"x" * 10),)) >= 30
