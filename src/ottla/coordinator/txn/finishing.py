"""From a decided transaction to a completed one, whatever it takes.

A decision stands in the log before its first marker is written; markers are tried until each
partition has one, and the completed state is written after the last. A coordinator that takes over
finds the decision and goes on.

Owns which transactional ids are on that way. Nearly always every marker is written at the first
try, which takes no task; where it is not, a task tries until it is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final, Protocol

from ottla.coordinator.carrying import Owned
from ottla.coordinator.pending import Pending
from ottla.coordinator.runtime import Runtime
from ottla.coordinator.txn.markers import Codes, Marking
from ottla.coordinator.txn.shard import TxnShard
from ottla.coordinator.txn.state import COMMITS, DECIDED, Transaction
from ottla.delay.timers import Call, Timers
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import LeaderEpoch, TopicPartition

log = logging.getLogger(__name__)

AGAIN_MS: Final = 50
"""Between two tries to reach a partition that could not be written."""

GIVEN_UP: Final = frozenset({ErrorCode.not_coordinator, ErrorCode.coordinator_load_in_progress})
"""Somebody else finishes it, or this broker does once it has loaded."""
SETTLED: Final = frozenset(
    {
        ErrorCode.none,
        ErrorCode.unknown_topic_or_partition,  # deleted, and the transaction's records with it
        ErrorCode.invalid_producer_epoch,  # it has an end already: somebody newer writes there
    }
)


class MarkerWriter(Protocol):
    def write(self, marking: Marking, partitions: Iterable[TopicPartition]) -> Pending[Codes]: ...


class Finishing:
    """The `Watch` of every shard of this broker."""

    def __init__(
        self,
        markers: MarkerWriter,
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
        timers: Timers,
    ) -> None:
        self.markers = markers
        self._spawn = spawn
        self._timers = timers
        self.runtime: Runtime[TxnShard] | None = None
        """Set once the runtime, whose shards need this, is built."""
        self._under_way: dict[str, asyncio.Task[None] | None] = {}
        """None: at the first try, which has no task."""
        self._awaited: dict[str, list[Call]] = {}
        self._closed = False

    def finish(self, id: str, *, committed: bool = False) -> None:
        if id in self._under_way or self._closed:
            return
        reign = self._reign(id) if committed else None
        txn = None if reign is None else _decided(reign[0].shard, id)
        if reign is None or txn is None:
            self._try_until_done(id)
            return
        self._under_way[id] = None
        self._write_markers(txn, reign[1]).then(lambda codes: self._tried(txn, reign, codes))

    def completed(self, id: str) -> None:
        for wait in self._awaited.pop(id, ()):
            if self._timers.cancel(wait):
                wait.expired()

    def when_completed(self, id: str, within_ms: int, done: Callable[[], object]) -> None:
        """Call `done` once its decided transaction is completed, but no later than this."""
        if self._closed:
            done()
            return
        wait = Call(done)
        self._awaited.setdefault(id, []).append(wait)
        self._timers.add(wait, within_ms)

    def close(self) -> None:
        """Stop trying; whoever loads this topic next goes on."""
        self._closed = True
        for attempt in list(self._under_way.values()):
            if attempt is not None:
                attempt.cancel()
        for id in list(self._awaited):
            self.completed(id)

    def _decided(self, id: str) -> Transaction | None:
        """Its transaction, if it waits here for its completion."""
        try:
            return _decided(self._owned(id).shard, id)
        except KafkaError:
            return None

    def _reign(self, id: str) -> tuple[Owned[TxnShard], LeaderEpoch] | None:
        """As what this broker coordinates it, if it does.

        Whoever loads a partition, or leads it on, leaves alone what is under way: whoever is at it
        and is refused as the coordinator of before goes on as the one of now.
        """
        try:
            owned = self._owned(id)
        except KafkaError:
            return None
        return owned, owned.epoch

    def _owned(self, id: str) -> Owned[TxnShard]:
        assert self.runtime is not None
        return self.runtime.owned(id)

    def _write_markers(self, txn: Transaction, epoch: LeaderEpoch) -> Pending[Codes]:
        marking = Marking(txn.producer, txn.state in COMMITS, epoch, txn.version)
        return self.markers.write(marking, sorted(txn.partitions))

    def _complete(self, txn: Transaction) -> None:
        assert self.runtime is not None
        self.runtime.submit(txn.id, lambda shard, now: shard.complete(txn, now))

    # The first try

    def _tried(self, txn: Transaction, reign: object, codes: Codes) -> None:
        del self._under_way[txn.id]
        if self._closed:
            return
        try:
            _check(codes)
            self._complete(txn)
        except KafkaError as refusal:
            log.info("%s cannot be completed yet: %s", txn.id, refusal)
            given_up = refusal.code in GIVEN_UP and reign == self._reign(txn.id)
        else:
            given_up = False
        if given_up or self._decided(txn.id) is None:
            self.completed(txn.id)
        else:
            self._try_until_done(txn.id)

    # All others

    def _try_until_done(self, id: str) -> None:
        self._under_way[id] = self._spawn(self._carry_through(id))

    async def _carry_through(self, id: str) -> None:
        try:
            while await self._one_step(id):
                pass
        except Exception:  # of this one transaction; the broker's tasks stand and fall together
            log.exception("%s cannot be completed before this topic is loaded again", id)
        finally:
            del self._under_way[id]
            self.completed(id)

    async def _one_step(self, id: str) -> bool:
        """One try; whether there is anything left to do here."""
        assert self.runtime is not None
        reign = self._reign(id)
        try:
            await self.runtime.read(id, len)  # the decision is committed before it is acted on
            txn = self._decided(id)
            if txn is None:
                return False
            _check(await self._write_markers(txn, self._owned(id).epoch))
            self._complete(txn)
        except KafkaError as refusal:
            if refusal.code in GIVEN_UP:
                return reign != self._reign(id)
            log.info("%s cannot be completed yet: %s", id, refusal)
            await asyncio.sleep(AGAIN_MS / 1_000)
        return True


def _decided(shard: TxnShard, id: str) -> Transaction | None:
    txn = shard.get(id)
    return txn if txn is not None and txn.state in DECIDED else None


def _check(codes: Codes) -> None:
    """KafkaError where a partition has no marker yet."""
    failed = {key: code for key, code in codes.items() if code not in SETTLED}
    if ErrorCode.transaction_coordinator_fenced in failed.values():
        raise KafkaError(ErrorCode.not_coordinator)
    for key, code in failed.items():
        raise KafkaError(code, f"{len(failed)} markers are missing, among them {key}'s")
