"""AddPartitionsToTxn: a partition is added to the transaction before its records are appended.

Pure. Adding the first partition starts the transaction and its timeout.
"""

from __future__ import annotations

from ottla.coordinator.txn.state import DECIDED, Producer, Transaction, TxnState, transition
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicPartition


def check_producer(txn: Transaction | None, producer: Producer) -> Transaction:
    """The transaction, if `producer` may add partitions to it; KafkaError otherwise."""
    if txn is None or producer.id != (client := txn.client).id:
        raise KafkaError(ErrorCode.invalid_producer_id_mapping)
    if producer.epoch != client.epoch:
        raise KafkaError(ErrorCode.producer_fenced)
    if txn.state in DECIDED:
        raise KafkaError(ErrorCode.concurrent_transactions)
    if txn.is_kept:
        raise KafkaError(
            ErrorCode.invalid_txn_state,
            f"Transactional id {txn.id} has a prepared transaction that was kept: commit or abort "
            "it before adding partitions.",
        )
    return txn


def add(
    txn: Transaction | None,
    producer: Producer,
    partitions: frozenset[TopicPartition],
    *,
    version: int,
    now_ms: WallMs,
) -> Transaction | None:
    """The transaction with these partitions; None if it has all of them already."""
    txn = check_producer(txn, producer)
    ongoing = txn.state is TxnState.ONGOING
    if ongoing and partitions <= txn.partitions:
        return None
    return transition(
        txn,
        TxnState.ONGOING,
        partitions=txn.partitions | partitions,
        started_ms=txn.started_ms if ongoing else now_ms,
        updated_ms=now_ms,
        version=version,
    )


def verify(txn: Transaction | None, producer: Producer, partition: TopicPartition) -> ErrorCode:
    """Whether this partition is part of an open transaction of this producer."""
    try:
        txn = check_producer(txn, producer)
    except KafkaError as refusal:
        return refusal.code
    if txn.state is TxnState.ONGOING and partition in txn.partitions:
        return ErrorCode.none
    return ErrorCode.transaction_abortable
