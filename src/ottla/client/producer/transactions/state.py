"""Where a transactional producer stands, and which moves are allowed.

Owns: the phase, the partitions of the transaction, and what went wrong in it. Pure: whoever talks
to the coordinator is `coordination`.

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
    """A transaction that is decided from outside: enough to end it, from any process."""

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
        """Brokers add partitions by themselves (KIP-890): nothing is announced to them."""
        self.is_started = False
        """A broker knows of it: it has to be ended there."""
        self.commits: bool | None = None  # while ENDING: which way
        self.added: set[TopicPartition] = set()
        self.to_add: set[TopicPartition] = set()
        self.kept_prepared: PreparedTransaction | None = None
        """One that an earlier life prepared, and that still has to be ended."""

    def move(self, to: TransactionPhase) -> None:
        assert to in MOVES[self.phase], f"{self.id}: {self.phase.name} -> {to.name}"
        self.phase = to

    def begin(self) -> None:
        self.check()
        if self.phase is not TransactionPhase.READY:
            raise UserError(_NOT_NOW[self.phase].format("begin"))
        self.move(TransactionPhase.OPEN)

    def check_open(self, what: str) -> None:
        """Refuse `what` outside a transaction, and in one that has failed."""
        self.check()
        if self.phase is TransactionPhase.BROKEN:
            raise self.abort_needed()
        if self.phase is not TransactionPhase.OPEN:
            raise UserError(_NOT_NOW[self.phase].format(what))

    @property
    def broken_by(self) -> BaseException | None:
        """What ended the transaction: nothing of it may be sent any more."""
        return (
            self.error if self.phase in (TransactionPhase.BROKEN, TransactionPhase.DEAD) else None
        )

    def touch(self, tp: TopicPartition) -> None:
        """A record goes to this partition."""
        self.check_open("send")
        if not self.adds_partitions_implicitly and tp not in self.added:
            self.to_add.add(tp)

    def end(self, commit: bool) -> None:
        """Leave the transaction, one way or the other; again, if it was not answered in time."""
        self.check()
        said = "commit" if commit else "abort"
        if self.phase is TransactionPhase.ENDING and self.commits == commit:
            return
        if self.phase is TransactionPhase.BROKEN and commit:
            raise self.abort_needed()
        if self.phase not in (
            TransactionPhase.OPEN,
            TransactionPhase.BROKEN,
            TransactionPhase.PREPARED,
        ):
            raise UserError(_NOT_NOW[self.phase].format(said))
        self.move(TransactionPhase.ENDING)
        self.commits = commit

    def ended(self) -> None:
        self.move(TransactionPhase.READY)
        self.error = None
        self.commits = None
        self.is_started = False
        self.kept_prepared = None
        self.added.clear()
        self.to_add.clear()

    def may_send(self, tp: TopicPartition) -> bool:
        """Whether batches of this partition may go: the coordinator knows of it."""
        return self.adds_partitions_implicitly or tp in self.added

    def fail(self, error: BaseException) -> None:
        """Something of the transaction failed: it can only be aborted, or not even that."""
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
        """Raise what ended this producer, if something has."""
        if self.phase is TransactionPhase.DEAD:
            assert self.error is not None
            if isinstance(self.error, KafkaError) and not isinstance(self.error, Fenced):
                raise type(self.error)(self.error.code, str(self.error)) from self.error
            raise self.error

    def abort_needed(self) -> AbortNeeded:
        """What says that only `abort` is left."""
        code = (
            self.error.code
            if isinstance(self.error, KafkaError)
            else ErrorCode.transaction_abortable
        )
        needed = AbortNeeded(code, f"the transaction has to be aborted: {self.error}")
        needed.__cause__ = self.error
        return needed


_NOT_NOW: Final[Mapping[TransactionPhase, str]] = {
    TransactionPhase.NEW: "{0}: init_transactions() comes first",
    TransactionPhase.READY: "{0}: there is no transaction; begin() comes first",
    TransactionPhase.OPEN: "{0}: a transaction is open already",
    TransactionPhase.PREPARED: "{0}: the transaction is prepared; it can only be completed",
    TransactionPhase.ENDING: "{0}: commit or abort is in progress; call it again to wait for it",
    TransactionPhase.BROKEN: "{0}: the transaction has failed; abort() comes first",
    TransactionPhase.DEAD: "{0}: this producer can only be closed",
}
