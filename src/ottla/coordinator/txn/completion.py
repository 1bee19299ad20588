"""Completes decided transactions: writes their markers, with retries, then the completed state.

A decision is in the log before its first marker is written; markers are retried until each
partition has one, and the completed state is written after the last. A coordinator that takes over
finds the decision and continues. Retries end only when the transaction is completed, or when this
broker no longer coordinates it; an error of a marker's partition never ends them: it never concerns
the coordinator's own partition of `__transaction_state`, which its `Runtime` checks.

Owns the transactional ids whose completion is in progress. Nearly always every marker is written
at the first attempt, which needs no task; otherwise a task retries.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping
from typing import Final, NamedTuple, Protocol

from ottla.coordinator.deferred_reply import DeferredReply
from ottla.coordinator.executor import OwnedShard
from ottla.coordinator.runtime import Runtime
from ottla.coordinator.txn.markers import Codes, TransactionEnd
from ottla.coordinator.txn.shard import TxnShard
from ottla.coordinator.txn.state import COMMITS, DECIDED, Transaction
from ottla.delay.timers import Call, Timers
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import LeaderEpoch, TopicPartition

FIRST_RETRY_MS: Final = 50
LAST_RETRY_MS: Final = 1_000
"""The longest pause between two attempts: bounds how late a partition that is available again gets
its marker, and the work that unavailable partitions cause."""

MARKER_TAKEN: Final = frozenset(
    {
        ErrorCode.none,
        # The partition has a newer producer epoch. That is possible only after this transaction
        # ended in that partition: its id gets no newer epoch while a decision is being executed.
        ErrorCode.invalid_producer_epoch,
    }
)


def missing_markers(
    results: Mapping[TopicPartition, ErrorCode], deleted: Collection[TopicPartition] = ()
) -> dict[TopicPartition, ErrorCode]:
    """The partitions that still need their marker, each with the error.

    Every error is retried. A partition is complete only when it has a marker or its topic is
    deleted; UNKNOWN_TOPIC_OR_PARTITION alone does not mean that, because a broker that has just
    started returns it too.
    """
    return {
        partition: code
        for partition, code in results.items()
        if code not in MARKER_TAKEN and partition not in deleted
    }


def retry_delay_ms(failures: int) -> int:
    """How long to wait after so many failed attempts in a row."""
    return min(LAST_RETRY_MS, FIRST_RETRY_MS << min(failures - 1, 16))


def is_logged(failures: int) -> bool:
    """Whether this failure is worth a log line: the 1st, 2nd, 4th, 8th and so on."""
    return failures & (failures - 1) == 0


log = logging.getLogger(__name__)

MANY_FAILURES: Final = 8
"""Several seconds of retries: from here on failures are logged as warnings."""
NOT_COORDINATED_HERE: Final = frozenset(
    {ErrorCode.not_coordinator, ErrorCode.coordinator_load_in_progress}
)
"""Errors of this coordinator's own partition of `__transaction_state`, raised by `Runtime`: the new
coordinator completes the transaction, or this broker does once it has loaded the partition. A
marker's partition may return the same codes; there they only mean "retry"."""


class MarkerWriter(Protocol):
    def write(
        self, marking: TransactionEnd, partitions: Iterable[TopicPartition]
    ) -> DeferredReply[Codes]: ...


class Fenced(Exception):
    """A partition has a marker of a newer coordinator epoch than this broker's."""


class Unfinished(NamedTuple):
    """A decided transaction, and the partitions that have no marker of it yet."""

    decision: Transaction
    remaining: Codes
    """With the last error of each; `none` if it was not attempted."""


class TransactionCompletion:
    """The `CompletionListener` of every shard of this broker.

    `find_deleted` returns those of some partitions that no longer exist in the cluster.
    """

    def __init__(
        self,
        markers: MarkerWriter,
        spawn: Callable[[Coroutine[object, None, None]], asyncio.Task[None] | None],
        timers: Timers,
        find_deleted: Callable[[Iterable[TopicPartition]], Awaitable[Collection[TopicPartition]]],
    ) -> None:
        self.markers = markers
        self._spawn = spawn
        self._timers = timers
        self._find_deleted = find_deleted
        self.runtime: Runtime[TxnShard] | None = None
        """Set once the runtime, whose shards need this, is built."""
        self._under_way: dict[str, asyncio.Task[None] | None] = {}
        """None during the first attempt, which has no task."""
        self._awaited: dict[str, list[Call]] = {}
        self._closed = False

    def finish(self, id: str, *, committed: bool = False) -> None:
        if id in self._under_way or self._closed:
            return
        leadership = self._leadership(id) if committed else None
        txn = None if leadership is None else _decided_transaction(leadership[0].shard, id)
        if leadership is None or txn is None:
            self._start_retrying(id, None)
            return
        self._under_way[id] = None
        try:
            written = self._write_markers(txn, txn.partitions, leadership[1])
        except Exception:  # a bug; the decision is in the log and must be executed
            log.exception("transactional id %r: writing transaction markers failed; retrying", id)
            self._start_retrying(id, _first_attempt(txn), failures=1)
            return
        written.then(lambda codes: self._first_results(txn, leadership, codes))

    def on_completed(self, id: str) -> None:
        for wait in self._awaited.pop(id, ()):
            if self._timers.cancel(wait):
                try:
                    wait.on_timeout()
                except Exception:  # of one reply: the transaction and other waiters continue
                    log.exception("transactional id %r: replying to a client failed", id)

    def when_completed(self, id: str, within_ms: int, on_done: Callable[[], object]) -> None:
        """Call `on_done` once its decided transaction is completed, at most `within_ms` later."""
        if self._closed:
            on_done()
            return
        wait = Call(on_done)
        self._awaited.setdefault(id, []).append(wait)
        self._timers.add(wait, within_ms)

    def close(self) -> None:
        """Stop retrying; the next coordinator of these ids continues."""
        self._closed = True
        for attempt in list(self._under_way.values()):
            if attempt is not None:
                attempt.cancel()
        for id in list(self._awaited):
            self.on_completed(id)

    def _decided_transaction(self, id: str) -> Transaction | None:
        """Its transaction, if it is decided, not completed, and coordinated by this broker."""
        try:
            return _decided_transaction(self._owned_shard(id).shard, id)
        except KafkaError:
            return None

    def _leadership(self, id: str) -> tuple[OwnedShard[TxnShard], LeaderEpoch] | None:
        """The shard and leader epoch with which this broker coordinates the id, if it does.

        Loading a partition, or leading it under a newer epoch, does not start a completion that is
        in progress: the one in progress continues under the new epoch after it was fenced.
        """
        try:
            owned = self._owned_shard(id)
        except KafkaError:
            return None
        return owned, owned.epoch

    def _owned_shard(self, id: str) -> OwnedShard[TxnShard]:
        assert self.runtime is not None
        return self.runtime.owned_shard(id)

    def _write_markers(
        self, txn: Transaction, partitions: Iterable[TopicPartition], epoch: LeaderEpoch
    ) -> DeferredReply[Codes]:
        marking = TransactionEnd(txn.producer, txn.state in COMMITS, epoch, txn.version)
        return self.markers.write(marking, sorted(partitions))

    def _complete(self, txn: Transaction) -> None:
        assert self.runtime is not None
        self.runtime.submit(txn.id, lambda shard, now: shard.complete(txn, now))

    def _first_results(self, txn: Transaction, leadership: object, codes: Codes) -> None:
        """Complete the transaction, or start a task that retries until it is completed."""
        id = txn.id
        if self._closed:
            del self._under_way[id]
            return
        todo = Unfinished(txn, missing_markers(codes))
        if todo.remaining:
            _log_missing(todo, 1)
        else:
            try:
                self._complete(txn)
            except Exception as error:
                log.info("transactional id %r: cannot complete the transaction yet: %s", id, error)
            if self._decided_transaction(id) is None:
                del self._under_way[id]
                self.on_completed(id)
                return
        # Under a newer epoch than that of the first attempt the next one need not wait.
        self._start_retrying(id, todo, failures=1 if leadership == self._leadership(id) else 0)

    # Retrying

    def _start_retrying(self, id: str, todo: Unfinished | None, failures: int = 0) -> None:
        task = self._spawn(self._retry(id, todo, failures))
        if task is None:  # the broker stops: the next coordinator of this id continues
            self._under_way.pop(id, None)
            self.on_completed(id)
        else:
            self._under_way[id] = task

    async def _retry(self, id: str, todo: Unfinished | None, failures: int) -> None:
        """Retry until it is completed, or this broker no longer coordinates it."""
        fenced: object = ()
        try:
            while True:
                if failures:
                    await asyncio.sleep(retry_delay_ms(failures) / 1_000)
                failures += 1
                leadership = self._leadership(id)
                if leadership == fenced:
                    continue  # until this broker learns its own newer epoch, or of its successor
                try:
                    todo = await self._attempt(id, todo)
                    if todo is None:
                        return
                    _log_missing(todo, failures)
                except Fenced as error:
                    fenced = leadership
                    _log_failure(id, error, 1)
                except KafkaError as refusal:  # of our own partition: `_attempt` raises no other
                    if refusal.code in NOT_COORDINATED_HERE and leadership == self._leadership(id):
                        return
                    _log_failure(id, refusal, failures)
                except Exception as error:  # a bug; the decision is in the log, must be executed
                    _log_failure(id, error, failures)
                if leadership != self._leadership(id):
                    failures = 0  # coordinated under a newer epoch: retry at once
        finally:
            del self._under_way[id]
            self.on_completed(id)

    async def _attempt(self, id: str, todo: Unfinished | None) -> Unfinished | None:
        """Write the missing markers; the rest of the work, None if there is none.

        KafkaError, always of our own partition, where this broker cannot decide or must stop;
        Fenced where a newer coordinator has written a marker.
        """
        assert self.runtime is not None
        await self.runtime.read(id, len)  # the decision is committed before it is acted on
        txn = self._decided_transaction(id)
        if txn is None:
            return None
        if todo is None or todo.decision is not txn:
            todo = _first_attempt(txn)
        codes = await self._write_markers(txn, todo.remaining, self._owned_shard(id).epoch)
        missing = missing_markers(codes)
        if missing:
            missing = missing_markers(missing, await self._find_deleted(missing))
        if ErrorCode.transaction_coordinator_fenced in missing.values():
            raise Fenced("a coordinator with a newer epoch has written markers for this producer")
        if missing:
            return Unfinished(txn, missing)
        self._complete(txn)
        following = self._decided_transaction(id)
        return None if following is None else _first_attempt(following)


def _decided_transaction(shard: TxnShard, id: str) -> Transaction | None:
    txn = shard.get(id)
    return txn if txn is not None and txn.state in DECIDED else None


def _first_attempt(txn: Transaction) -> Unfinished:
    return Unfinished(txn, dict.fromkeys(txn.partitions, ErrorCode.none))


def _log_failure(id: str, error: Exception, failures: int) -> None:
    if is_logged(failures):
        is_expected = isinstance(error, KafkaError | Fenced)
        log.warning(
            "transactional id %r: cannot complete the transaction yet: %s; retrying",
            id,
            error,
            exc_info=None if is_expected else error,
        )


def _log_missing(todo: Unfinished, failures: int) -> None:
    if not is_logged(failures) or not todo.remaining:
        return
    partition, code = next(iter(todo.remaining.items()))
    log.log(
        logging.WARNING if failures >= MANY_FAILURES else logging.INFO,
        "transactional id %r: %d partitions without a transaction marker after %d attempts, "
        "among them %s: %s; retrying",
        todo.decision.id,
        len(todo.remaining),
        failures,
        partition,
        code.name,
    )
