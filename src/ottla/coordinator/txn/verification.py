"""Whether a transactional batch may be appended: the coordinator's side of that question.

Owns how the coordinator's refusals are said to a producer. A client of the older protocol has
added the partition itself, and it is only looked up; for one that speaks transactions v2 the
partition is added here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from ottla.coordinator.txn.end_transaction import EPOCH_PER_TRANSACTION
from ottla.coordinator.txn.service import Transactions
from ottla.coordinator.txn.state import Producer
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import ProducerId, TopicPartition
from ottla.replica.transaction_verification import TransactionalBatch

log = logging.getLogger(__name__)

SAID: Final = {
    ErrorCode.coordinator_load_in_progress: ErrorCode.not_enough_replicas,
    ErrorCode.coordinator_not_available: ErrorCode.not_enough_replicas,
    ErrorCode.not_coordinator: ErrorCode.not_enough_replicas,
    ErrorCode.producer_fenced: ErrorCode.invalid_producer_epoch,
}
"""What a producer understands: the first three make it try again."""


class CoordinatorVerifier:
    def __init__(self, txns: Transactions, verifies: Callable[[], bool]) -> None:
        self._txns = txns
        self._verifies = verifies

    def admit(
        self,
        txn: TransactionalBatch,
        key: TopicPartition,
        producer_id: int,
        epoch: int,
        done: Callable[[ErrorCode], None],
    ) -> None:
        who = Producer(ProducerId(producer_id), epoch)
        if txn.adds:
            self._add(txn, who, key, done)
        elif self._verifies():
            done(said(self._txns.verify(txn.id, who, key), txn))
        else:
            done(ErrorCode.none)

    def _add(
        self,
        txn: TransactionalBatch,
        who: Producer,
        key: TopicPartition,
        done: Callable[[ErrorCode], None],
    ) -> None:
        keys = frozenset((key,))
        try:
            commit = self._txns.start_adding(txn.id, who, keys, EPOCH_PER_TRANSACTION)
        except KafkaError as refusal:
            done(said(refusal.code, txn))
        except Exception:  # of this one producer, whose connection has other requests
            log.exception("%s cannot be added to %s", key, txn.id)
            done(ErrorCode.unknown_server_error)
        else:
            if commit is None:
                done(ErrorCode.none)
            else:
                commit.then(lambda code: done(said(code, txn)))


def said(code: ErrorCode, txn: TransactionalBatch) -> ErrorCode:
    if code is ErrorCode.transaction_abortable and not txn.knows_abortable:
        return ErrorCode.invalid_txn_state
    if code is ErrorCode.concurrent_transactions and not txn.adds:
        return ErrorCode.not_enough_replicas
    return SAID.get(code, code)
