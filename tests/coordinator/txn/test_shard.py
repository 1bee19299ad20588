"""One partition's transactional ids."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.coordinator.outcome import Outcome, SetTimer
from ottla.coordinator.txn.end_transaction import EndRequest
from ottla.coordinator.txn.init_producer_id import InitProducerIdRequest
from ottla.coordinator.txn.records import TransactionalIdExpired
from ottla.coordinator.txn.shard import (
    AT_ONCE,
    EXPIRATION_CHECK,
    ID_BYTES,
    TIMEOUT_CHECK,
    Intervals,
    TxnShard,
)
from ottla.coordinator.txn.state import NO_EPOCH, Producer, Transaction, TxnState
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_PRODUCER, ProducerId, TopicPartition

S = TxnState
P7 = ProducerId(7)
ME = Producer(P7, 0)
A = frozenset({TopicPartition("a", 0)})
ONGOING = Transaction("tx", P7, 0, S.ONGOING, 1_000, A, WallMs(0), WallMs(0))


class Heard:
    """Who hears of ends, and writes down in which order."""

    def __init__(self) -> None:
        self.finishing: list[str] = []
        self.committed: list[str] = []
        self.done: list[str] = []

    def finish(self, id: str, *, committed: bool = False) -> None:
        self.finishing.append(id)
        if committed:
            self.committed.append(id)

    def on_completed(self, id: str) -> None:
        self.done.append(id)


def shard_of(*held: Transaction, intervals: Intervals | None = None) -> tuple[TxnShard, Heard]:
    heard = Heard()
    shard = TxnShard(intervals or Intervals(), heard)
    for txn in held:
        shard.replay(txn, 0, NO_PRODUCER)
    heard.done.clear()
    return shard, heard


def stored(what: object) -> object:
    """What the log has a place for."""
    return what._replace(last_epoch=NO_EPOCH) if isinstance(what, Transaction) else what


def taken_in(shard: TxnShard, outcome: Outcome[Any]) -> None:
    """Do with a decision what the runtime does."""
    for record in outcome.records:
        assert shard.decode(record.key, record.value) == stored(record.change)
        shard.replay(record.change, 0, NO_PRODUCER)
    if outcome.then is not None:
        outcome.then(ErrorCode.none, WallMs(0))


def test_deciding_changes_nothing_until_it_is_replayed() -> None:
    shard, _ = shard_of()
    outcome = shard.initialise("tx", InitProducerIdRequest(1), P7, WallMs(5))
    assert shard.get("tx") is None
    taken_in(shard, outcome)
    assert shard.get("tx") is not None
    assert [txn.id for txn in shard] == ["tx"]


@pytest.mark.spec("TXN-22", "TXN-38")
def test_what_was_decided_before_loading_is_finished_after_it() -> None:
    decided = ONGOING._replace(state=S.PREPARE_COMMIT)
    shard, heard = shard_of(ONGOING, decided._replace(id="other"))
    outcome = shard.on_loaded(WallMs(0))
    assert heard.finishing == ["other"]
    assert {op.key for op in outcome.timers} == {TIMEOUT_CHECK, EXPIRATION_CHECK}


@pytest.mark.spec("TXN-37", "TXN-39")
def test_a_decision_is_finished_once_it_is_committed_however_that_went() -> None:
    for code in (ErrorCode.none, ErrorCode.coordinator_not_available):
        shard, heard = shard_of(ONGOING)
        outcome = shard.end("tx", EndRequest(ME, True), None, WallMs(5))
        assert heard.finishing == []
        assert outcome.then is not None
        outcome.then(code, WallMs(6))
        assert heard.finishing == ["tx"]
        assert heard.committed == (["tx"] if code is ErrorCode.none else [])


def test_completion_is_heard_and_a_stale_one_changes_nothing() -> None:
    shard, heard = shard_of(ONGOING)
    taken_in(shard, shard.end("tx", EndRequest(ME, True), None, WallMs(5)))
    decided = shard.get("tx")
    assert decided is not None
    completion = shard.complete(decided, WallMs(6))
    assert completion.lazily, "decided as it is, it would be completed again"
    taken_in(shard, completion)
    assert heard.done == ["tx"]
    assert not shard.complete(decided, WallMs(7)).records


def test_an_abort_of_nothing_needs_no_finishing() -> None:
    shard, heard = shard_of(ONGOING._replace(state=S.EMPTY, partitions=frozenset()))
    outcome = shard.end("tx", EndRequest(ME, False, 2), None, WallMs(5))
    assert [record.change.state for record in outcome.records] == [
        S.PREPARE_ABORT,
        S.COMPLETE_ABORT,
    ]
    assert outcome.then is None
    taken_in(shard, outcome)
    assert heard.done == ["tx"]


def test_adding_what_is_there_writes_nothing() -> None:
    shard, _ = shard_of(ONGOING)
    assert shard.add("tx", ME, A, 0, WallMs(5)) == Outcome(False)


@pytest.mark.spec("TXN-42")
def test_overdue_transactions_are_fenced_as_many_at_a_time_as_fit_a_batch() -> None:
    many = [ONGOING._replace(id=f"t{n}") for n in range(AT_ONCE + 1)]
    shard, heard = shard_of(*many, ONGOING._replace(id="young", started_ms=WallMs(900)))
    outcome = shard.on_timer(TIMEOUT_CHECK, WallMs(1_500))
    assert len(outcome.records) == AT_ONCE
    taken_in(shard, outcome)
    assert len(heard.finishing) == AT_ONCE
    [timer] = outcome.timers
    assert isinstance(timer, SetTimer)
    assert timer.delay_ms < 1_000
    rest = shard.on_timer(TIMEOUT_CHECK, WallMs(1_500))
    assert len(rest.records) == 1
    assert rest.timers == (SetTimer(TIMEOUT_CHECK, 10_000),)


@pytest.mark.spec("TXN-43")
def test_forgotten_ids_leave_a_tombstone() -> None:
    old = ONGOING._replace(id="old", state=S.COMPLETE_COMMIT)
    shard, _ = shard_of(old, ONGOING, intervals=Intervals(expiration_ms=100))
    outcome = shard.on_timer(EXPIRATION_CHECK, WallMs(100))
    assert [(record.change, record.value) for record in outcome.records] == [
        (TransactionalIdExpired("old"), None)
    ]
    taken_in(shard, outcome)
    assert [txn.id for txn in shard] == ["tx"]


def test_ids_count_as_memory_until_they_are_forgotten() -> None:
    shard, _ = shard_of()
    for _ in range(2):
        taken_in(shard, shard.initialise("tx", InitProducerIdRequest(1), P7, WallMs(5)))
    assert shard.memory_bytes == ID_BYTES + 2
    for _ in range(2):
        shard.replay(TransactionalIdExpired("tx"), 0, NO_PRODUCER)
    assert shard.memory_bytes == 0
