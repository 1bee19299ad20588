"""What the coordinator knows of one transactional id, and which changes are legal.

Pure values. A transaction is replaced, never changed in place; `moved` is the one way from one
state to another.

Two identities. `producer` is whose records the transaction holds. Usually the client has the same
one; but when the epochs of an id are used up, or a prepared transaction is kept across a restart
of its client (KIP-939), the client already is somebody newer: `next_producer_id` and `next_epoch`
until the transaction has ended, and then `producer` itself.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final, NamedTuple

from ottla.model.ids import NO_PRODUCER, ProducerId, TopicPartition

NO_EPOCH: Final = -1
LAST_EPOCH: Final = 2**15 - 1
NEVER_MS: Final = 2**31 - 1
"""The timeout of a producer that takes part in two-phase commit."""
NOT_STARTED: Final = -1


class TxnState(IntEnum):
    """The numbers are those of the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7
    """Passed through inside one decision, never persisted."""

    __hash__ = int.__hash__  # an enum's own hashes its name, in Python; hot

    @property
    def label(self) -> str:
        """As tools show it."""
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
"""PREPARE_ABORT straight from EMPTY or a completed state is a transactions-v2 client that aborts
before anything was added: it cannot know whether something was."""

DECIDED: Final = frozenset({TxnState.PREPARE_COMMIT, TxnState.PREPARE_ABORT})
AT_REST: Final = frozenset({TxnState.EMPTY, TxnState.COMPLETE_COMMIT, TxnState.COMPLETE_ABORT})
COMMITS: Final = frozenset({TxnState.PREPARE_COMMIT, TxnState.COMPLETE_COMMIT})


class Producer(NamedTuple):
    """Who writes: an id, and which of its lives."""

    id: ProducerId
    epoch: int

    @property
    def is_exhausted(self) -> bool:
        """One epoch is always kept back, so that whoever holds the last can still be fenced."""
        return self.epoch >= LAST_EPOCH - 1

    def bumped(self) -> Producer:
        return Producer(self.id, self.epoch + 1)


NOBODY: Final = Producer(NO_PRODUCER, NO_EPOCH)


class Transaction(NamedTuple):
    """One transactional id, between two changes; a tuple, for each has three of them."""

    id: str
    producer_id: ProducerId
    epoch: int
    state: TxnState = TxnState.EMPTY
    timeout_ms: int = 0
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = NOT_STARTED
    updated_ms: int = 0
    version: int = 0
    """The transaction version its client spoke: from 2 on, each end raises the epoch."""
    last_epoch: int = NO_EPOCH
    """The epoch before the client asked for a new one: a repeated question is known by it. Kafka's
    records have no place for it, so a question repeated across a failover is fenced."""
    previous_producer_id: ProducerId = NO_PRODUCER
    next_producer_id: ProducerId = NO_PRODUCER
    next_epoch: int = NO_EPOCH

    @property
    def producer(self) -> Producer:
        return Producer(self.producer_id, self.epoch)

    @property
    def client(self) -> Producer:
        """Whom the client takes itself for."""
        if self.next_producer_id != NO_PRODUCER:
            return Producer(self.next_producer_id, self.next_epoch)
        return Producer(self.producer_id, self.epoch)

    @property
    def is_kept(self) -> bool:
        """A restarted client has asked to keep it: nothing may be added, only its end decided."""
        return self.state is TxnState.ONGOING and self.next_producer_id != NO_PRODUCER

    @property
    def has_timeout(self) -> bool:
        return self.timeout_ms != NEVER_MS


class NeedsProducerId(Exception):
    """A decision wants a producer id that nobody has had: decide again with one."""


def moved(txn: Transaction, to: TxnState, **changes: Any) -> Transaction:
    assert to in MOVES[txn.state], f"{txn.id}: {txn.state.name} -> {to.name}"
    return txn._replace(state=to, **changes)
