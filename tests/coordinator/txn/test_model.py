"""Every order of events, against a model that knows only who came last and what is open."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from ottla.coordinator.outcome import Outcome
from ottla.coordinator.txn.end_transaction import EndRequest
from ottla.coordinator.txn.init_producer_id import InitProducerIdRequest
from ottla.coordinator.txn.records import record_of
from ottla.coordinator.txn.shard import TIMEOUT_CHECK, Intervals, TxnShard
from ottla.coordinator.txn.state import (
    COMMITS,
    DECIDED,
    LAST_EPOCH,
    NeedsProducerId,
    Producer,
    Transaction,
    TxnState,
)
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_PRODUCER, ProducerId, TopicPartition

E = ErrorCode
R = TypeVar("R")
ID = "tx"
TIMEOUT_MS = 1_000


class Client:
    """One life of a producer: whom it takes itself for, and which protocol it speaks."""

    def __init__(self, who: Producer, version: int) -> None:
        self.who = who
        self.version = version


class Silent:
    def finish(self, id: str, *, committed: bool = False) -> None: ...

    def on_completed(self, id: str) -> None: ...


class Transactions(RuleBasedStateMachine):
    clients = Bundle("clients")

    @initialize(epoch=st.sampled_from([0, LAST_EPOCH - 3, LAST_EPOCH - 2, LAST_EPOCH - 1]))
    def begin(self, epoch: int) -> None:
        self.now = 0
        self.ids = count(10)
        self.log: dict[bytes, bytes | None] = {}
        self.shard = TxnShard(Intervals(), Silent())
        self.newest: Client | None = None  # nobody, while an abort fences everybody
        self.phase = "rest"
        self.last_end: tuple[Producer, bool] | None = None
        self.given: set[Producer] = {Producer(ProducerId(7), epoch)}
        self._written(Transaction(ID, ProducerId(7), epoch, timeout_ms=TIMEOUT_MS))

    # What can happen

    @rule(target=clients, version=st.sampled_from([0, 2]))
    def a_client_begins(self, version: int) -> Client:
        asked = InitProducerIdRequest(TIMEOUT_MS)
        try:
            reply = self._decided(
                lambda fresh: self.shard.initialise(ID, asked, fresh, WallMs(self.now))
            )
        except KafkaError as refused:
            assert refused.code is E.concurrent_transactions
            assert self.phase in ("commit", "abort")
            return Client(Producer(NO_PRODUCER, -1), version)
        if reply is None:
            assert self.phase == "open"
            self.phase, self.newest, self.last_end = "abort", None, None
            return Client(Producer(NO_PRODUCER, -1), version)
        assert self.phase == "rest"
        self._is_new(reply.producer)
        self.newest, self.last_end = Client(reply.producer, version), None
        return self.newest

    @rule(client=clients, partition=st.integers(0, 2))
    def it_adds(self, client: Client, partition: int) -> None:
        keys = frozenset({TopicPartition("t", partition)})
        code = self._code(
            lambda _: self.shard.add(ID, client.who, keys, client.version, WallMs(self.now))
        )
        if client is not self.newest:
            assert code is not E.none
        elif self.phase in ("commit", "abort"):
            assert code is E.concurrent_transactions
        else:
            assert code is E.none
            self.phase = "open"

    @rule(client=clients, commit=st.booleans())
    def it_ends(self, client: Client, commit: bool) -> None:
        asked = EndRequest(client.who, commit, client.version)
        expected = self._expected_end(client, commit)
        try:
            following = self._decided(
                lambda fresh: self.shard.end(ID, asked, fresh, WallMs(self.now))
            )
        except KafkaError as refused:
            assert refused.code is expected
            return
        assert expected is E.none
        if self.phase == "open" or (self.phase == "rest" and client.version and not commit):
            self.last_end = (client.who, commit)
            self.phase = ("commit" if commit else "abort") if self.phase == "open" else "rest"
            if client.version:
                self._is_new(following)
                client.who = following
        assert following == client.who

    @rule(client=clients, commit=st.booleans())
    def an_end_comes_late(self, client: Client, commit: bool) -> None:
        """A packet of the transaction before: with an epoch each it does no harm."""
        if self.newest is not client or not client.version or self.last_end is None:
            return
        who, committed = self.last_end
        if who == client.who:
            return
        code = self._code(
            lambda f: self.shard.end(ID, EndRequest(who, commit, 2), f, WallMs(self.now))
        )
        if self.phase == "open":
            assert code in (E.producer_fenced, E.invalid_producer_id_mapping)
        elif commit != committed:
            assert code is E.invalid_txn_state
        else:
            assert code is (E.none if self.phase == "rest" else E.concurrent_transactions)

    @rule()
    def the_markers_are_written(self) -> None:
        txn = self._txn()
        if txn.state in DECIDED:
            self._carried_out(self.shard.complete(txn, WallMs(self.now)))
            self.phase = "rest"

    @rule(passed_ms=st.sampled_from([10, TIMEOUT_MS + 1]))
    def time_passes(self, passed_ms: int) -> None:
        self.now += passed_ms
        self._carried_out(self.shard.on_timer(TIMEOUT_CHECK, WallMs(self.now)))
        if self.phase == "open" and self._txn().state is TxnState.PREPARE_ABORT:
            self.phase, self.newest, self.last_end = "abort", None, None

    @rule()
    def the_coordinator_fails_over(self) -> None:
        self.shard = TxnShard(Intervals(), Silent())
        for key, value in self.log.items():
            what = self.shard.decode(key, value)
            assert what is not None
            self.shard.replay(what, 0, NO_PRODUCER)

    # What must hold

    @invariant()
    def the_decision_is_what_the_model_says(self) -> None:
        txn = self._txn()
        shown = {"rest": not txn.partitions, "open": txn.state is TxnState.ONGOING}
        decided = txn.state in DECIDED and (txn.state in COMMITS) == (self.phase == "commit")
        assert shown.get(self.phase, decided), (self.phase, txn)

    @invariant()
    def markers_outrank_everybody_who_wrote(self) -> None:
        txn = self._txn()
        if txn.state in DECIDED and txn.version >= 2:
            mine = {who.epoch for who in self.given if who.id == txn.producer_id}
            assert txn.epoch >= max(mine, default=0)

    def _expected_end(self, client: Client, commit: bool) -> ErrorCode:
        if client is not self.newest:
            txn = self._txn()
            other = client.who.id != txn.client.id
            return E.invalid_producer_id_mapping if other else E.producer_fenced
        if self.phase == "open":
            return E.none
        if client.version:
            if self.phase != "rest":
                return E.concurrent_transactions
            return E.invalid_txn_state if commit else E.none
        if self.last_end is None or self.last_end[1] != commit:
            return E.invalid_txn_state
        return E.none if self.phase == "rest" else E.concurrent_transactions

    def _is_new(self, who: Producer) -> None:
        """Nobody was ever given this identity, nor a later one of the same id."""
        assert 0 <= who.epoch < LAST_EPOCH
        assert all(who.epoch > other.epoch for other in self.given if other.id == who.id)
        self.given.add(who)

    # As the runtime does it

    def _txn(self) -> Transaction:
        txn = self.shard.get(ID)
        assert txn is not None
        return txn

    def _decided(self, decide: Callable[[ProducerId | None], Outcome[R]]) -> R:
        try:
            outcome = decide(None)
        except NeedsProducerId:
            outcome = decide(ProducerId(next(self.ids)))
        self._carried_out(outcome)
        return outcome.reply

    def _code(self, decide: Callable[[ProducerId | None], Outcome[Any]]) -> ErrorCode:
        try:
            self._decided(decide)
        except KafkaError as refused:
            return refused.code
        return E.none

    def _carried_out(self, outcome: Outcome[Any]) -> None:
        for record in outcome.records:
            self.log[record.key] = record.value
            self.shard.replay(record.change, 0, NO_PRODUCER)

    def _written(self, txn: Transaction) -> None:
        self._carried_out(Outcome(None, (record_of(txn),)))


Transactions.TestCase.settings = settings(
    max_examples=200,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestTransactions = pytest.mark.spec("TXN-17", "TXN-26", "TXN-30", "TXN-40")(Transactions.TestCase)
