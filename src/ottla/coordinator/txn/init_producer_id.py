"""InitProducerId with a transactional id: who the producer is from now on.

Pure. Each answer has a larger epoch than the one before, so that what an earlier life of the
producer still has under way is refused everywhere. A transaction that life left open is aborted
first, and the client told to come back; unless it asks to keep it, because it was prepared for a
two-phase commit.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.coordinator.txn.end_transaction import fenced
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
    moved,
)
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_PRODUCER, ProducerId


class InitProducerIdRequest(NamedTuple):
    timeout_ms: int
    expected: Producer | None = None
    """Who the client thinks it is; None when it begins."""
    two_phase: bool = False
    keep_prepared: bool = False

    @property
    def kept_timeout_ms(self) -> int:
        return NEVER_MS if self.two_phase else self.timeout_ms


class InitializedProducer(NamedTuple):
    producer: Producer
    ongoing: Producer = NOBODY
    """Whose prepared transaction was kept."""


class InitStep(NamedTuple):
    """What comes of it. Without a reply the transaction is being aborted: come back later."""

    reply: InitializedProducer | None
    after: Transaction


def initialise(
    id: str,
    txn: Transaction | None,
    asked: InitProducerIdRequest,
    fresh: ProducerId | None,
    now_ms: int,
) -> InitStep:
    if txn is None:
        first = Producer(_needed(fresh), 0)
        return _given(Transaction(id, *first), asked, now_ms, first, last_epoch=NO_EPOCH)
    if asked.expected is not None and not _may_be(txn, asked.expected):
        raise KafkaError(ErrorCode.producer_fenced)
    if txn.state in DECIDED:
        raise KafkaError(ErrorCode.concurrent_transactions)
    if txn.state is TxnState.ONGOING:
        if asked.keep_prepared:
            return _kept(txn, asked, fresh, now_ms)
        return InitStep(None, fenced(txn, now_ms))
    return _next_life(txn, asked, fresh, now_ms)


def _may_be(txn: Transaction, expected: Producer) -> bool:
    """Same id, or the one before where its epochs ran out and the answer got lost."""
    return expected.id == txn.client.id or (
        expected.id == txn.previous_producer_id and expected.is_exhausted
    )


def _next_life(
    txn: Transaction, asked: InitProducerIdRequest, fresh: ProducerId | None, now_ms: int
) -> InitStep:
    now, expected = txn.producer, asked.expected
    if expected is not None and expected != now:
        repeated = expected.id != now.id or expected.epoch == txn.last_epoch
        if expected.epoch == NO_EPOCH or not repeated:
            raise KafkaError(ErrorCode.producer_fenced)
        return _given(txn, asked, now_ms, now, last_epoch=txn.last_epoch)
    last_epoch = NO_EPOCH if expected is None else now.epoch
    following = Producer(_needed(fresh), 0) if now.is_exhausted else now.bumped()
    return _given(txn, asked, now_ms, following, last_epoch=last_epoch)


def _given(
    txn: Transaction,
    asked: InitProducerIdRequest,
    now_ms: int,
    producer: Producer,
    *,
    last_epoch: int,
) -> InitStep:
    rotated = producer.id != txn.producer_id
    after = moved(
        txn,
        TxnState.EMPTY,
        producer_id=producer.id,
        epoch=producer.epoch,
        last_epoch=last_epoch,
        previous_producer_id=txn.producer_id if rotated else txn.previous_producer_id,
        timeout_ms=asked.kept_timeout_ms,
        started_ms=NOT_STARTED,
        updated_ms=now_ms,
        version=0,
    )
    return InitStep(InitializedProducer(producer), after)


def _kept(
    txn: Transaction, asked: InitProducerIdRequest, fresh: ProducerId | None, now_ms: int
) -> InitStep:
    """The transaction stays open; only its end may be decided, by the client's new identity."""
    now = txn.client
    client = Producer(_needed(fresh), 0) if now.is_exhausted else now.bumped()
    after = moved(
        txn,
        TxnState.ONGOING,
        next_producer_id=client.id,
        next_epoch=client.epoch,
        timeout_ms=asked.kept_timeout_ms,
        updated_ms=now_ms,
    )
    return InitStep(InitializedProducer(client, txn.producer), after)


def _needed(fresh: ProducerId | None) -> ProducerId:
    if fresh is None:
        raise NeedsProducerId
    assert fresh != NO_PRODUCER
    return fresh
