"""Batches that wait, by partition."""

from __future__ import annotations

from random import Random

import pytest

from ottla.client.partitioners import Sticky
from ottla.client.producer.buffer.batch import Batch
from ottla.client.producer.buffer.queues import Queues
from ottla.model.clock import MonoMs
from ottla.model.ids import TopicPartition
from tests.client.producer.rig import TP, batch


def begun(queues: Queues, *, closed: bool = False) -> Batch:
    made = batch() if closed else Batch(TP, 1_000, 100, MonoMs(7), queues.lock)
    queues.begin(queues.at(TP), made)
    return made


@pytest.mark.spec("PRD-19")
def test_a_queue_is_made_on_first_use_and_only_its_last_batch_is_open() -> None:
    queues = Queues(1_000)
    assert list(queues) == []
    first, last = begun(queues, closed=True), begun(queues)
    queue = queues.at(TP)
    assert list(queue.batches) == [first, last]
    assert queue.open is last
    queues.close(last)
    assert queue.open is None
    assert queues.waiting(TP) == 2
    assert queues.waiting(TopicPartition("t", 9)) == 0


def test_the_backlog_is_what_is_closed_and_not_drained() -> None:
    queues = Queues(1_000)
    first, last = begun(queues, closed=True), begun(queues)
    assert queues.backlog == 1
    assert queues.take(queues.at(TP)) is first
    assert queues.backlog == 0
    queues.insert(first)
    assert queues.backlog == 1
    queues.close(last)
    queues.close(last)
    assert queues.backlog == 2
    queues.remove(last)
    queues.remove(last)
    assert queues.backlog == 1


@pytest.mark.spec("PRD-51", "TXN-11")
def test_a_batch_that_is_sent_again_comes_before_those_that_were_begun_later() -> None:
    queues = Queues(1_000)
    three = [begun(queues, closed=True) for _ in range(3)]
    queue = queues.at(TP)
    taken = [queues.take(queue) for _ in range(2)]
    for each in reversed(taken):
        queues.insert(each)
    assert list(queue.batches) == three


def test_a_sticky_batch_that_is_closed_counts_for_its_partition() -> None:
    queues = Queues(1_000)
    made = begun(queues)
    queues.open["t"] = made
    sticky = queues.sticky["t"] = Sticky(Random(1))
    sticky.choose((0,), (), 10)
    queues.close(made)
    assert queues.open == {}
    assert sticky.choose((1,), (), 10) == 1


def test_topics_in_use_are_those_with_something_new_or_waiting() -> None:
    queues = Queues(1_000)
    begun(queues)
    assert queues.used_since(MonoMs(7)) == {"t"}
    assert queues.used_since(MonoMs(8)) == {"t"}
    queues.take(queues.at(TP))
    assert queues.used_since(MonoMs(8)) == set()
