"""Numbers by which brokers tell a batch sent again from a new one."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.producer.buffer.batch import Batch, ProducerStamp
from ottla.client.producer.sender.sequences import MAX_EPOCH, Identity, Sequences
from ottla.model.ids import TopicPartition
from tests.client.producer.rig import TP, batch

ME = Identity(7, 0)
OTHER = TopicPartition("t", 1)


def ready() -> Sequences:
    sequences = Sequences()
    sequences.adopt(ME)
    return sequences


def sent(sequences: Sequences, *values: bytes, tp: TopicPartition = TP) -> Batch:
    made = batch(*values, tp=tp)
    sequences.sent(made)
    return made


def stamps(*batches: Batch) -> list[tuple[int, int]]:
    return [(each.stamp.epoch, each.stamp.sequence) for each in batches if each.stamp]


@pytest.mark.spec("TXN-06", "TXN-11")
def test_numbers_are_given_when_a_batch_is_sent_and_grow_by_its_records() -> None:
    sequences = ready()
    first, second = sent(sequences, b"a", b"b"), sent(sequences, b"c")
    elsewhere = sent(sequences, b"a", tp=OTHER)
    assert first.stamp == ProducerStamp(7, 0, 0)
    assert second.stamp == ProducerStamp(7, 0, 2)
    assert elsewhere.stamp == ProducerStamp(7, 0, 0)


@pytest.mark.spec("TXN-09", "TXN-11")
def test_until_the_first_batch_is_acknowledged_none_follows_it() -> None:
    """A broker that does not know us would take the second one for the first."""
    sequences = ready()
    first = sent(sequences)
    assert not sequences.may_drain(TP, batch())
    assert sequences.may_drain(OTHER, batch())
    sequences.on_returned(first)
    assert sequences.may_drain(TP, first)
    sequences.on_success(first)
    assert sequences.may_drain(TP, batch())
    second = sent(sequences)
    assert sequences.may_drain(TP, batch())
    assert second.stamp == ProducerStamp(7, 0, 1)


@pytest.mark.spec("TXN-11")
def test_a_batch_sent_again_keeps_its_number_and_the_later_ones_wait_for_it() -> None:
    sequences = ready()
    first, second = sent(sequences), sent(sequences)
    for each in (first, second):
        sequences.on_returned(each)
    assert sequences.may_drain(TP, first)
    assert not sequences.may_drain(TP, second), "one at a time, and in order"
    sequences.sent(first)
    assert first.stamp == ProducerStamp(7, 0, 0)
    sequences.on_success(first)
    assert sequences.may_drain(TP, second)


@pytest.mark.spec("TXN-06")
def test_after_the_last_number_comes_zero() -> None:
    sequences = ready()
    first = sent(sequences, b"a")
    sequences._partitions[TP].next = 2**31 - 1
    around, after = sent(sequences, b"a", b"b"), sent(sequences, b"c")
    assert stamps(around, after) == [(0, 2**31 - 1), (0, 1)]
    for each in (first, around):
        sequences.on_success(each)
    assert sequences.is_gap(after), "it is the next in line"


@pytest.mark.spec("TXN-09", "TXN-12")
def test_a_number_that_was_refused_for_good_begins_a_new_epoch_in_its_partition_alone() -> None:
    sequences = ready()
    on_error, behind, elsewhere = sent(sequences), sent(sequences), sent(sequences, tp=OTHER)
    sequences.on_returned(on_error)
    sequences.on_failure(on_error, may_have_arrived=False)
    assert sequences.needs_restart
    assert not sequences.may_restart, "the one behind is still on the wire"
    assert not sequences.may_drain(TP, batch())
    sequences.on_returned(behind)
    assert sequences.may_restart
    following = sequences.next_identity
    assert following == Identity(7, 1)
    sequences.adopt(following)
    assert stamps(behind, elsewhere) == [(1, 0), (0, 0)]
    fresh = batch(tp=OTHER)
    assert not sequences.may_drain(OTHER, fresh), "first what was begun under the old epoch"
    sequences.on_returned(elsewhere)
    sequences.on_success(elsewhere)
    assert sequences.may_drain(OTHER, fresh)
    sequences.sent(fresh)
    assert stamps(fresh) == [(1, 0)]


@pytest.mark.spec("TXN-30")
def test_when_the_epoch_is_used_up_another_producer_id_is_needed() -> None:
    sequences = Sequences()
    sequences.adopt(Identity(7, MAX_EPOCH))
    assert sequences.next_identity is None


@pytest.mark.spec("PRD-37", "TXN-12")
def test_a_number_that_may_have_arrived_holds_back_new_ones_until_it_is_known() -> None:
    sequences = ready()
    lost, behind = sent(sequences, b"a"), sent(sequences, b"b")
    sequences.on_returned(lost)
    sequences.on_failure(lost, may_have_arrived=True)
    assert not sequences.may_drain(TP, batch())
    assert sequences.resolve() == []
    sequences.on_returned(behind)
    sequences.on_success(behind)
    assert sequences.resolve() == []
    assert sequences.may_drain(TP, batch()), "what came behind was taken: it had arrived"


def test_a_number_that_nothing_followed_is_taken_for_lost() -> None:
    sequences = ready()
    lost = sent(sequences)
    sequences.on_returned(lost)
    sequences.on_failure(lost, may_have_arrived=True)
    assert sequences.has_gaps
    assert sequences.resolve() == [TP]


@pytest.mark.spec("TXN-07", "TXN-12")
def test_only_the_next_in_line_shows_that_something_is_missing() -> None:
    sequences = ready()
    first, second = sent(sequences), sent(sequences)
    assert sequences.is_gap(first)
    assert not sequences.is_gap(second), "it was overtaken by the failure of the first"
    sequences.on_returned(first)
    sequences.on_failure(first, may_have_arrived=True)
    assert sequences.is_gap(second), "the first has not arrived after all"
    sequences.begin(Identity(7, 1))
    old = batch()
    old.stamp = ProducerStamp(7, 0, 0)
    assert not sequences.is_gap(old)


@pytest.mark.spec("PRD-53")
def test_parts_share_the_numbers_of_the_whole() -> None:
    sequences = ready()
    whole, behind = sent(sequences, b"a", b"b", b"c"), sent(sequences)
    parts = [batch(b"a", b"b"), batch(b"c")]
    sequences.on_returned(whole)
    sequences.on_split(whole, parts)
    assert stamps(*parts, behind) == [(0, 0), (0, 2), (0, 3)]
    assert sequences.may_drain(TP, parts[0])
    assert not sequences.may_drain(TP, parts[1])


def test_a_batch_that_was_never_sent_leaves_no_gap() -> None:
    sequences = ready()
    sequences.on_failure(batch(), may_have_arrived=False)
    assert not sequences.needs_restart


def test_a_new_beginning_forgets_everything() -> None:
    sequences = ready()
    failed = sent(sequences)
    sequences.on_returned(failed)
    sequences.on_failure(failed, may_have_arrived=False)
    sequences.begin(Identity(7, 1))
    assert not sequences.has_gaps
    assert stamps(sent(sequences)) == [(1, 0)]


@given(st.lists(st.sampled_from(["send", "ack", "lose", "refuse", "bump"]), max_size=60))
def test_what_a_partition_is_sent_is_always_numbered_without_gaps(steps: list[str]) -> None:
    """As long as every open batch is retried in order, a broker never sees a number twice."""
    sequences = ready()
    wire: list[Batch] = []
    for step in steps:
        head = batch(b"a", b"b")
        if step == "send" and sequences.may_drain(TP, head):
            sequences.sent(head)
            wire.append(head)
        elif step == "bump" and sequences.needs_restart and sequences.may_restart:
            following = sequences.next_identity
            assert following is not None
            sequences.adopt(following)
        elif step in ("ack", "lose", "refuse") and wire:
            first = wire.pop(0)
            sequences.on_returned(first)
            if step == "ack":
                sequences.on_success(first)
            else:
                sequences.on_failure(first, may_have_arrived=step == "lose")
                sequences.restart(sequences.resolve())
        open_now = sequences._partitions[TP].open if TP in sequences._partitions else []
        numbers = [each.stamp.sequence for each in open_now if each.stamp]
        assert numbers == sorted(set(numbers))
        assert all(b - a == 2 for a, b in pairwise(numbers))
