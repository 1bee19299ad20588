"""InitProducerId with a transactional id: assigns the producer id and epoch.

Pure. Each reply has a larger epoch than the one before, so that requests of an earlier instance of
the producer are fenced everywhere. An open transaction of that instance is aborted first, and the
client told to retry; unless it asks to keep it, because it was prepared for a two-phase commit.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.coordinator.txn.end_transaction import abort_fenced
from ottla.coordinator.txn.state import (
    DECIDED,
    NEVER_MS,
    NO_EPOCH,
    NOBODY,
    NOT_STARTED,
    NeedsProducerId,
    Producer,
    Transaction,
    TxnState,
    transition,
)
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_PRODUCER, ProducerId


class InitProducerIdRequest(NamedTuple):
    timeout_ms: int
    expected: Producer | None = None
    """The producer id and epoch the client has; None for a new instance."""
    two_phase: bool = False
    keep_prepared: bool = False

    @property
    def stored_timeout_ms(self) -> int:
        return NEVER_MS if self.two_phase else self.timeout_ms


class InitializedProducer(NamedTuple):
    producer: Producer
    ongoing: Producer = NOBODY
    """The producer of the prepared transaction that was kept."""


class InitStep(NamedTuple):
    """The reply and the next state; no reply while an open transaction is aborted first."""

    reply: InitializedProducer | None
    after: Transaction


def initialise(
    id: str,
    txn: Transaction | None,
    request: InitProducerIdRequest,
    fresh: ProducerId | None,
    now_ms: WallMs,
) -> InitStep:
    if txn is None:
        first = Producer(_require_id(fresh), 0)
        return _with_producer(Transaction(id, *first), request, now_ms, first, last_epoch=NO_EPOCH)
    if request.expected is not None and not _may_be(txn, request.expected):
        raise KafkaError(ErrorCode.producer_fenced)
    if txn.state in DECIDED:
        raise KafkaError(ErrorCode.concurrent_transactions)
    if txn.state is TxnState.ONGOING:
        if request.keep_prepared:
            return _keep_prepared(txn, request, fresh, now_ms)
        return InitStep(None, abort_fenced(txn, now_ms))
    return _with_next_epoch(txn, request, fresh, now_ms)


def _may_be(txn: Transaction, expected: Producer) -> bool:
    """Same id, or the previous one if its epochs were exhausted and the reply was lost."""
    return expected.id == txn.client.id or (
        expected.id == txn.previous_producer_id and expected.is_exhausted
    )


def _with_next_epoch(
    txn: Transaction, request: InitProducerIdRequest, fresh: ProducerId | None, now_ms: WallMs
) -> InitStep:
    now, expected = txn.producer, request.expected
    if expected is not None and expected != now:
        repeated = expected.id != now.id or expected.epoch == txn.last_epoch
        if expected.epoch == NO_EPOCH or not repeated:
            raise KafkaError(ErrorCode.producer_fenced)
        return _with_producer(txn, request, now_ms, now, last_epoch=txn.last_epoch)
    last_epoch = NO_EPOCH if expected is None else now.epoch
    following = Producer(_require_id(fresh), 0) if now.is_exhausted else now.next_epoch()
    return _with_producer(txn, request, now_ms, following, last_epoch=last_epoch)


def _with_producer(
    txn: Transaction,
    request: InitProducerIdRequest,
    now_ms: WallMs,
    producer: Producer,
    *,
    last_epoch: int,
) -> InitStep:
    rotated = producer.id != txn.producer_id
    after = transition(
        txn,
        TxnState.EMPTY,
        producer_id=producer.id,
        epoch=producer.epoch,
        last_epoch=last_epoch,
        previous_producer_id=txn.producer_id if rotated else txn.previous_producer_id,
        timeout_ms=request.stored_timeout_ms,
        started_ms=NOT_STARTED,
        updated_ms=now_ms,
        version=0,
    )
    return InitStep(InitializedProducer(producer), after)


def _keep_prepared(
    txn: Transaction, request: InitProducerIdRequest, fresh: ProducerId | None, now_ms: WallMs
) -> InitStep:
    """Keep the transaction open; the client can only end it, with its new epoch."""
    now = txn.client
    client = Producer(_require_id(fresh), 0) if now.is_exhausted else now.next_epoch()
    after = transition(
        txn,
        TxnState.ONGOING,
        next_producer_id=client.id,
        next_epoch=client.epoch,
        timeout_ms=request.stored_timeout_ms,
        updated_ms=now_ms,
    )
    return InitStep(InitializedProducer(client, txn.producer), after)


def _require_id(fresh: ProducerId | None) -> ProducerId:
    if fresh is None:
        raise NeedsProducerId
    assert fresh != NO_PRODUCER
    return fresh
