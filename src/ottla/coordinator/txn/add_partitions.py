"""Partitions of a transaction: they join it before its records reach them.

Pure. The first one begins the transaction, and its clock.
"""

from __future__ import annotations

from ottla.coordinator.txn.state import DECIDED, Producer, Transaction, TxnState, moved
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicPartition


def checked(txn: Transaction | None, who: Producer) -> Transaction:
    """The transaction that `who` may add to, or what keeps it from that."""
    if txn is None or who.id != (client := txn.client).id:
        raise KafkaError(ErrorCode.invalid_producer_id_mapping)
    if who.epoch != client.epoch:
        raise KafkaError(ErrorCode.producer_fenced)
    if txn.state in DECIDED:
        raise KafkaError(ErrorCode.concurrent_transactions)
    if txn.is_kept:
        raise KafkaError(ErrorCode.invalid_txn_state, "a kept transaction can only be ended")
    return txn


def add(
    txn: Transaction | None,
    who: Producer,
    partitions: frozenset[TopicPartition],
    *,
    version: int,
    now_ms: int,
) -> Transaction | None:
    """The transaction with these partitions; None when it has them all."""
    txn = checked(txn, who)
    ongoing = txn.state is TxnState.ONGOING
    if ongoing and partitions <= txn.partitions:
        return None
    return moved(
        txn,
        TxnState.ONGOING,
        partitions=txn.partitions | partitions,
        started_ms=txn.started_ms if ongoing else now_ms,
        updated_ms=now_ms,
        version=version,
    )


def verify(txn: Transaction | None, who: Producer, partition: TopicPartition) -> ErrorCode:
    """Whether this partition is part of an open transaction of this producer."""
    try:
        txn = checked(txn, who)
    except KafkaError as refusal:
        return refusal.code
    if txn.state is TxnState.ONGOING and partition in txn.partitions:
        return ErrorCode.none
    return ErrorCode.transaction_abortable
