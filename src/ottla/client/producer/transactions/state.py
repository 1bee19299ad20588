"""The phase of a transactional producer, and the allowed transitions.

Owns: the phase, the partitions of the transaction, and its error. Pure: `coordinator_requests`
sends the requests.

    NEW -> READY <-> OPEN -> ENDING -> READY
                     OPEN -> PREPARED -> ENDING
                     OPEN, ENDING -> BROKEN -> ENDING   (only to abort)
    any of them -> DEAD                                 (only to close)
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

from ottla.client.errors import AbortNeeded, ErrorCode, Fenced, KafkaError, UserError
from ottla.model.ids import TopicPartition


class TransactionPhase(Enum):
    NEW = "new"
    READY = "ready"
    OPEN = "open"
    PREPARED = "prepared"
    ENDING = "ending"
    BROKEN = "broken"
    DEAD = "dead"


MOVES: Final[Mapping[TransactionPhase, frozenset[TransactionPhase]]] = {
    TransactionPhase.NEW: frozenset(
        {TransactionPhase.READY, TransactionPhase.PREPARED, TransactionPhase.DEAD}
    ),
    TransactionPhase.READY: frozenset({TransactionPhase.OPEN, TransactionPhase.DEAD}),
    TransactionPhase.OPEN: frozenset(
        {
            TransactionPhase.PREPARED,
            TransactionPhase.ENDING,
            TransactionPhase.BROKEN,
            TransactionPhase.DEAD,
        }
    ),
    TransactionPhase.PREPARED: frozenset({TransactionPhase.ENDING, TransactionPhase.DEAD}),
    TransactionPhase.ENDING: frozenset(
        {TransactionPhase.READY, TransactionPhase.BROKEN, TransactionPhase.DEAD}
    ),
    TransactionPhase.BROKEN: frozenset({TransactionPhase.ENDING, TransactionPhase.DEAD}),
    TransactionPhase.DEAD: frozenset(),
}

FATAL: Final = frozenset(
    {
        ErrorCode.producer_fenced,
        ErrorCode.transactional_id_authorization_failed,
        ErrorCode.cluster_authorization_failed,
        ErrorCode.unsupported_version,
        ErrorCode.unsupported_for_message_format,
        ErrorCode.invalid_txn_state,
        ErrorCode.transaction_coordinator_fenced,
    }
)


class PreparedTransaction(NamedTuple):
    """A prepared transaction: enough to end it from any process."""

    transactional_id: str
    producer_id: int
    epoch: int


class Transaction:
    """The transactions of one producer, one after the other."""

    def __init__(self, transactional_id: str) -> None:
        self.id: Final = transactional_id
        self.phase = TransactionPhase.NEW
        self.error: BaseException | None = None
        self.adds_partitions_implicitly = False
        """Brokers add partitions implicitly (KIP-890)."""
        self.is_started = False
        """A broker knows of it: it must be ended there."""
        self.commits: bool | None = None  # while ENDING: which way
        self.added: set[TopicPartition] = set()
        self.to_add: set[TopicPartition] = set()
        self.kept_prepared: PreparedTransaction | None = None
        """A transaction that an earlier producer prepared, and that still must be ended."""

    def move(self, to: TransactionPhase) -> None:
        assert to in MOVES[self.phase], f"{self.id}: {self.phase.name} -> {to.name}"
        self.phase = to

    def begin(self) -> None:
        self.check()
        if self.phase is not TransactionPhase.READY:
            raise UserError(_NOT_NOW[self.phase].format("begin"))
        self.move(TransactionPhase.OPEN)

    def check_open(self, operation: str) -> None:
        """Raise if there is no open transaction, or if it has failed."""
        self.check()
        if self.phase is TransactionPhase.BROKEN:
            raise self.abort_needed()
        if self.phase is not TransactionPhase.OPEN:
            raise UserError(_NOT_NOW[self.phase].format(operation))

    @property
    def broken_by(self) -> BaseException | None:
        """The error that ended the transaction: nothing more of it may be sent."""
        return (
            self.error if self.phase in (TransactionPhase.BROKEN, TransactionPhase.DEAD) else None
        )

    def touch(self, tp: TopicPartition) -> None:
        """A record goes to this partition."""
        self.check_open("send")
        if not self.adds_partitions_implicitly and tp not in self.added:
            self.to_add.add(tp)

    def end(self, commit: bool) -> None:
        """Start to commit or abort; again, if an earlier attempt timed out."""
        self.check()
        operation = "commit" if commit else "abort"
        if self.phase is TransactionPhase.ENDING and self.commits == commit:
            return
        if self.phase is TransactionPhase.BROKEN and commit:
            raise self.abort_needed()
        if self.phase not in (
            TransactionPhase.OPEN,
            TransactionPhase.BROKEN,
            TransactionPhase.PREPARED,
        ):
            raise UserError(_NOT_NOW[self.phase].format(operation))
        self.move(TransactionPhase.ENDING)
        self.commits = commit

    def on_ended(self) -> None:
        self.move(TransactionPhase.READY)
        self.error = None
        self.commits = None
        self.is_started = False
        self.kept_prepared = None
        self.added.clear()
        self.to_add.clear()

    def may_send(self, tp: TopicPartition) -> bool:
        """Whether batches of this partition may be sent: the coordinator knows of it."""
        return self.adds_partitions_implicitly or tp in self.added

    def fail(self, error: BaseException) -> None:
        """The transaction failed: it can only be aborted, or the producer only be closed."""
        if self.phase is TransactionPhase.DEAD:
            return
        if isinstance(error, KafkaError) and error.code in FATAL:
            self.move(TransactionPhase.DEAD)
            self.error = error
        elif self.phase is TransactionPhase.OPEN or (
            self.phase is TransactionPhase.ENDING and self.commits
        ):
            self.move(TransactionPhase.BROKEN)
            self.error = error

    def check(self) -> None:
        """Raise the error that ended this producer, if any."""
        if self.phase is TransactionPhase.DEAD:
            assert self.error is not None
            if isinstance(self.error, KafkaError) and not isinstance(self.error, Fenced):
                raise type(self.error)(self.error.code, str(self.error)) from self.error
            raise self.error

    def abort_needed(self) -> AbortNeeded:
        """The exception that requires an abort."""
        code = (
            self.error.code
            if isinstance(self.error, KafkaError)
            else ErrorCode.transaction_abortable
        )
        needed = AbortNeeded(code, f"the transaction must be aborted: {self.error}")
        needed.__cause__ = self.error
        return needed


_NOT_NOW: Final[Mapping[TransactionPhase, str]] = {
    TransactionPhase.NEW: "{0}: call init_transactions() first",
    TransactionPhase.READY: "{0}: no transaction is open; call begin() first",
    TransactionPhase.OPEN: "{0}: a transaction is open already",
    TransactionPhase.PREPARED: "{0}: the transaction is prepared; call complete_transaction()",
    TransactionPhase.ENDING: "{0}: commit or abort is in progress; call it again to wait for it",
    TransactionPhase.BROKEN: "{0}: the transaction has failed; call abort() first",
    TransactionPhase.DEAD: "{0}: this producer has failed and can only be closed",
}
