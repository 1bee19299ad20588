"""How transactions end: as the client decides, or because they took too long.

Pure. The decision is final once the prepared state is in the log; what follows, the markers and
the completed state, is the coordinator's to carry through.

With transactions v2 (KIP-890) every end raises the epoch, so that a packet delayed beyond its
transaction meets a newer epoch everywhere. A repeated EndTxn then carries the epoch before.
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
    moved,
)
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_PRODUCER, ProducerId

EPOCH_PER_TRANSACTION: Final = 2
"""The transaction version from which on each end raises the epoch."""


class EndRequest(NamedTuple):
    who: Producer
    commit: bool
    version: int = 0


class EndStep(NamedTuple):
    """Who the client is afterwards, and the states to write, in order."""

    client: Producer
    after: tuple[Transaction, ...] = ()


def end(
    txn: Transaction | None, asked: EndRequest, fresh: ProducerId | None, now_ms: int
) -> EndStep:
    if txn is None:
        raise KafkaError(ErrorCode.invalid_producer_id_mapping)
    if _is_repeat(txn, asked.who):
        return _repeated(txn, asked.commit)
    client = txn.client
    if asked.who.id != client.id:
        raise KafkaError(ErrorCode.invalid_producer_id_mapping)
    if asked.who.epoch != client.epoch:
        raise KafkaError(ErrorCode.producer_fenced)
    if txn.state is TxnState.ONGOING:
        prepared = _prepared(txn, asked, fresh, now_ms)
        return EndStep(prepared.client, (prepared,))
    if asked.version < EPOCH_PER_TRANSACTION and txn.state is not TxnState.EMPTY:
        return _repeated(txn, asked.commit)
    if txn.state in DECIDED:  # of the transaction before
        raise KafkaError(ErrorCode.concurrent_transactions)
    if asked.commit or asked.version < EPOCH_PER_TRANSACTION:
        raise KafkaError(ErrorCode.invalid_txn_state)
    # Such a client cannot know whether its records, had they come, would have opened one.
    prepared = _prepared(txn, asked, fresh, now_ms)._replace(started_ms=now_ms)
    completed = complete(prepared, now_ms)
    return EndStep(completed.client, (prepared, completed))


def complete(txn: Transaction, now_ms: int) -> Transaction:
    """Every marker is written: the client may begin the next."""
    commits = txn.state is TxnState.PREPARE_COMMIT
    client = txn.client
    return moved(
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


def fenced(txn: Transaction, now_ms: int) -> Transaction:
    """Abort on nobody's behalf, under an epoch that no client has been given.

    It counts as a transaction of the older kind: were the raised epoch taken for the one that
    every end gives, a repeated EndTxn of the producer being fenced would be told of it.
    """
    epoch = _highest_epoch(txn)
    fencing = moved(txn, TxnState.PREPARE_EPOCH_FENCE, epoch=min(epoch + 1, LAST_EPOCH))
    rotated = txn.next_producer_id not in (NO_PRODUCER, txn.producer_id)
    return moved(
        fencing,
        TxnState.PREPARE_ABORT,
        last_epoch=NO_EPOCH,
        next_producer_id=txn.next_producer_id if rotated else NO_PRODUCER,
        next_epoch=txn.next_epoch if rotated else NO_EPOCH,
        updated_ms=now_ms,
        version=0,
    )


def is_overdue(txn: Transaction, now_ms: int) -> bool:
    if txn.state is not TxnState.ONGOING or not txn.has_timeout:
        return False
    return txn.started_ms + txn.timeout_ms < now_ms


def is_forgettable(txn: Transaction, now_ms: int, expiration_ms: int) -> bool:
    """Nothing has happened under this id for so long that it may go."""
    return txn.state in AT_REST and txn.updated_ms + expiration_ms <= now_ms


def _prepared(
    txn: Transaction, asked: EndRequest, fresh: ProducerId | None, now_ms: int
) -> Transaction:
    """The decision, under the epoch its markers carry: higher than any that wrote to it."""
    state = TxnState.PREPARE_COMMIT if asked.commit else TxnState.PREPARE_ABORT
    client = txn.client
    rotated = client.id != txn.producer_id
    marker_epoch = txn.epoch + 1 if rotated else client.epoch
    if asked.version >= EPOCH_PER_TRANSACTION:
        following = _successor(client, fresh)
        marker_epoch = txn.epoch + 1 if rotated else client.epoch + 1
    else:
        following = client
    differs = following.id != txn.producer_id
    return moved(
        txn,
        state,
        epoch=min(marker_epoch, LAST_EPOCH),
        last_epoch=client.epoch if following != client else txn.last_epoch,
        next_producer_id=following.id if differs else NO_PRODUCER,
        next_epoch=following.epoch if differs else NO_EPOCH,
        updated_ms=now_ms,
        version=asked.version,
    )


def _successor(client: Producer, fresh: ProducerId | None) -> Producer:
    if not client.is_exhausted:
        return client.bumped()
    if fresh is None:
        raise NeedsProducerId
    return Producer(fresh, 0)


def _is_repeat(txn: Transaction, who: Producer) -> bool:
    """Whether the end that gave the client its present identity was asked for by `who`."""
    if txn.version < EPOCH_PER_TRANSACTION or txn.state not in ENDED:
        return False
    client = txn.client
    if client.epoch > 0:
        return who == (client.id, client.epoch - 1)
    before = txn.producer_id if txn.state in DECIDED else txn.previous_producer_id
    return who.id == before and who.is_exhausted


def _repeated(txn: Transaction, commit: bool) -> EndStep:
    if commit != (txn.state in COMMITS):
        raise KafkaError(ErrorCode.invalid_txn_state)
    if txn.state in DECIDED:
        raise KafkaError(ErrorCode.concurrent_transactions)
    return EndStep(txn.client)


def _highest_epoch(txn: Transaction) -> int:
    """Of all that anybody has been given under the transaction's own producer id."""
    return max(txn.epoch, txn.next_epoch) if txn.next_producer_id == txn.producer_id else txn.epoch


ENDED: Final = DECIDED | (AT_REST - {TxnState.EMPTY})
