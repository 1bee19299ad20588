"""Which transactional batches the transaction coordinator must verify before they are appended.

Pure, with the protocol of the verifier. A batch outside any transaction would never be followed by
a marker: read_committed consumers would wait for ever behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from ottla.log.producers.producer_states import ProducerState
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicPartition
from ottla.protocol.records.batch import BatchHeader


class TransactionalBatch(NamedTuple):
    """What a produce says of its transaction."""

    id: str
    adds: bool = False
    """The broker adds the partition to the transaction (transactions v2); else the client has."""
    knows_abortable: bool = False
    """The client knows TRANSACTION_ABORTABLE."""


class TransactionVerifier(Protocol):
    def admit(
        self,
        txn: TransactionalBatch,
        key: TopicPartition,
        producer_id: int,
        epoch: int,
        done: Callable[[ErrorCode], None],
    ) -> None:
        """Call `done` once, now or later, with what the client must hear if it is not admitted."""


def needs_verification(
    state: ProducerState | None, header: BatchHeader, txn: TransactionalBatch | None
) -> bool:
    """Whether this is the first batch that a transaction brings to the partition.

    `state` is what the partition knows of the producer. KafkaError for what cannot be a first.
    """
    if txn is None:
        raise KafkaError(ErrorCode.transactional_id_authorization_failed)
    if state is not None:
        if header.producer_epoch < state.epoch:
            return False  # the append refuses it
        if header.producer_epoch == state.epoch and state.txn_first_offset is not None:
            return False
    if state is None and txn.adds and header.base_sequence:
        # With an epoch per transaction sequences begin at 0: a batch before this one was refused.
        raise KafkaError(ErrorCode.out_of_order_sequence_number)
    return True
