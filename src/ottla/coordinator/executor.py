"""What a decision asks for, done: records appended and replayed, timers set.

Owns the order of a write, and the little that is written later than it is decided. Between deciding
and replaying nothing else runs. Never knows what a record means.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Sequence
from enum import Enum
from typing import Any, Final, Generic, TypeVar

from ottla.coordinator.deferred_reply import Commit, all_of
from ottla.coordinator.internal_topic_log import InternalTopicLog, TransactionalWriter
from ottla.coordinator.outcome import CoordinatorRecord, Outcome, SetTimer, Then, TimerOp
from ottla.coordinator.shard import Shard
from ottla.delay.timers import Call, Timers
from ottla.model.clock import Clock
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_PRODUCER, LeaderEpoch, Offset, TopicPartition
from ottla.replica.partition import HostedPartition

log = logging.getLogger(__name__)

S = TypeVar("S", bound=Shard)

OWED_MS: Final = 100
"""How long what is written lazily waits for company."""
OWED_MAX: Final = 32
OWED: Final = object()
"""The key of the timer for that."""


class ShardPhase(Enum):
    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"


MOVES: Final = {
    ShardPhase.LOADING: frozenset({ShardPhase.ACTIVE, ShardPhase.FAILED}),
    ShardPhase.ACTIVE: frozenset[ShardPhase](),
    ShardPhase.FAILED: frozenset[ShardPhase](),
}
"""Losing the leadership removes the whole entry, from any phase."""


class OwnedShard(Generic[S]):
    """One partition of the internal topic that this broker leads."""

    __slots__ = ("owed", "partition", "phase", "shard", "timers")

    def __init__(self, partition: HostedPartition, shard: S) -> None:
        self.partition = partition
        self.shard = shard
        self.phase = ShardPhase.LOADING
        self.timers: dict[Hashable, Call] = {}
        self.owed: list[CoordinatorRecord] = []
        """Replayed, and written with the next records, or soon."""

    @property
    def index(self) -> int:
        return self.partition.key.partition

    @property
    def epoch(self) -> LeaderEpoch:
        """Fences this coordinator's successors from it, and it from its predecessors."""
        return self.partition.leader_epoch

    def move(self, to: ShardPhase) -> None:
        assert to in MOVES[self.phase], f"{self.partition.key}: {self.phase} -> {to}"
        self.phase = to


class Executor(Generic[S]):
    def __init__(
        self,
        journal: InternalTopicLog,
        timers: Timers,
        clock: Clock,
        is_current: Callable[[OwnedShard[S]], bool],
    ) -> None:
        self._journal = journal
        self._timers = timers
        self._clock = clock
        self._is_current = is_current

    def start(self, owned: OwnedShard[S], outcome: Outcome[Any]) -> None:
        """Carry out a decision that nobody waits for."""
        commit = self.carry_out(owned, outcome, None)
        if commit is not None:
            commit.then(lambda code: _log_failure(owned.partition.key, code))

    def carry_out(
        self, owned: OwnedShard[S], outcome: Outcome[Any], producer: TransactionalWriter | None
    ) -> Commit | None:
        """Append, replay, set timers; None when there is nothing to wait for."""
        if outcome.timers:
            self._set_timers(owned, outcome.timers)
        records, then = outcome.records, outcome.then
        if outcome.lazily:
            self._owe(owned, records)
            return None
        if not records:
            if then is not None:
                self.start(owned, then(ErrorCode.none, self._clock.wall_ms()))
            return None
        parts = self._journal.parts(owned.partition, records)
        if len(parts) == 1:
            commit = self._write(owned, records, producer)
        else:
            commit = all_of([self._write(owned, part, producer) for part in parts])
        if then is not None:
            commit.then(lambda code: self._decide_again(owned, then, code))
        return commit

    def _write(
        self,
        owned: OwnedShard[S],
        records: Sequence[CoordinatorRecord],
        producer: TransactionalWriter | None,
    ) -> Commit:
        """Append one batch, what is owed in front, and unless it was refused replay it."""
        partition, owed, shard = owned.partition, owned.owed, owned.shard
        together = records
        if owed:
            together = [*owed, *records]
            if producer is not None or len(self._journal.parts(partition, together)) > 1:
                self.pay(owned)  # it is no part of a transaction, or too much for one batch
                assert producer is None or not owed, f"{partition.key}: owed before a transaction"
                # What could still not be written goes first all the same: it is older.
                together = [*owed, *records]
        batch = self._journal.batch(partition, together, producer)
        paid = len(owed)

        def appended(first: Offset) -> None:
            del owed[:paid]
            producer_id = NO_PRODUCER if producer is None else producer.id
            for offset, record in enumerate(records, first + paid):
                shard.replay(record.what, offset, producer_id)

        return self._journal.append(partition, batch, appended)

    def _owe(self, owned: OwnedShard[S], records: Sequence[CoordinatorRecord]) -> None:
        """Replay now, write later; what comes between stands behind it in the log."""
        if OWED not in owned.timers:
            self._set_timers(owned, [SetTimer(OWED, OWED_MS)])
        owned.owed += records
        for record in records:
            owned.shard.replay(record.what, owned.partition.log.end_offset, NO_PRODUCER)
        if len(owned.owed) >= OWED_MAX:
            self.pay(owned)

    def pay(self, owned: OwnedShard[S]) -> None:
        """Write what is owed, if anything still is; what cannot be written now is tried soon."""
        while owned.owed:
            if not self._pay_some(owned):
                self._set_timers(owned, [SetTimer(OWED, OWED_MS)])
                return

    def _pay_some(self, owned: OwnedShard[S]) -> bool:
        """Write as much as one batch can hold of what is owed, unless that is refused."""
        partition, owed = owned.partition, owned.owed
        some = self._journal.parts(partition, owed)[0]
        count, paid = len(some), False

        def appended(_: Offset) -> None:
            nonlocal paid
            paid = True
            del owed[:count]

        batch = self._journal.batch(partition, some, None)
        commit = self._journal.append(partition, batch, appended)
        commit.then(lambda code: _log_failure(partition.key, code))
        return paid

    def _decide_again(self, owned: OwnedShard[S], then: Then, code: ErrorCode) -> None:
        outcome = then(code, self._clock.wall_ms())
        if self._is_current(owned):
            self.start(owned, outcome)

    # Timers

    def _set_timers(self, owned: OwnedShard[S], ops: Iterable[TimerOp]) -> None:
        timers = self._timers
        for op in ops:
            running = owned.timers.pop(op.key, None)
            if running is not None:
                timers.cancel(running)
            if isinstance(op, SetTimer):
                call = Call(lambda key=op.key: self._ring(owned, key))  # type: ignore[misc]
                owned.timers[op.key] = call
                timers.add(call, max(1, op.delay_ms))

    def _ring(self, owned: OwnedShard[S], key: Hashable) -> None:
        owned.timers.pop(key, None)
        if key is OWED:
            self.pay(owned)
        elif self._is_current(owned):
            self.start(owned, owned.shard.on_timer(key, self._clock.wall_ms()))


def _log_failure(key: TopicPartition, code: ErrorCode) -> None:
    if code is not ErrorCode.none:
        log.warning("%s: a change could not be committed: %s", key, code.name)
