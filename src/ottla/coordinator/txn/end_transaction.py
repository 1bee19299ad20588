"""EndTxn, completion and timeouts of transactions.

Pure. The decision is final once the prepared state is in the log; the coordinator then writes the
markers and the completed state.

With transactions v2 (KIP-890) every end raises the epoch, so that a request delayed beyond its
transaction meets a newer epoch everywhere. A repeated EndTxn then has the previous epoch.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.coordinator.txn.state import (
    AT_REST,
    COMMITS,
    DECIDED,
    LAST_EPOCH,
    NO_EPOCH,
    NeedsProducerId,
    Producer,
    Transaction,
    TxnState,
    transition,
)
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_PRODUCER, ProducerId

EPOCH_PER_TRANSACTION: Final = 2
"""The transaction version from which on each end raises the epoch."""


class EndRequest(NamedTuple):
    producer: Producer
    commit: bool
    version: int = 0


class EndStep(NamedTuple):
    """The client's producer id and epoch afterwards, and the states to write, in order."""

    client: Producer
    after: tuple[Transaction, ...] = ()


def end(
    txn: Transaction | None, request: EndRequest, fresh: ProducerId | None, now_ms: WallMs
) -> EndStep:
    if txn is None:
        raise KafkaError(ErrorCode.invalid_producer_id_mapping)
    if _is_repeat(txn, request.producer):
        return _repeat_end(txn, request.commit)
    client = txn.client
    if request.producer.id != client.id:
        raise KafkaError(ErrorCode.invalid_producer_id_mapping)
    if request.producer.epoch != client.epoch:
        raise KafkaError(ErrorCode.producer_fenced)
    if txn.state is TxnState.ONGOING:
        prepared = _prepare(txn, request, fresh, now_ms)
        return EndStep(prepared.client, (prepared,))
    if request.version < EPOCH_PER_TRANSACTION and txn.state is not TxnState.EMPTY:
        return _repeat_end(txn, request.commit)
    if txn.state in DECIDED:  # of the transaction before
        raise KafkaError(ErrorCode.concurrent_transactions)
    if request.commit or request.version < EPOCH_PER_TRANSACTION:
        raise KafkaError(ErrorCode.invalid_txn_state)
    # A transactions-v2 client cannot know whether its records started a transaction.
    prepared = _prepare(txn, request, fresh, now_ms)._replace(started_ms=now_ms)
    completed = complete(prepared, now_ms)
    return EndStep(completed.client, (prepared, completed))


def complete(txn: Transaction, now_ms: WallMs) -> Transaction:
    """Every marker is written: the client may start the next transaction."""
    commits = txn.state is TxnState.PREPARE_COMMIT
    client = txn.client
    return transition(
        txn,
        TxnState.COMPLETE_COMMIT if commits else TxnState.COMPLETE_ABORT,
        producer_id=client.id,
        epoch=client.epoch,
        previous_producer_id=txn.producer_id,
        next_producer_id=NO_PRODUCER,
        next_epoch=NO_EPOCH,
        partitions=frozenset(),
        updated_ms=now_ms,
    )


def abort_fenced(txn: Transaction, now_ms: WallMs) -> Transaction:
    """Abort on the coordinator's own account, under an epoch that no client has.

    The state is written as transaction version 0: with version 2 the raised epoch would look like
    the one that every end assigns, and a repeated EndTxn of the fenced producer would get it.
    """
    epoch = _highest_epoch(txn)
    fencing = transition(txn, TxnState.PREPARE_EPOCH_FENCE, epoch=min(epoch + 1, LAST_EPOCH))
    rotated = txn.next_producer_id not in (NO_PRODUCER, txn.producer_id)
    return transition(
        fencing,
        TxnState.PREPARE_ABORT,
        last_epoch=NO_EPOCH,
        next_producer_id=txn.next_producer_id if rotated else NO_PRODUCER,
        next_epoch=txn.next_epoch if rotated else NO_EPOCH,
        updated_ms=now_ms,
        version=0,
    )


def is_timed_out(txn: Transaction, now_ms: WallMs) -> bool:
    if txn.state is not TxnState.ONGOING or not txn.has_timeout:
        return False
    return txn.started_ms + txn.timeout_ms < now_ms


def is_expired(txn: Transaction, now_ms: WallMs, expiration_ms: int) -> bool:
    """Whether the id has been unused for `transactional.id.expiration.ms`."""
    return txn.state in AT_REST and txn.updated_ms + expiration_ms <= now_ms


def _prepare(
    txn: Transaction, request: EndRequest, fresh: ProducerId | None, now_ms: WallMs
) -> Transaction:
    """The prepared state, with the markers' epoch: higher than any epoch in the transaction."""
    state = TxnState.PREPARE_COMMIT if request.commit else TxnState.PREPARE_ABORT
    client = txn.client
    rotated = client.id != txn.producer_id
    marker_epoch = txn.epoch + 1 if rotated else client.epoch
    if request.version >= EPOCH_PER_TRANSACTION:
        following = _successor(client, fresh)
        marker_epoch = txn.epoch + 1 if rotated else client.epoch + 1
    else:
        following = client
    differs = following.id != txn.producer_id
    return transition(
        txn,
        state,
        epoch=min(marker_epoch, LAST_EPOCH),
        last_epoch=client.epoch if following != client else txn.last_epoch,
        next_producer_id=following.id if differs else NO_PRODUCER,
        next_epoch=following.epoch if differs else NO_EPOCH,
        updated_ms=now_ms,
        version=request.version,
    )


def _successor(client: Producer, fresh: ProducerId | None) -> Producer:
    if not client.is_exhausted:
        return client.next_epoch()
    if fresh is None:
        raise NeedsProducerId
    return Producer(fresh, 0)


def _is_repeat(txn: Transaction, producer: Producer) -> bool:
    """Whether `producer` has sent the EndTxn that assigned the client its current epoch."""
    if txn.version < EPOCH_PER_TRANSACTION or txn.state not in ENDED:
        return False
    client = txn.client
    if client.epoch > 0:
        return producer == (client.id, client.epoch - 1)
    before = txn.producer_id if txn.state in DECIDED else txn.previous_producer_id
    return producer.id == before and producer.is_exhausted


def _repeat_end(txn: Transaction, commit: bool) -> EndStep:
    if commit != (txn.state in COMMITS):
        raise KafkaError(ErrorCode.invalid_txn_state)
    if txn.state in DECIDED:
        raise KafkaError(ErrorCode.concurrent_transactions)
    return EndStep(txn.client)


def _highest_epoch(txn: Transaction) -> int:
    """The highest epoch assigned under the transaction's own producer id."""
    return max(txn.epoch, txn.next_epoch) if txn.next_producer_id == txn.producer_id else txn.epoch


ENDED: Final = DECIDED | (AT_REST - {TxnState.EMPTY})
