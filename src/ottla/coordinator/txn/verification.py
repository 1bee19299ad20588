"""Verifies with the coordinator that a transactional batch may be appended.

Owns how the coordinator's errors are mapped to errors of Produce. A client before transactions v2
has added the partition itself, and it is only looked up; for a transactions-v2 client the partition
is added here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ottla.coordinator.txn.remote_coordinator import PartitionCheck
from ottla.coordinator.txn.service import Transactions
from ottla.coordinator.txn.state import Producer
from ottla.model.errors import ErrorCode
from ottla.model.ids import ProducerId, TopicPartition
from ottla.replica.transaction_verification import TransactionalBatch

PRODUCER_ERRORS: Final = {
    ErrorCode.coordinator_load_in_progress: ErrorCode.not_enough_replicas,
    ErrorCode.coordinator_not_available: ErrorCode.not_enough_replicas,
    ErrorCode.not_coordinator: ErrorCode.not_enough_replicas,
    ErrorCode.network_exception: ErrorCode.not_enough_replicas,
    ErrorCode.operation_not_attempted: ErrorCode.not_enough_replicas,
    ErrorCode.producer_fenced: ErrorCode.invalid_producer_epoch,
}
"""Coordinator errors as producers handle them: NOT_ENOUGH_REPLICAS makes a producer retry. With
OPERATION_NOT_ATTEMPTED another partition of the same request was refused."""


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
        if not txn.adds and not self._verifies():
            done(ErrorCode.none)
            return
        producer = Producer(ProducerId(producer_id), epoch)
        self._txns.check_partition(
            PartitionCheck(txn.id, producer, key, txn.adds),
            lambda code: done(producer_error(code, txn)),
        )


def producer_error(code: ErrorCode, txn: TransactionalBatch) -> ErrorCode:
    if code is ErrorCode.transaction_abortable and not txn.knows_abortable:
        return ErrorCode.invalid_txn_state
    if code is ErrorCode.concurrent_transactions and not txn.adds:
        return ErrorCode.not_enough_replicas
    return PRODUCER_ERRORS.get(code, code)
