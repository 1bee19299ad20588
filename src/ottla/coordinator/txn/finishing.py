"""From a decided transaction to a completed one, whatever it takes.

Owns one task for each transactional id on that way. A decision stands in the log before its first
marker is written; markers are tried until each partition has one, and the completed state is
written after the last. A coordinator that takes over finds the decision and goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Final, Protocol

from ottla.coordinator.runtime import Runtime
from ottla.coordinator.txn.markers import Marking
from ottla.coordinator.txn.shard import TxnShard
from ottla.coordinator.txn.state import COMMITS, DECIDED, Transaction
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicPartition

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
    async def write(
        self, marking: Marking, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]: ...


class Finishing:
    """The `Watch` of every shard of this broker."""

    def __init__(
        self,
        markers: MarkerWriter,
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        self.markers = markers
        self._spawn = spawn
        self.runtime: Runtime[TxnShard] | None = None
        """Set once the runtime, whose shards need this, is built."""
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._awaited: dict[str, list[asyncio.Future[None]]] = {}
        self._closed = False

    def finish(self, id: str) -> None:
        if id not in self._under_way and not self._closed:
            self._under_way[id] = self._spawn(self._carry_through(id))

    def completed(self, id: str) -> None:
        for waiter in self._awaited.pop(id, ()):
            if not waiter.done():
                waiter.set_result(None)

    async def completion(self, id: str, within_ms: int) -> None:
        """Wait until its decided transaction is completed, but no longer than this."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._awaited.setdefault(id, []).append(waiter)
        await asyncio.wait([waiter], timeout=within_ms / 1_000)

    def close(self) -> None:
        """Stop trying; whoever loads this topic next goes on."""
        self._closed = True
        for task in self._under_way.values():
            task.cancel()

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
        try:
            txn = await self.runtime.read(id, lambda shard: shard.get(id))
            if txn is None or txn.state not in DECIDED:
                return False
            await self._mark(txn, self.runtime.owned(id).epoch)
            await self.runtime.write(id, lambda shard, now: shard.complete(txn, now))
        except KafkaError as refusal:
            if refusal.code in GIVEN_UP:
                return False
            log.info("%s cannot be completed yet: %s", id, refusal)
            await asyncio.sleep(AGAIN_MS / 1_000)
        return True

    async def _mark(self, txn: Transaction, coordinator_epoch: int) -> None:
        commit = txn.state in COMMITS
        marking = Marking(txn.producer, commit, coordinator_epoch, txn.version)
        codes = await self.markers.write(marking, sorted(txn.partitions))
        failed = {key: code for key, code in codes.items() if code not in SETTLED}
        if ErrorCode.transaction_coordinator_fenced in failed.values():
            raise KafkaError(ErrorCode.not_coordinator)
        for key, code in failed.items():
            raise KafkaError(code, f"{len(failed)} markers are missing, among them {key}'s")
