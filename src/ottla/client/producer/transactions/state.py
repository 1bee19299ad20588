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


class Phase(Enum):
    NEW = "new"
    READY = "ready"
    OPEN = "open"
    PREPARED = "prepared"
    ENDING = "ending"
    BROKEN = "broken"
    DEAD = "dead"


MOVES: Final[Mapping[Phase, frozenset[Phase]]] = {
    Phase.NEW: frozenset({Phase.READY, Phase.PREPARED, Phase.DEAD}),
    Phase.READY: frozenset({Phase.OPEN, Phase.DEAD}),
    Phase.OPEN: frozenset({Phase.PREPARED, Phase.ENDING, Phase.BROKEN, Phase.DEAD}),
    Phase.PREPARED: frozenset({Phase.ENDING, Phase.DEAD}),
    Phase.ENDING: frozenset({Phase.READY, Phase.BROKEN, Phase.DEAD}),
    Phase.BROKEN: frozenset({Phase.ENDING, Phase.DEAD}),
    Phase.DEAD: frozenset(),
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
        self.phase = Phase.NEW
        self.error: BaseException | None = None
        self.adds_itself = False
        """Brokers add partitions by themselves (KIP-890): nothing is announced to them."""
        self.is_started = False
        """A broker knows of it: it has to be ended there."""
        self.commits: bool | None = None  # while ENDING: which way
        self.added: set[TopicPartition] = set()
        self.to_add: set[TopicPartition] = set()
        self.kept: PreparedTransaction | None = None
        """One that an earlier life prepared, and that still has to be ended."""

    def move(self, to: Phase) -> None:
        assert to in MOVES[self.phase], f"{self.id}: {self.phase.name} -> {to.name}"
        self.phase = to

    def begin(self) -> None:
        self.check()
        if self.phase is not Phase.READY:
            raise UserError(_NOT_NOW[self.phase].format("begin"))
        self.move(Phase.OPEN)

    def check_open(self, what: str) -> None:
        """Refuse `what` outside a transaction, and in one that has failed."""
        self.check()
        if self.phase is Phase.BROKEN:
            raise self.aborting()
        if self.phase is not Phase.OPEN:
            raise UserError(_NOT_NOW[self.phase].format(what))

    @property
    def broken_by(self) -> BaseException | None:
        """What ended the transaction: nothing of it may be sent any more."""
        return self.error if self.phase in (Phase.BROKEN, Phase.DEAD) else None

    def touch(self, tp: TopicPartition) -> None:
        """A record goes to this partition."""
        self.check_open("send")
        if not self.adds_itself and tp not in self.added:
            self.to_add.add(tp)

    def end(self, commit: bool) -> None:
        """Leave the transaction, one way or the other; again, if it was not answered in time."""
        self.check()
        said = "commit" if commit else "abort"
        if self.phase is Phase.ENDING and self.commits == commit:
            return
        if self.phase is Phase.BROKEN and commit:
            raise self.aborting()
        if self.phase not in (Phase.OPEN, Phase.BROKEN, Phase.PREPARED):
            raise UserError(_NOT_NOW[self.phase].format(said))
        self.move(Phase.ENDING)
        self.commits = commit

    def ended(self) -> None:
        self.move(Phase.READY)
        self.error = None
        self.commits = None
        self.is_started = False
        self.kept = None
        self.added.clear()
        self.to_add.clear()

    def may_send(self, tp: TopicPartition) -> bool:
        """Whether batches of this partition may go: the coordinator knows of it."""
        return self.adds_itself or tp in self.added

    def fail(self, error: BaseException) -> None:
        """Something of the transaction failed: it can only be aborted, or not even that."""
        if self.phase is Phase.DEAD:
            return
        if isinstance(error, KafkaError) and error.code in FATAL:
            self.move(Phase.DEAD)
            self.error = error
        elif self.phase is Phase.OPEN or (self.phase is Phase.ENDING and self.commits):
            self.move(Phase.BROKEN)
            self.error = error

    def check(self) -> None:
        """Raise what ended this producer, if something has."""
        if self.phase is Phase.DEAD:
            assert self.error is not None
            if isinstance(self.error, KafkaError) and not isinstance(self.error, Fenced):
                raise type(self.error)(self.error.code, str(self.error)) from self.error
            raise self.error

    def aborting(self) -> AbortNeeded:
        """What says that only `abort` is left."""
        code = (
            self.error.code
            if isinstance(self.error, KafkaError)
            else ErrorCode.transaction_abortable
        )
        refused = AbortNeeded(code, f"the transaction has to be aborted: {self.error}")
        refused.__cause__ = self.error
        return refused


_NOT_NOW: Final[Mapping[Phase, str]] = {
    Phase.NEW: "{0}: init_transactions() comes first",
    Phase.READY: "{0}: there is no transaction; begin() comes first",
    Phase.OPEN: "{0}: a transaction is open already",
    Phase.PREPARED: "{0}: the transaction is prepared; it can only be completed",
    Phase.ENDING: "{0}: a commit or an abort is under way; call that again to wait for it",
    Phase.BROKEN: "{0}: the transaction has failed; abort() comes first",
    Phase.DEAD: "{0}: this producer can only be closed",
}
