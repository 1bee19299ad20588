"""Promises of `ottla.log.producers.producer_states`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.log.producers.producer_states import MAX_SEQUENCE, Marker, ProducerStates, is_gap
from ottla.log.validate import Origin
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.protocol.records.header import BatchHeader

COMMIT, ABORT = Marker(True, 0), Marker(False, 0)


def header(
    sequence: int, count: int = 1, *, epoch: int = 0, producer: int = 9, txn: bool = False
) -> BatchHeader:
    attributes = 0x10 if txn else 0
    return BatchHeader(
        0, 99, 0, 2, 0, attributes, count - 1, 5, 5, producer, epoch, sequence, count
    )


def took(states: ProducerStates, batch: BatchHeader, offset: int) -> None:
    assert states.check(batch, Origin.CLIENT) is None
    states.apply(batch, offset)


def refused(
    states: ProducerStates, batch: BatchHeader, origin: Origin = Origin.CLIENT
) -> ErrorCode:
    with pytest.raises(KafkaError) as error:
        states.check(batch, origin)
    return error.value.code


@pytest.mark.spec("TXN-06", "TXN-07")
def test_a_sequence_must_follow_the_last_one() -> None:
    states = ProducerStates()
    took(states, header(0, 5), 100)
    assert refused(states, header(6)) is ErrorCode.out_of_order_sequence_number
    took(states, header(5), 105)


def test_a_gap_is_what_skips_a_sequence_and_not_what_comes_again() -> None:
    states = ProducerStates()
    assert not is_gap(states, header(0))
    assert is_gap(states, header(1)), "of an unknown producer"
    took(states, header(0, 5), 100)
    gaps = {sequence: is_gap(states, header(sequence)) for sequence in (0, 4, 5, 6, 1000)}
    assert gaps == {0: False, 4: False, 5: False, 6: True, 1000: True}
    assert not is_gap(states, header(0, epoch=1))
    assert is_gap(states, header(1, epoch=1)), "a new epoch begins at 0"
    assert not is_gap(states, header(7, producer=-1))
    states.apply(header(MAX_SEQUENCE, producer=8), 200)
    assert not is_gap(states, header(0, producer=8))
    assert is_gap(states, header(1, producer=8)), "after the sequence begins again"


@pytest.mark.spec("TXN-08", "TXN-10")
def test_any_of_the_last_five_batches_may_come_again_and_an_older_one_not() -> None:
    states = ProducerStates()
    for number in range(7):
        took(states, header(number * 2, 2), 50 + number * 2)
    for number in range(2, 7):
        repeat = states.check(header(number * 2, 2), Origin.CLIENT)
        assert repeat is not None
        assert (repeat.first_offset, repeat.last_offset) == (50 + number * 2, 51 + number * 2)
    assert refused(states, header(2, 2)) is ErrorCode.out_of_order_sequence_number
    assert refused(states, header(12, 1)) is ErrorCode.out_of_order_sequence_number


@pytest.mark.spec("TXN-08")
def test_a_repeat_of_a_batch_that_compaction_removed_is_a_duplicate() -> None:
    states = ProducerStates()
    for number in range(3):
        took(states, header(number * 2, 2), 50 + number * 2)
    state = states.get(9)
    assert state is not None
    del state.batches[1]  # read back after a restart, without the batch that is gone
    assert refused(states, header(2, 2)) is ErrorCode.duplicate_sequence_number
    assert refused(states, header(2, 3)) is ErrorCode.out_of_order_sequence_number
    assert refused(states, header(7, 1)) is ErrorCode.out_of_order_sequence_number
    took(states, header(6), 56)


@pytest.mark.spec("TXN-06")
def test_after_the_largest_sequence_comes_zero() -> None:
    states = ProducerStates()
    took(states, header(MAX_SEQUENCE - 1, 2), 0)
    took(states, header(0), 2)
    wrapped = ProducerStates()
    took(wrapped, header(MAX_SEQUENCE, 3), 0)
    took(wrapped, header(2), 3)


@pytest.mark.spec("TXN-09")
def test_an_unknown_producer_may_begin_anywhere() -> None:
    took(ProducerStates(), header(77), 0)


@pytest.mark.spec("TXN-09")
def test_a_new_epoch_begins_at_zero_and_fences_the_old_one() -> None:
    states = ProducerStates()
    took(states, header(0, 3), 0)
    assert refused(states, header(3, epoch=1)) is ErrorCode.out_of_order_sequence_number
    took(states, header(0, epoch=1), 3)
    assert refused(states, header(3, epoch=0)) is ErrorCode.invalid_producer_epoch
    assert refused(states, header(0, 3, epoch=0)) is ErrorCode.invalid_producer_epoch


def test_replication_is_not_held_to_sequences() -> None:
    states = ProducerStates()
    took(states, header(0, 3), 0)
    assert states.check(header(50), Origin.REPLICATION) is None


def test_writing_outside_an_open_transaction_is_refused() -> None:
    states = ProducerStates()
    took(states, header(0, txn=True), 10)
    assert refused(states, header(1)) is ErrorCode.invalid_txn_state


def test_the_first_open_transaction_holds_the_stable_offset() -> None:
    states = ProducerStates()
    took(states, header(0, txn=True, producer=1), 10)
    took(states, header(0, txn=True, producer=2), 12)
    assert states.first_unstable_offset == 10
    ended = states.apply_marker(header(-1, producer=1), ABORT, 20)
    assert ended is not None
    assert ended == (1, 10, 20, True)
    assert states.stable_offset_after(ended) == 12
    assert states.first_unstable_offset == 10  # its marker is not replicated yet
    states.on_high_watermark_changed(20)
    assert states.first_unstable_offset == 10
    states.on_high_watermark_changed(21)
    assert states.first_unstable_offset == 12
    last = states.apply_marker(header(-1, producer=2), COMMIT, 21)
    assert last is not None
    assert states.stable_offset_after(last) == 22
    states.on_high_watermark_changed(22)
    assert states.first_unstable_offset is None


def test_a_marker_without_data_ends_nothing() -> None:
    states = ProducerStates()
    assert states.apply_marker(header(-1), COMMIT, 5) is None
    assert states.first_unstable_offset is None


def test_a_marker_of_an_older_coordinator_or_producer_is_refused() -> None:
    states = ProducerStates()
    states.apply_marker(header(-1, epoch=3), Marker(True, 5), 0)
    with pytest.raises(KafkaError) as old:
        states.check_marker(header(-1, epoch=3), Marker(True, 4))
    assert old.value.code is ErrorCode.transaction_coordinator_fenced
    with pytest.raises(KafkaError) as zombie:
        states.check_marker(header(-1, epoch=2), Marker(True, 5))
    assert zombie.value.code is ErrorCode.invalid_producer_epoch
    states.check_marker(header(-1, epoch=3), Marker(True, 5))


def test_a_marker_with_a_new_epoch_makes_sequences_begin_again() -> None:
    states = ProducerStates()
    took(states, header(0, 4, txn=True), 0)
    states.apply_marker(header(-1, epoch=1), COMMIT, 4)
    assert refused(states, header(4, epoch=1)) is ErrorCode.out_of_order_sequence_number
    took(states, header(0, epoch=1), 5)


@pytest.mark.spec("TXN-14")
def test_silent_producers_are_forgotten_but_not_with_a_transaction_open() -> None:
    states = ProducerStates()
    took(states, header(0, producer=1), 0)
    took(states, header(0, producer=2, txn=True), 1)
    states.expire(now_ms=WallMs(104), idle_ms=100)
    assert len(states) == 2
    states.expire(now_ms=WallMs(105), idle_ms=100)
    assert [state.producer_id for state in states] == [2]
    ProducerStates().expire(now_ms=WallMs(105), idle_ms=100)


@pytest.mark.spec("TXN-14", "LOG-92")
@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.integers(1, 4), st.sampled_from(["data", "txn", "end"])),
        max_size=20,
    )
)
def test_a_snapshot_restores_what_decides(steps: list[tuple[int, int, str]]) -> None:
    states = ProducerStates()
    offset = 0
    for producer, count, kind in steps:
        known = states.get(producer)
        sequence = known.last_sequence + 1 if known else 0
        is_open = known is not None and known.txn_first_offset is not None
        if kind == "end":
            states.apply_marker(header(-1, producer=producer), ABORT, offset)
            count = 1
        else:
            batch = header(sequence, count, producer=producer, txn=is_open or kind == "txn")
            took(states, batch, offset)
        offset += count
    states.on_high_watermark_changed(offset)
    again = ProducerStates()
    again.restore(states.entries())
    assert again.entries() == states.entries()
    assert again.first_unstable_offset == states.first_unstable_offset
    for state in states:
        restored = again.get(state.producer_id)
        assert restored is not None
        assert restored.last_sequence == state.last_sequence
        if state.batches:
            assert restored.batches[-1] == state.batches[-1]
