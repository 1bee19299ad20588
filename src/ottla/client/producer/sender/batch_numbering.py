"""Assigns producer id, epoch and sequence to batches, and adds partitions to transactions.

Owns: when to request a producer id, bump the epoch, and add partitions to a transaction. Never
sends a batch. Does nothing for a producer without idempotence.
"""

from __future__ import annotations

from typing import Final

from ottla.client.cluster import Cluster, Target
from ottla.client.errors import ErrorCode, KafkaError, refusal
from ottla.client.producer.buffer.accumulator import FOREVER_MS
from ottla.client.producer.buffer.batch import Batch
from ottla.client.producer.sender.background_tasks import BackgroundTasks
from ottla.client.producer.sender.produce_request import FIRST_IMPLICIT_TXN
from ottla.client.producer.sender.sequences import Identity, Sequences
from ottla.client.producer.transactions.coordinator_requests import CoordinatorRequests
from ottla.client.producer.transactions.state import Transaction
from ottla.model.ids import TopicPartition

INIT_PRODUCER_ID: Final = 22
NEWEST: Final = 0x7FFF


class BatchNumbering:
    """The sequence numbers of one producer, and its transaction if it has one."""

    def __init__(
        self,
        cluster: Cluster,
        sequences: Sequences | None,
        transaction: Transaction | None = None,
        coordination: CoordinatorRequests | None = None,
    ) -> None:
        self._cluster = cluster
        self.sequences = sequences
        self.transaction = transaction
        self.coordination = coordination
        self._refused_by: KafkaError | None = None

    @property
    def is_ready(self) -> bool:
        """Whether batches may be sent at all."""
        return self.sequences is None or self.sequences.identity.is_known

    @property
    def broken_by(self) -> BaseException | None:
        """The error that ended the transaction: nothing new of it may be sent."""
        return None if self.transaction is None else self.transaction.broken_by

    @property
    def newest_produce(self) -> int:
        """The newest version of Produce to use: from 12 on a broker may open a transaction."""
        if self.transaction is None or self.transaction.adds_partitions_implicitly:
            return NEWEST
        return FIRST_IMPLICIT_TXN - 1

    @property
    def needs_new_epoch(self) -> bool:
        """Sequence numbers were lost in the transaction, and ending it did not bump the epoch."""
        return self.sequences is not None and self.sequences.has_gaps

    def prepare(self, background_tasks: BackgroundTasks) -> int:
        """Start the tasks that are needed before a batch may be sent; the time until a retry."""
        sequences = self.sequences
        if sequences is None:
            return FOREVER_MS
        wait_ms = 0
        if self.transaction is not None:
            if self.transaction.to_add and self.coordination is not None:
                wait_ms = background_tasks.start("partitions", self.coordination.add_partitions)
        elif not sequences.identity.is_known:
            wait_ms = background_tasks.start("producer id", self._begin)
        else:
            sequences.restart(sequences.resolve())
            if sequences.needs_restart and sequences.may_restart:
                wait_ms = self._restart(sequences, background_tasks)
        return wait_ms or FOREVER_MS

    def _restart(self, sequences: Sequences, background_tasks: BackgroundTasks) -> int:
        following = sequences.next_identity
        if following is None:
            return background_tasks.start("producer id", self._begin)
        sequences.adopt(following)
        return 0

    async def _begin(self) -> None:
        """Request a producer id."""
        assert self.sequences is not None
        reply = await self._cluster.ask(
            Target.ANY, INIT_PRODUCER_ID, {"transactional_id": None, "transaction_timeout": 0}
        )
        if reply.error_code:
            error = refusal(reply.error_code, _reason(reply.error_code))
            if not error.retriable:
                self._refused_by = error
            raise error
        self.sequences.adopt(Identity(reply.producer_id, reply.producer_epoch))

    def take_refusal(self) -> KafkaError | None:
        """Why the broker gave no producer id, if waiting does not help; told once. Records that are
        sent later ask again."""
        error, self._refused_by = self._refused_by, None
        return error

    def may_drain(self, tp: TopicPartition, head: Batch) -> bool:
        if self.sequences is None:
            return True
        if self.transaction is not None and not self.transaction.may_send(tp):
            return False
        return self.sequences.may_drain(tp, head)

    def sent(self, batch: Batch) -> None:
        if self.transaction is not None:
            self.transaction.is_started = True
        if self.sequences is not None:
            self.sequences.sent(batch)

    def on_returned(self, batch: Batch) -> None:
        if self.sequences is not None:
            self.sequences.on_returned(batch)

    def on_success(self, batch: Batch) -> None:
        if self.sequences is not None:
            self.sequences.on_success(batch)

    def on_failure(self, batch: Batch, error: BaseException, *, may_have_arrived: bool) -> None:
        if self.sequences is not None:
            self.sequences.on_failure(batch, may_have_arrived=may_have_arrived)
        if self.transaction is not None:
            self.transaction.fail(error)

    def on_split(self, batch: Batch, parts: list[Batch]) -> None:
        if self.sequences is not None:
            self.sequences.on_split(batch, parts)

    def may_retry(self, batch: Batch, error: KafkaError, log_start: int) -> bool:
        """Whether a failed batch may succeed in a retry."""
        sequences = self.sequences
        if sequences is None:
            return error.retriable
        if error.code is ErrorCode.out_of_order_sequence_number:
            if sequences.is_gap(batch):
                if self.transaction is not None:
                    return False
                sequences.restart([batch.tp])
            return True
        if error.code is ErrorCode.unknown_producer_id:
            if self.transaction is not None:
                return False
            if log_start != -1:
                sequences.restart([batch.tp])
            return True
        return error.retriable


def _reason(code: ErrorCode) -> str:
    reason = f"cannot get a producer id: {code.name.replace('_', ' ')}"
    if code is ErrorCode.cluster_authorization_failed:
        reason += ": no ACL allows this user to write to any topic"
    return reason
