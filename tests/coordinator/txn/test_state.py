"""The states of a transaction and its two identities."""

from __future__ import annotations

import pytest

from ottla.coordinator.txn.state import (
    AT_REST,
    DECIDED,
    LAST_EPOCH,
    MOVES,
    NEVER_MS,
    Producer,
    Transaction,
    TxnState,
    transition,
)
from ottla.model.ids import ProducerId

S = TxnState
PREDECESSORS = {
    S.EMPTY: {S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT},
    S.ONGOING: {S.ONGOING, S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT},
    S.PREPARE_COMMIT: {S.ONGOING},
    # from a state at rest: transactions v2, where a client may abort what it never began
    S.PREPARE_ABORT: {
        S.ONGOING, S.PREPARE_EPOCH_FENCE, S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT,
    },
    S.COMPLETE_COMMIT: {S.PREPARE_COMMIT},
    S.COMPLETE_ABORT: {S.PREPARE_ABORT},
    S.DEAD: {S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT},
    S.PREPARE_EPOCH_FENCE: {S.ONGOING},
}  # fmt: skip


@pytest.mark.spec("TXN-26")
@pytest.mark.parametrize("to", TxnState)
def test_each_state_is_reached_from_its_legal_predecessors_only(to: TxnState) -> None:
    assert {state for state in TxnState if to in MOVES[state]} == PREDECESSORS[to]


@pytest.mark.spec("TXN-26")
@pytest.mark.parametrize(("at", "to"), [(a, b) for a in S for b in S if b not in MOVES[a]])
def test_an_illegal_move_is_a_broken_invariant(at: TxnState, to: TxnState) -> None:
    with pytest.raises(AssertionError, match=at.name):
        transition(Transaction("tx", ProducerId(1), 0, at), to)


@pytest.mark.spec("TXN-25")
def test_states_have_the_numbers_of_the_log_and_the_names_tools_show() -> None:
    assert [(int(state), state.label) for state in TxnState] == [
        (0, "Empty"),
        (1, "Ongoing"),
        (2, "PrepareCommit"),
        (3, "PrepareAbort"),
        (4, "CompleteCommit"),
        (5, "CompleteAbort"),
        (6, "Dead"),
        (7, "PrepareEpochFence"),
    ]
    assert not DECIDED & AT_REST


@pytest.mark.spec("TXN-30")
def test_one_epoch_is_kept_back_so_that_the_last_holder_can_be_fenced() -> None:
    assert not Producer(ProducerId(1), LAST_EPOCH - 2).is_exhausted
    assert Producer(ProducerId(1), LAST_EPOCH - 1).is_exhausted


def test_the_client_is_its_next_identity_as_soon_as_it_has_one() -> None:
    txn = Transaction("tx", ProducerId(1), 5, S.ONGOING)
    assert txn.client == (1, 5)
    assert not txn.is_kept
    kept = transition(txn, S.ONGOING, next_producer_id=ProducerId(9), next_epoch=0)
    assert kept.client == (9, 0)
    assert kept.producer == (1, 5)
    assert kept.is_kept


def test_a_two_phase_producer_has_no_timeout() -> None:
    assert Transaction("tx", ProducerId(1), 0, timeout_ms=1).has_timeout
    assert not Transaction("tx", ProducerId(1), 0, timeout_ms=NEVER_MS).has_timeout
