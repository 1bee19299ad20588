"""Executes a decision: performs its effects, appends and replays its records, sets its timers.

Owns the order of a write, and the records whose write is deferred. Between deciding and replaying
nothing else runs. Never interprets a record.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Sequence
from enum import Enum
from typing import Final, Generic, TypeVar

from ottla.coordinator.deferred_reply import Commit, all_of
from ottla.coordinator.internal_topic_log import InternalTopicLog, TransactionalWriter
from ottla.coordinator.outcome import (
    Answer,
    CoordinatorRecord,
    Effect,
    Outcome,
    SetTimer,
    Then,
    TimerOp,
)
from ottla.coordinator.shard import Shard
from ottla.delay.timers import Call, Timers
from ottla.model.clock import Clock
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_PRODUCER, LeaderEpoch, Offset, TopicPartition
from ottla.replica.partition import HostedPartition

log = logging.getLogger(__name__)

S = TypeVar("S", bound=Shard)

DEFER_MS: Final = 100
"""How long deferred records wait for other records to share a batch with."""
DEFERRED_MAX: Final = 32
FLUSH_DEFERRED: Final = object()
"""The timer key for writing them."""


class ShardPhase(Enum):
    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"


MOVES: Final = {
    ShardPhase.LOADING: frozenset({ShardPhase.ACTIVE, ShardPhase.FAILED}),
    ShardPhase.ACTIVE: frozenset({ShardPhase.FAILED}),
    ShardPhase.FAILED: frozenset({ShardPhase.LOADING}),
}
"""Losing the leadership removes the entry, from any phase."""


class OwnedShard(Generic[S]):
    """One partition of the internal topic that this broker leads."""

    __slots__ = ("deferred", "load_failures", "partition", "phase", "shard", "timers")

    def __init__(self, partition: HostedPartition, shard: S) -> None:
        self.partition = partition
        self.shard = shard
        self.phase = ShardPhase.LOADING
        self.load_failures = 0
        """Attempts to load it that failed."""
        self.timers: dict[Hashable, Call] = {}
        self.deferred: list[CoordinatorRecord] = []
        """Replayed already; written with the next records, or after `DEFER_MS`."""

    @property
    def index(self) -> int:
        return self.partition.key.partition

    @property
    def epoch(self) -> LeaderEpoch:
        """The leader epoch under which this broker coordinates the partition."""
        return self.partition.leader_epoch

    def move(self, to: ShardPhase) -> None:
        assert to in MOVES[self.phase], f"{self.partition.key}: {self.phase} -> {to}"
        self.phase = to


class Executor(Generic[S]):
    def __init__(
        self,
        topic_log: InternalTopicLog,
        timers: Timers,
        clock: Clock,
        is_current: Callable[[OwnedShard[S]], bool],
    ) -> None:
        self._topic_log = topic_log
        self._timers = timers
        self._clock = clock
        self._is_current = is_current

    def start(self, owned: OwnedShard[S], outcome: Outcome[object]) -> None:
        """Execute a decision whose commit nobody waits for; a failure is logged."""
        commit = self.execute(owned, outcome, None)
        if commit is not None:
            commit.then(lambda code: _log_failure(owned.partition.key, code))

    def execute(
        self, owned: OwnedShard[S], outcome: Outcome[object], producer: TransactionalWriter | None
    ) -> Commit | None:
        """Append, replay, set timers; None if there is no commit to wait for."""
        if outcome.effects:
            perform(outcome.effects)
        if outcome.timers:
            self._set_timers(owned, outcome.timers)
        records, then = outcome.records, outcome.then
        if outcome.lazily:
            self._defer(owned, records)
            return None
        if not records:
            if then is not None:
                self.start(owned, then(ErrorCode.none, self._clock.wall_ms()))
            return None
        parts = self._topic_log.parts(owned.partition, records)
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
        """Append one batch, deferred records first; replay it unless the append is refused."""
        partition, deferred, shard = owned.partition, owned.deferred, owned.shard
        batch_records = records
        if deferred:
            batch_records = [*deferred, *records]
            if producer is not None or len(self._topic_log.parts(partition, batch_records)) > 1:
                # Deferred records are no part of a transaction, or too large for one batch.
                self.flush_deferred(owned)
                assert producer is None or not deferred, f"{partition.key}: deferred records remain"
                # Those that could not be written still go first: they are older.
                batch_records = [*deferred, *records]
        batch = self._topic_log.batch(partition, batch_records, producer)
        deferred_count = len(deferred)

        def on_appended(first: Offset) -> None:
            del deferred[:deferred_count]
            producer_id = NO_PRODUCER if producer is None else producer.id
            for offset, record in enumerate(records, first + deferred_count):
                shard.replay(record.change, offset, producer_id)

        return self._topic_log.append(partition, batch, on_appended)

    def _defer(self, owned: OwnedShard[S], records: Sequence[CoordinatorRecord]) -> None:
        """Replay now, write later; records decided meanwhile follow them in the log."""
        if FLUSH_DEFERRED not in owned.timers:
            self._set_timers(owned, [SetTimer(FLUSH_DEFERRED, DEFER_MS)])
        owned.deferred += records
        for record in records:
            owned.shard.replay(record.change, owned.partition.log.end_offset, NO_PRODUCER)
        if len(owned.deferred) >= DEFERRED_MAX:
            self.flush_deferred(owned)

    def flush_deferred(self, owned: OwnedShard[S]) -> None:
        """Write the deferred records, if any; a refused append is retried after `DEFER_MS`."""
        while owned.deferred:
            if not self._flush_batch(owned):
                self._set_timers(owned, [SetTimer(FLUSH_DEFERRED, DEFER_MS)])
                return

    def _flush_batch(self, owned: OwnedShard[S]) -> bool:
        """Write one batch of deferred records; False if the append is refused."""
        partition, deferred = owned.partition, owned.deferred
        batch_records = self._topic_log.parts(partition, deferred)[0]
        count, appended_all = len(batch_records), False

        def on_appended(_: Offset) -> None:
            nonlocal appended_all
            appended_all = True
            del deferred[:count]

        batch = self._topic_log.batch(partition, batch_records, None)
        commit = self._topic_log.append(partition, batch, on_appended)
        commit.then(lambda code: _log_failure(partition.key, code))
        return appended_all

    def _decide_again(self, owned: OwnedShard[S], then: Then, code: ErrorCode) -> None:
        outcome = then(code, self._clock.wall_ms())
        if self._is_current(owned):
            self.start(owned, outcome)
        else:  # unloaded meanwhile: only requests that wait for this are answered
            perform(outcome.effects)

    # Timers

    def _set_timers(self, owned: OwnedShard[S], ops: Iterable[TimerOp]) -> None:
        timers = self._timers
        for op in ops:
            running = owned.timers.pop(op.key, None)
            if running is not None:
                timers.cancel(running)
            if isinstance(op, SetTimer):
                call = Call(lambda key=op.key: self._on_timer(owned, key))  # type: ignore[misc]
                owned.timers[op.key] = call
                timers.add(call, max(1, op.delay_ms))

    def _on_timer(self, owned: OwnedShard[S], key: Hashable) -> None:
        owned.timers.pop(key, None)
        if key is FLUSH_DEFERRED:
            self.flush_deferred(owned)
        elif self._is_current(owned):
            self.start(owned, owned.shard.on_timer(key, self._clock.wall_ms()))


def perform(effects: Iterable[Effect]) -> None:
    """Send the replies, and log, in the order of the decision."""
    for effect in effects:
        if isinstance(effect, Answer):
            try:
                effect.request(effect.reply)
            except Exception:  # of one request: the decision and the other replies go on
                log.exception("sending a coordinator's reply failed")
        else:
            logging.getLogger(effect.logger).info(effect.message, *effect.arguments)


def _log_failure(key: TopicPartition, code: ErrorCode) -> None:
    if code is not ErrorCode.none:
        log.warning("%s: coordinator records were not committed: %s", key, code.name)
