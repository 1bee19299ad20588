"""The state of one transactional id, and the legal state changes.

Pure values. A transaction is replaced, never changed in place; `transition` is the only way from
one state to another.

A transaction has two producers. `producer` has written the transaction's records. Usually the
client is the same; but when the epochs of a producer id are exhausted, or a prepared transaction is
kept across a restart of its client (KIP-939), the client already has a newer id or epoch:
`next_producer_id` and `next_epoch` until the transaction has ended, and then `producer` itself.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final, NamedTuple

from ottla.model.clock import WallMs
from ottla.model.ids import NO_PRODUCER, ProducerId, TopicPartition

NO_EPOCH: Final = -1
LAST_EPOCH: Final = 2**15 - 1
NEVER_MS: Final = 2**31 - 1
"""The timeout of a producer that takes part in two-phase commit."""
NOT_STARTED: Final = WallMs(-1)


class TxnState(IntEnum):
    """The numbers are those of Kafka's transaction log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7
    """An intermediate state inside one decision, never persisted."""

    __hash__ = int.__hash__  # an enum's own hashes its name, in Python; hot

    @property
    def label(self) -> str:
        """The name that Kafka's tools show."""
        return "".join(word.capitalize() for word in self.name.split("_"))


MOVES: Final[dict[TxnState, frozenset[TxnState]]] = {
    TxnState.EMPTY: frozenset(
        {TxnState.EMPTY, TxnState.ONGOING, TxnState.PREPARE_ABORT, TxnState.DEAD}
    ),
    TxnState.ONGOING: frozenset(
        {
            TxnState.ONGOING,
            TxnState.PREPARE_COMMIT,
            TxnState.PREPARE_ABORT,
            TxnState.PREPARE_EPOCH_FENCE,
        }
    ),
    TxnState.PREPARE_COMMIT: frozenset({TxnState.COMPLETE_COMMIT}),
    TxnState.PREPARE_ABORT: frozenset({TxnState.COMPLETE_ABORT}),
    TxnState.COMPLETE_COMMIT: frozenset(
        {TxnState.EMPTY, TxnState.ONGOING, TxnState.PREPARE_ABORT, TxnState.DEAD}
    ),
    TxnState.COMPLETE_ABORT: frozenset(
        {TxnState.EMPTY, TxnState.ONGOING, TxnState.PREPARE_ABORT, TxnState.DEAD}
    ),
    TxnState.DEAD: frozenset(),
    TxnState.PREPARE_EPOCH_FENCE: frozenset({TxnState.PREPARE_ABORT}),
}
"""PREPARE_ABORT from EMPTY or a completed state: a transactions-v2 client aborts before a partition
was added, because it cannot know whether one was."""

DECIDED: Final = frozenset({TxnState.PREPARE_COMMIT, TxnState.PREPARE_ABORT})
AT_REST: Final = frozenset({TxnState.EMPTY, TxnState.COMPLETE_COMMIT, TxnState.COMPLETE_ABORT})
COMMITS: Final = frozenset({TxnState.PREPARE_COMMIT, TxnState.COMPLETE_COMMIT})


class Producer(NamedTuple):
    """A producer id and epoch."""

    id: ProducerId
    epoch: int

    @property
    def is_exhausted(self) -> bool:
        """One epoch is always reserved, so that the producer with the last one can be fenced."""
        return self.epoch >= LAST_EPOCH - 1

    def next_epoch(self) -> Producer:
        return Producer(self.id, self.epoch + 1)


NOBODY: Final = Producer(NO_PRODUCER, NO_EPOCH)


class Transaction(NamedTuple):
    """One transactional id; a tuple for speed, because a transaction makes three of them."""

    id: str
    producer_id: ProducerId
    epoch: int
    state: TxnState = TxnState.EMPTY
    timeout_ms: int = 0
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: WallMs = NOT_STARTED
    updated_ms: WallMs = WallMs(0)
    version: int = 0
    """The client's transaction version: from 2 on, each end raises the epoch."""
    last_epoch: int = NO_EPOCH
    """The epoch before the latest InitProducerId; recognises a repeated request. Kafka's records do
    not have it, so a request repeated across a coordinator change is fenced."""
    previous_producer_id: ProducerId = NO_PRODUCER
    next_producer_id: ProducerId = NO_PRODUCER
    next_epoch: int = NO_EPOCH

    @property
    def producer(self) -> Producer:
        return Producer(self.producer_id, self.epoch)

    @property
    def client(self) -> Producer:
        """The client's current producer id and epoch."""
        if self.next_producer_id != NO_PRODUCER:
            return Producer(self.next_producer_id, self.next_epoch)
        return Producer(self.producer_id, self.epoch)

    @property
    def is_kept(self) -> bool:
        """A restarted client keeps this prepared transaction: it can only be ended."""
        return self.state is TxnState.ONGOING and self.next_producer_id != NO_PRODUCER

    @property
    def has_timeout(self) -> bool:
        return self.timeout_ms != NEVER_MS


class NeedsProducerId(Exception):
    """A decision needs a new producer id: get one and decide again."""


def transition(txn: Transaction, to: TxnState, **changes: Any) -> Transaction:
    assert to in MOVES[txn.state], f"{txn.id}: {txn.state.name} -> {to.name}"
    return txn._replace(state=to, **changes)
