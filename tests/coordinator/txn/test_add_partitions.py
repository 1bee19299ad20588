"""Partitions of a transaction."""

from __future__ import annotations

import pytest

from ottla.coordinator.txn.add_partitions import add, verify
from ottla.coordinator.txn.state import Producer, Transaction, TxnState
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import ProducerId, TopicPartition

S = TxnState
P7 = ProducerId(7)
ME = Producer(P7, 3)
A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
EMPTY = Transaction("tx", P7, 3)


def added(held: Transaction | None, *keys: TopicPartition, now_ms: int = 50) -> Transaction | None:
    return add(held, ME, frozenset(keys), version=0, now_ms=WallMs(now_ms))


@pytest.mark.spec("TXN-31", "TXN-32")
@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_the_first_partition_begins_the_transaction_and_its_clock(state: TxnState) -> None:
    held = EMPTY._replace(state=state, started_ms=WallMs(7))
    after = added(held, A0)
    assert after is not None
    assert (after.state, after.partitions, after.started_ms) == (S.ONGOING, frozenset({A0}), 50)


@pytest.mark.spec("TXN-32")
def test_further_ones_join_it_without_moving_its_clock() -> None:
    first = added(EMPTY, A0)
    after = added(first, A1, now_ms=90)
    assert after is not None
    assert (after.partitions, after.started_ms, after.updated_ms) == (frozenset({A0, A1}), 50, 90)


@pytest.mark.spec("TXN-32")
def test_what_is_in_already_needs_no_record() -> None:
    assert added(added(EMPTY, A0, A1), A1) is None


@pytest.mark.spec("TXN-33")
@pytest.mark.parametrize(
    ("held", "who", "code"),
    [
        (None, ME, ErrorCode.invalid_producer_id_mapping),
        (EMPTY, Producer(ProducerId(8), 3), ErrorCode.invalid_producer_id_mapping),
        (EMPTY, Producer(P7, 2), ErrorCode.producer_fenced),
        (EMPTY, Producer(P7, 4), ErrorCode.producer_fenced),
        (EMPTY._replace(state=S.PREPARE_COMMIT), ME, ErrorCode.concurrent_transactions),
        (EMPTY._replace(state=S.PREPARE_ABORT), ME, ErrorCode.concurrent_transactions),
        (
            EMPTY._replace(state=S.ONGOING, epoch=2, next_producer_id=P7, next_epoch=3),
            ME,
            ErrorCode.invalid_txn_state,
        ),
    ],
)
def test_who_may_not_add_is_told_why(
    held: Transaction | None, who: Producer, code: ErrorCode
) -> None:
    with pytest.raises(KafkaError) as refused:
        add(held, who, frozenset({A0}), version=0, now_ms=WallMs(0))
    assert refused.value.code is code
    assert verify(held, who, A0) is code


def test_only_partitions_of_the_open_transaction_are_verified() -> None:
    ongoing = added(EMPTY, A0)
    assert verify(ongoing, ME, A0) is ErrorCode.none
    assert verify(ongoing, ME, A1) is ErrorCode.transaction_abortable
    assert verify(EMPTY, ME, A0) is ErrorCode.transaction_abortable
