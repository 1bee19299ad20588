"""Where a transactional producer stands, and what it may do there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.client.errors import AbortNeeded, ErrorCode, Fenced, UserError, refusal
from ottla.client.producer.transactions.state import MOVES, Transaction, TransactionPhase
from tests.client.producer.rig import TP


def at(phase: TransactionPhase) -> Transaction:
    transaction = Transaction("id")
    transaction.phase = phase
    if phase is TransactionPhase.DEAD:
        transaction.error = refusal(ErrorCode.producer_fenced)
    if phase is TransactionPhase.BROKEN:
        transaction.error = TimeoutError("too late")
    return transaction


@pytest.mark.spec("TXN-31", "TXN-49")
def test_a_transaction_begins_after_the_start_and_not_inside_another() -> None:
    assert at(TransactionPhase.READY).begin() is None  # type: ignore[func-returns-value]
    for phase, said in (
        (TransactionPhase.NEW, "init_transactions"),
        (TransactionPhase.OPEN, "a transaction is open already"),
        (TransactionPhase.PREPARED, "call complete_transaction"),
        (TransactionPhase.ENDING, "in progress"),
        (TransactionPhase.BROKEN, "abort"),
    ):
        with pytest.raises(UserError, match=said):
            at(phase).begin()


@pytest.mark.spec("TXN-32")
def test_a_new_partition_is_announced_once_unless_brokers_add_it_themselves() -> None:
    transaction = at(TransactionPhase.OPEN)
    transaction.touch(TP)
    assert transaction.to_add == {TP}
    assert not transaction.may_send(TP)
    transaction.to_add.clear()
    transaction.added.add(TP)
    transaction.touch(TP)
    assert transaction.to_add == set()
    assert transaction.may_send(TP)
    newer = at(TransactionPhase.OPEN)
    newer.adds_partitions_implicitly = True
    newer.touch(TP)
    assert newer.to_add == set()
    assert newer.may_send(TP)


@pytest.mark.spec("TXN-48")
def test_records_are_taken_only_in_an_open_transaction() -> None:
    for phase in (
        TransactionPhase.NEW,
        TransactionPhase.READY,
        TransactionPhase.PREPARED,
        TransactionPhase.ENDING,
    ):
        with pytest.raises(UserError):
            at(phase).touch(TP)
    with pytest.raises(AbortNeeded, match="must be aborted: too late"):
        at(TransactionPhase.BROKEN).touch(TP)


@pytest.mark.spec("TXN-51", "TXN-52")
def test_after_a_failure_only_an_abort_is_left() -> None:
    transaction = at(TransactionPhase.OPEN)
    transaction.fail(TimeoutError("too late"))
    assert transaction.phase.name == "BROKEN"
    with pytest.raises(AbortNeeded) as told:
        transaction.end(commit=True)
    assert told.value.code is ErrorCode.transaction_abortable
    transaction.end(commit=False)
    transaction.on_ended()
    assert transaction.phase is TransactionPhase.READY
    assert transaction.error is None


@pytest.mark.spec("TXN-52")
@pytest.mark.parametrize("code", [ErrorCode.producer_fenced, ErrorCode.invalid_txn_state])
def test_after_a_fatal_error_everything_is_refused_with_it(code: ErrorCode) -> None:
    transaction = at(TransactionPhase.OPEN)
    transaction.fail(refusal(code, "why"))
    asks: list[Callable[[], object]] = [
        transaction.begin,
        lambda: transaction.touch(TP),
        lambda: transaction.end(commit=False),
        transaction.check,
    ]
    for ask in asks:
        with pytest.raises(Fenced if code is ErrorCode.producer_fenced else Exception, match="why"):
            ask()
    transaction.fail(ValueError("later"))
    assert "why" in str(transaction.error)


def test_an_end_that_was_not_answered_may_be_asked_for_again_but_not_the_other_way() -> None:
    transaction = at(TransactionPhase.OPEN)
    transaction.end(commit=True)
    transaction.end(commit=True)
    with pytest.raises(UserError, match="in progress"):
        transaction.end(commit=False)
    for phase in (TransactionPhase.NEW, TransactionPhase.READY):
        with pytest.raises(UserError):
            at(phase).end(commit=True)


def test_a_failure_while_aborting_or_between_transactions_changes_nothing() -> None:
    abort_needed = at(TransactionPhase.BROKEN)
    abort_needed.end(commit=False)
    abort_needed.fail(TimeoutError())
    assert abort_needed.phase is TransactionPhase.ENDING
    idle = at(TransactionPhase.READY)
    idle.fail(TimeoutError())
    assert idle.phase is TransactionPhase.READY


def test_no_move_but_those_of_the_table() -> None:
    for start, allowed in MOVES.items():
        for to in set(TransactionPhase) - allowed:
            with pytest.raises(AssertionError):
                at(start).move(to)
        for to in allowed:
            at(start).move(to)
