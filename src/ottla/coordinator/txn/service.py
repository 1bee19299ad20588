"""The asynchronous interface of the transaction coordinator for API handlers.

Owns the order of a request's steps and how long a reply may be delayed. Never decides.

An EndTxn is answered when the decision is committed and, if that takes no longer than
`ANSWER_WITHIN_MS`, its markers are written: the client's next transaction then starts without
CONCURRENT_TRANSACTIONS first.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from ottla.coordinator.deferred_reply import Commit, DeferredReply, wait_for_commit
from ottla.coordinator.outcome import Outcome
from ottla.coordinator.runtime import Runtime
from ottla.coordinator.txn.add_partitions import verify
from ottla.coordinator.txn.completion import TransactionCompletion
from ottla.coordinator.txn.end_transaction import EPOCH_PER_TRANSACTION, EndRequest
from ottla.coordinator.txn.init_producer_id import InitializedProducer, InitProducerIdRequest
from ottla.coordinator.txn.markers import MarkerAppender
from ottla.coordinator.txn.remote_coordinator import PartitionCheck, RemoteCoordinators
from ottla.coordinator.txn.shard import ID_BYTES, TxnShard
from ottla.coordinator.txn.state import (
    DECIDED,
    NOBODY,
    NeedsProducerId,
    Producer,
    Transaction,
    TxnState,
)
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import ProducerId, TopicPartition

log = logging.getLogger(__name__)

R = TypeVar("R")
ANSWER_WITHIN_MS: Final = 100
LONGEST_ID: Final = 2**15 - 1
"""The largest transactional id that a record key can hold, in bytes."""


@dataclass(frozen=True, slots=True)
class TxnLimits:
    max_timeout_ms: int
    two_phase: bool
    """Whether producers may keep a prepared transaction open without a timeout."""
    memory_bytes: int = -1
    """For all transactional ids; below 0: no limit."""


class Ended(NamedTuple):
    """The result of an EndTxn, and the client's producer id and epoch afterwards."""

    code: ErrorCode
    client: Producer = NOBODY


class Transactions:
    def __init__(
        self,
        runtime: Runtime[TxnShard],
        completion: TransactionCompletion,
        markers: MarkerAppender,
        next_producer_id: Callable[[], Awaitable[ProducerId]],
        limits: Callable[[], TxnLimits],
        *,
        remote: RemoteCoordinators,
    ) -> None:
        self._runtime = runtime
        self._completion = completion
        self.markers = markers
        self._next_producer_id = next_producer_id
        self._limits = limits
        self._remote = remote
        self._is_full = False  # the last new id was refused

    async def initialise(self, id: str, request: InitProducerIdRequest) -> InitializedProducer:
        _check(id)
        limits = self._limits()
        if request.two_phase and not limits.two_phase:
            raise KafkaError(
                ErrorCode.transactional_id_authorization_failed,
                "Two-phase commit is not enabled: set transaction.two.phase.commit.enable=true on "
                "the brokers.",
            )
        if not request.two_phase and not 0 < request.timeout_ms <= limits.max_timeout_ms:
            raise KafkaError(ErrorCode.invalid_transaction_timeout)

        def decide(
            shard: TxnShard, fresh: ProducerId | None, now: WallMs
        ) -> Outcome[InitializedProducer | None]:
            if shard.get(id) is None:
                self._check_room(id, limits.memory_bytes)
            return shard.initialise(id, request, fresh, now)

        reply: InitializedProducer | None = await self._with_producer_id(id, decide)
        if reply is None:
            raise KafkaError(ErrorCode.concurrent_transactions)
        return reply

    def _check_room(self, id: str, limit: int) -> None:
        """Refuse a new id over the memory limit, with an error that clients do not retry."""
        used_bytes = sum(owned.shard.memory_bytes for owned in self._runtime.active())
        was_full, self._is_full = self._is_full, 0 <= limit < used_bytes + ID_BYTES + len(id)
        if not self._is_full:
            return
        if not was_full:
            log.warning(
                "transactional id %r refused: existing ids use %d of at most %d bytes (derived "
                "from memory.limit.bytes); refusing new ids until some expire",
                id[:200],
                used_bytes,
                limit,
            )
        raise KafkaError(
            ErrorCode.policy_violation,
            "The broker has no memory for more transactional ids: reuse ids, or raise "
            "memory.limit.bytes.",
        )

    async def add(
        self, id: str, producer: Producer, partitions: frozenset[TopicPartition], version: int = 0
    ) -> None:
        await wait_for_commit(self.start_adding(id, producer, partitions, version))

    def start_adding(
        self, id: str, producer: Producer, partitions: frozenset[TopicPartition], version: int
    ) -> Commit | None:
        """Add partitions; None if they are added and committed already."""
        _check(id)
        _, commit = self._runtime.submit(
            id,
            lambda shard, now: shard.add(id, producer, partitions, version, now),
            settle=True,  # an earlier request that added them may not be committed yet
        )
        return commit

    def verify(self, id: str, producer: Producer, partition: TopicPartition) -> ErrorCode:
        """`none` if the partition is part of the open transaction; the error otherwise."""
        try:
            _check(id)
            txn = self._runtime.owned_shard(id).shard.get(id)
        except KafkaError as refusal:
            return refusal.code
        return verify(txn, producer, partition)

    def check_partition(
        self, check: PartitionCheck, on_done: Callable[[ErrorCode], object]
    ) -> None:
        """Call `on_done` once, with `none` if the partition is in the producer's open transaction.

        Asks the coordinator of the transactional id, on whichever broker it is.
        """
        code = self._check_here(check, on_done)
        if code is ErrorCode.not_coordinator:
            self._check_elsewhere(check, on_done)
        elif code is not None:
            on_done(code)

    async def require_partition(self, check: PartitionCheck) -> None:
        """Return once the partition is in the open transaction; KafkaError if it is not.

        Unless an awaited call comes first, what the caller appends next is part of it.
        """
        checked: DeferredReply[ErrorCode] = DeferredReply()
        with self._remote.guards.guard(check.partition, check.producer.id) as guard:
            self.check_partition(check, checked.settle)
            code = guard.result(check, await checked)
        if code is not ErrorCode.none:
            raise KafkaError(code)

    def _check_here(
        self, check: PartitionCheck, on_done: Callable[[ErrorCode], object]
    ) -> ErrorCode | None:
        """The result if this broker coordinates the id and knows it now; else None: `on_done` gets
        it."""
        id, producer, partition, adds = check
        if not adds:
            return self.verify(id, producer, partition)
        try:
            commit = self.start_adding(id, producer, frozenset((partition,)), EPOCH_PER_TRANSACTION)
        except KafkaError as refusal:
            return refusal.code
        except Exception:  # fails this partition only: the connection has other requests
            log.exception("transactional id %r: cannot add partition %s", id, partition)
            return ErrorCode.unknown_server_error
        if commit is None:
            return ErrorCode.none
        commit.then(on_done)
        return None

    def _check_elsewhere(
        self, check: PartitionCheck, on_done: Callable[[ErrorCode], object]
    ) -> None:
        guards, partition, producer = self._remote.guards, check.partition, check.producer.id
        guard = guards.open(partition, producer)

        def on_reply(code: ErrorCode) -> None:
            guards.close(partition, producer, guard)
            on_done(guard.result(check, code))

        self._remote.ask(self._runtime.partition_of(check.id), check, on_reply)

    async def end(self, id: str, request: EndRequest) -> Producer:
        """The client's producer id and epoch for its next transaction."""
        ended: DeferredReply[Ended] = DeferredReply()
        try:
            self.start_ending(id, request, ended.settle)
        except NeedsProducerId:
            self.start_ending(id, request, ended.settle, await self._next_producer_id())
        code, client = await ended
        if code is not ErrorCode.none:
            raise KafkaError(code)
        return client

    def start_ending(
        self,
        id: str,
        request: EndRequest,
        on_done: Callable[[Ended], object],
        fresh: ProducerId | None = None,
    ) -> None:
        """Call `on_done` once, when the reply may be sent; NeedsProducerId if `fresh` is needed."""
        _check(id)
        client, commit = self._runtime.submit(
            id, lambda shard, now: shard.end(id, request, fresh, now)
        )
        if commit is None:
            self._on_decided(id, Ended(ErrorCode.none, client), on_done)
        else:
            commit.then(lambda code: self._on_decided(id, Ended(code, client), on_done))

    def _on_decided(self, id: str, ended: Ended, on_done: Callable[[Ended], object]) -> None:
        """The decision is committed, or has failed: reply, or wait for the markers first."""
        if ended.code is not ErrorCode.none:
            on_done(Ended(ended.code))
            return
        try:
            txn = self._runtime.owned_shard(id).shard.get(id)
        except KafkaError as refusal:
            on_done(Ended(refusal.code))
            return
        if txn is not None and txn.state in DECIDED:
            self._completion.when_completed(id, ANSWER_WITHIN_MS, lambda: on_done(ended))
        else:
            on_done(ended)

    async def describe(self, id: str) -> Transaction:
        _check(id)
        txn = await self._runtime.read(id, lambda shard: shard.get(id))
        if txn is None or txn.state is TxnState.DEAD:
            raise KafkaError(ErrorCode.transactional_id_not_found)
        return txn

    def list(self) -> list[Transaction]:
        """Every transactional id of this coordinator; KafkaError while some are being loaded."""
        if self._runtime.is_loading():
            raise KafkaError(ErrorCode.coordinator_load_in_progress)
        return [txn for owned in self._runtime.active() for txn in owned.shard]

    async def _with_producer_id(
        self, id: str, decide: Callable[[TxnShard, ProducerId | None, WallMs], Outcome[R]]
    ) -> R:
        """Decide; if that needs a new producer id, get one and decide again."""
        try:
            return await self._runtime.write(id, lambda shard, now: decide(shard, None, now))
        except NeedsProducerId:
            fresh = await self._next_producer_id()
            return await self._runtime.write(id, lambda shard, now: decide(shard, fresh, now))


def _check(id: str) -> None:
    if not 0 < len(id.encode()) <= LONGEST_ID:
        raise KafkaError(
            ErrorCode.invalid_request,
            f"Transactional id has {len(id.encode())} bytes; allowed are 1 to {LONGEST_ID}.",
        )
