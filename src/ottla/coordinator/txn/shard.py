"""The transactional ids of one partition of `__transaction_state`.

Owns the map of ids; `replay` is its only writer. Turns the pure decisions of this folder into
records, and hands every transaction whose end is decided to whoever finishes it. Never writes a
marker.

Transactions that took too long, and ids nobody uses any more, are looked for at intervals, as
many at a time as fit one batch.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Protocol, TypeVar

from ottla.coordinator.outcome import NOTHING, Outcome, SetTimer
from ottla.coordinator.txn import add_partitions
from ottla.coordinator.txn.end_transaction import (
    EndRequest,
    complete,
    end,
    fenced,
    is_forgettable,
    is_overdue,
)
from ottla.coordinator.txn.init_producer_id import (
    InitializedProducer,
    InitProducerIdRequest,
    initialise,
)
from ottla.coordinator.txn.records import TransactionalIdExpired, What, decode, record_of
from ottla.coordinator.txn.state import AT_REST, DECIDED, Producer, Transaction
from ottla.model.errors import ErrorCode
from ottla.model.ids import Offset, ProducerId, TopicPartition

R = TypeVar("R")
AT_ONCE: Final = 500
"""Transactions changed by one ring of a timer."""
SOON_MS: Final = 10
ID_BYTES: Final = 1_024
"""What a transactional id takes of the memory, but for its own letters."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """How often things are looked for, and how long an unused id is kept."""

    overdue_ms: int = 10_000
    forgettable_ms: int = 3_600_000
    expiration_ms: int = 604_800_000


class CompletionListener(Protocol):
    """Who must hear of a transaction's end."""

    def finish(self, id: str, *, committed: bool = False) -> None:
        """Its end is decided, and perhaps committed already: write its markers, complete it."""

    def completed(self, id: str) -> None:
        """The next one may begin."""


class TxnShard:
    def __init__(self, intervals: Intervals, watch: CompletionListener) -> None:
        self._intervals = intervals
        self._watch = watch
        self._all: dict[str, Transaction] = {}
        self.memory_bytes = 0

    def get(self, id: str) -> Transaction | None:
        return self._all.get(id)

    def __iter__(self) -> Iterator[Transaction]:
        return iter(list(self._all.values()))

    def __len__(self) -> int:
        return len(self._all)

    # Deciding

    def initialise(
        self, id: str, asked: InitProducerIdRequest, fresh: ProducerId | None, now: int
    ) -> Outcome[InitializedProducer | None]:
        """No reply: an open transaction is being aborted first."""
        reply, after = initialise(id, self.get(id), asked, fresh, now)
        return self._outcome(reply, [after])

    def add(
        self,
        id: str,
        who: Producer,
        partitions: frozenset[TopicPartition],
        version: int,
        now: int,
    ) -> Outcome[bool]:
        """Whether anything had to be added."""
        after = add_partitions.add(self.get(id), who, partitions, version=version, now_ms=now)
        return Outcome(False) if after is None else self._outcome(True, [after])

    def end(
        self, id: str, asked: EndRequest, fresh: ProducerId | None, now: int
    ) -> Outcome[Producer]:
        client, after = end(self.get(id), asked, fresh, now)
        return self._outcome(client, after)

    def complete(self, decided: Transaction, now: int) -> Outcome[None]:
        """The markers of this decision are written; nothing to do if it is not the latest."""
        if self._all.get(decided.id) is not decided:
            return NOTHING
        done = complete(decided, now)
        # Lost with the power, it is found decided, and completed once more.
        return Outcome(None, (record_of(done),), lazily=True)

    # The runtime's part

    def decode(self, key: bytes, value: bytes | None) -> What | None:
        return decode(key, value)

    def replay(self, what: What, offset: Offset, producer_id: ProducerId) -> None:
        if isinstance(what, TransactionalIdExpired):
            if self._all.pop(what.id, None) is not None:
                self.memory_bytes -= ID_BYTES + len(what.id)
        else:
            if what.id not in self._all:
                self.memory_bytes += ID_BYTES + len(what.id)
            self._all[what.id] = what
            if what.state in AT_REST:
                self._watch.completed(what.id)

    def replay_many(
        self, section: bytes, at: int, most: int, base_offset: Offset
    ) -> tuple[int, int]:
        """A transaction is not worth hurrying: there is one record for each id."""
        return at, 0

    def end_transaction(self, producer_id: ProducerId, *, committed: bool) -> None:
        """This topic is never part of a transaction."""

    def loaded(self, now: int) -> Outcome[None]:
        for txn in self._all.values():
            if txn.state in DECIDED:
                self._watch.finish(txn.id)
        intervals = self._intervals
        return Outcome(
            None,
            timers=(
                SetTimer(OVERDUE, intervals.overdue_ms),
                SetTimer(FORGETTABLE, intervals.forgettable_ms),
            ),
        )

    def unloaded(self) -> None:
        """Nobody waits here; what is being finished finds out by itself."""

    def on_timer(self, key: Hashable, now: int) -> Outcome[None]:
        return self._overdue(now) if key == OVERDUE else self._forgettable(now)

    def _overdue(self, now: int) -> Outcome[None]:
        overdue = (txn for txn in self._all.values() if is_overdue(txn, now))
        found = [fenced(txn, now) for txn in islice(overdue, AT_ONCE)]
        again = SetTimer(OVERDUE, _next(found, self._intervals.overdue_ms))
        return self._outcome(None, found, again)

    def _forgettable(self, now: int) -> Outcome[None]:
        expiration_ms = self._intervals.expiration_ms
        old = (t.id for t in self._all.values() if is_forgettable(t, now, expiration_ms))
        found = [TransactionalIdExpired(id) for id in islice(old, AT_ONCE)]
        again = SetTimer(FORGETTABLE, _next(found, self._intervals.forgettable_ms))
        return self._outcome(None, found, again)

    def _outcome(self, reply: R, after: Sequence[What], *timers: SetTimer) -> Outcome[R]:
        """Persist these; what they decide is carried through, however late it is committed."""
        latest = after if len(after) == 1 else {what.id: what for what in after}.values()
        decided = [what.id for what in latest if _is_decided(what)]

        def then(code: ErrorCode, _: int) -> Outcome[None]:
            for id in decided:
                self._watch.finish(id, committed=code is ErrorCode.none)
            return NOTHING

        records = tuple([record_of(what) for what in after])
        return Outcome(reply, records, timers, then if decided else None)


OVERDUE: Final = "overdue"
FORGETTABLE: Final = "forgettable"


def _next(found: Collection[What], interval_ms: int) -> int:
    return SOON_MS if len(found) == AT_ONCE else interval_ms


def _is_decided(what: What) -> bool:
    return isinstance(what, Transaction) and what.state in DECIDED
