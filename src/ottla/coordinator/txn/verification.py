"""Verifies with the coordinator that a transactional batch may be appended.

Owns how the coordinator's errors are mapped to errors of Produce. A client before transactions v2
has added the partition itself, and it is only looked up; for a transactions-v2 client the partition
is added here.
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

PRODUCER_ERRORS: Final = {
    ErrorCode.coordinator_load_in_progress: ErrorCode.not_enough_replicas,
    ErrorCode.coordinator_not_available: ErrorCode.not_enough_replicas,
    ErrorCode.not_coordinator: ErrorCode.not_enough_replicas,
    ErrorCode.producer_fenced: ErrorCode.invalid_producer_epoch,
}
"""Coordinator errors as producers handle them: the first three make a producer retry."""


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
        producer = Producer(ProducerId(producer_id), epoch)
        if txn.adds:
            self._add(txn, producer, key, done)
        elif self._verifies():
            done(producer_error(self._txns.verify(txn.id, producer, key), txn))
        else:
            done(ErrorCode.none)

    def _add(
        self,
        txn: TransactionalBatch,
        producer: Producer,
        key: TopicPartition,
        done: Callable[[ErrorCode], None],
    ) -> None:
        keys = frozenset((key,))
        try:
            commit = self._txns.start_adding(txn.id, producer, keys, EPOCH_PER_TRANSACTION)
        except KafkaError as refusal:
            done(producer_error(refusal.code, txn))
        except Exception:  # fails this batch only: the connection has other requests
            log.exception("transactional id %s: cannot add partition %s", txn.id, key)
            done(ErrorCode.unknown_server_error)
        else:
            if commit is None:
                done(ErrorCode.none)
            else:
                commit.then(lambda code: done(producer_error(code, txn)))


def producer_error(code: ErrorCode, txn: TransactionalBatch) -> ErrorCode:
    if code is ErrorCode.transaction_abortable and not txn.knows_abortable:
        return ErrorCode.invalid_txn_state
    if code is ErrorCode.concurrent_transactions and not txn.adds:
        return ErrorCode.not_enough_replicas
    return PRODUCER_ERRORS.get(code, code)
