"""The transactional ids of one partition of `__transaction_state`.

Owns the map of ids; `replay` is its only writer. Turns the pure decisions of this folder into
records, and hands every decided transaction to its `CompletionListener`. Never writes a marker.

Timed-out transactions and unused ids are looked for at intervals, as many at a time as fit one
batch.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Protocol, TypeVar

from ottla.coordinator.outcome import NOTHING, Effect, Outcome, SetTimer
from ottla.coordinator.txn import add_partitions
from ottla.coordinator.txn.end_transaction import (
    EndRequest,
    abort_fenced,
    complete,
    end,
    is_expired,
    is_timed_out,
)
from ottla.coordinator.txn.init_producer_id import (
    InitializedProducer,
    InitProducerIdRequest,
    initialise,
)
from ottla.coordinator.txn.records import (
    TransactionalIdExpired,
    TransactionChange,
    decode,
    record_of,
)
from ottla.coordinator.txn.state import AT_REST, DECIDED, Producer, Transaction
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode
from ottla.model.ids import Offset, ProducerId, TopicPartition

R = TypeVar("R")
AT_ONCE: Final = 500
"""Transactions changed by one timer call."""
SOON_MS: Final = 10
ID_BYTES: Final = 1_024
"""Memory counted for a transactional id, besides its characters."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """How often timeouts and unused ids are checked, and how long an unused id is kept."""

    timeout_check_ms: int = 10_000
    expiration_check_ms: int = 3_600_000
    expiration_ms: int = 604_800_000


class CompletionListener(Protocol):
    """Notified of decided and completed transactions."""

    def finish(self, id: str, *, committed: bool = False) -> None:
        """Its end is decided, and committed if `committed`: write its markers, complete it."""

    def on_completed(self, id: str) -> None:
        """The next transaction of the id may start."""


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

    # Decisions

    def initialise(
        self, id: str, request: InitProducerIdRequest, fresh: ProducerId | None, now: WallMs
    ) -> Outcome[InitializedProducer | None]:
        """The reply is None while an open transaction is aborted first."""
        reply, after = initialise(id, self.get(id), request, fresh, now)
        return self._outcome(reply, [after])

    def add(
        self,
        id: str,
        producer: Producer,
        partitions: frozenset[TopicPartition],
        version: int,
        now: WallMs,
    ) -> Outcome[bool]:
        """Whether anything had to be added."""
        after = add_partitions.add(self.get(id), producer, partitions, version=version, now_ms=now)
        return Outcome(False) if after is None else self._outcome(True, [after])

    def end(
        self, id: str, request: EndRequest, fresh: ProducerId | None, now: WallMs
    ) -> Outcome[Producer]:
        client, after = end(self.get(id), request, fresh, now)
        return self._outcome(client, after)

    def complete(self, decided: Transaction, now: WallMs) -> Outcome[None]:
        """The markers of this decision are written; NOTHING if it is not the latest."""
        if self._all.get(decided.id) is not decided:
            return NOTHING
        done = complete(decided, now)
        # If the record is lost, the transaction is found decided and is completed again.
        return Outcome(None, (record_of(done),), lazily=True)

    # The Shard interface

    def decode(self, key: bytes, value: bytes | None) -> TransactionChange | None:
        return decode(key, value)

    def replay(self, change: TransactionChange, offset: Offset, producer_id: ProducerId) -> None:
        if isinstance(change, TransactionalIdExpired):
            if self._all.pop(change.id, None) is not None:
                self.memory_bytes -= ID_BYTES + len(change.id)
        else:
            if change.id not in self._all:
                self.memory_bytes += ID_BYTES + len(change.id)
            self._all[change.id] = change
            if change.state in AT_REST:
                self._watch.on_completed(change.id)

    def replay_many(
        self, section: bytes, position: int, most: int, base_offset: Offset
    ) -> tuple[int, int]:
        """No bulk replay: the topic has few records for each id."""
        return position, 0

    def end_transaction(self, producer_id: ProducerId, *, committed: bool) -> None:
        """This topic is never part of a transaction."""

    def on_loaded(self, now: WallMs) -> Outcome[None]:
        for txn in self._all.values():
            if txn.state in DECIDED:
                self._watch.finish(txn.id)
        intervals = self._intervals
        return Outcome(
            None,
            timers=(
                SetTimer(TIMEOUT_CHECK, intervals.timeout_check_ms),
                SetTimer(EXPIRATION_CHECK, intervals.expiration_check_ms),
            ),
        )

    def on_unloaded(self) -> Sequence[Effect]:
        """No request waits in the shard; completions in progress check ownership themselves."""
        return ()

    def on_timer(self, key: Hashable, now: WallMs) -> Outcome[None]:
        return self._abort_timed_out(now) if key == TIMEOUT_CHECK else self._expire_ids(now)

    def _abort_timed_out(self, now: WallMs) -> Outcome[None]:
        timed_out = (txn for txn in self._all.values() if is_timed_out(txn, now))
        aborted = [abort_fenced(txn, now) for txn in islice(timed_out, AT_ONCE)]
        again = SetTimer(TIMEOUT_CHECK, _next(aborted, self._intervals.timeout_check_ms))
        return self._outcome(None, aborted, again)

    def _expire_ids(self, now: WallMs) -> Outcome[None]:
        expiration_ms = self._intervals.expiration_ms
        old = (t.id for t in self._all.values() if is_expired(t, now, expiration_ms))
        expired = [TransactionalIdExpired(id) for id in islice(old, AT_ONCE)]
        again = SetTimer(EXPIRATION_CHECK, _next(expired, self._intervals.expiration_check_ms))
        return self._outcome(None, expired, again)

    def _outcome(
        self, reply: R, after: Sequence[TransactionChange], *timers: SetTimer
    ) -> Outcome[R]:
        """Persist these states; once their commit settles, decided transactions are completed."""
        latest = after if len(after) == 1 else {change.id: change for change in after}.values()
        decided = [change.id for change in latest if _is_decided(change)]

        def then(code: ErrorCode, _: int) -> Outcome[None]:
            for id in decided:
                self._watch.finish(id, committed=code is ErrorCode.none)
            return NOTHING

        records = tuple([record_of(change) for change in after])
        return Outcome(reply, records, timers, then if decided else None)


TIMEOUT_CHECK: Final = "timeout-check"
EXPIRATION_CHECK: Final = "expiration-check"


def _next(changed: Collection[TransactionChange], interval_ms: int) -> int:
    return SOON_MS if len(changed) == AT_ONCE else interval_ms


def _is_decided(change: TransactionChange) -> bool:
    return isinstance(change, Transaction) and change.state in DECIDED
