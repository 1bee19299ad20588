"""The transaction calls of a user.

Owns: the order of the steps (flush, then end; drop, then abort), each within `max.block.ms`.
`state` decides what is allowed, `coordinator_requests` sends the requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from ottla.client.errors import AbortNeeded, ErrorCode, KafkaError, UserError
from ottla.client.offsets import Offsets
from ottla.client.producer.buffer.record_intake import RecordIntake
from ottla.client.producer.sender.batch_numbering import BatchNumbering
from ottla.client.producer.sender.batch_results import BatchResults
from ottla.client.producer.transactions.coordinator_requests import (
    CoordinatorRequests,
    GroupIdentity,
)
from ottla.client.producer.transactions.state import (
    PreparedTransaction,
    Transaction,
    TransactionPhase,
)
from ottla.client.retry import Deadline

ABORTED: Final = "the transaction was aborted before the record was sent"


class Transactions:
    """The transactions of one producer; a UserError if it is not transactional."""

    def __init__(
        self,
        deadline: Callable[[], Deadline],
        numbering: BatchNumbering,
        outcomes: BatchResults,
        intake: RecordIntake,
        flush: Callable[[], Awaitable[None]],
    ) -> None:
        self._deadline = deadline
        self._intake = intake
        self._numbering = numbering
        self._outcomes = outcomes
        self._flush = flush

    async def init(self, *, keep_prepared: bool) -> PreparedTransaction | None:
        """Become the producer of this transactional id; an earlier prepared transaction is kept."""
        transaction, coordination = self._require_transactional("init_transactions")
        transaction.check()
        if transaction.phase is not TransactionPhase.NEW:
            raise UserError("init_transactions: already called; it may be called only once")
        try:
            await coordination.begin(self._deadline(), keep_prepared=keep_prepared)
        except KafkaError as error:
            transaction.fail(error)
            raise
        transaction.move(
            TransactionPhase.READY
            if transaction.kept_prepared is None
            else TransactionPhase.PREPARED
        )
        return transaction.kept_prepared

    def begin(self) -> None:
        """Open a transaction; brokers learn of it with its first record."""
        self._require_transactional("begin")[0].begin()

    async def send_offsets(self, offsets: Offsets, group: GroupIdentity) -> None:
        """Commit a group's offsets with the transaction."""
        transaction, coordination = self._require_transactional("send_offsets")
        transaction.check_open("send_offsets")
        if not offsets:
            return
        try:
            await coordination.send_offsets(offsets, group, self._deadline())
        except KafkaError as error:
            transaction.fail(error)
            raise

    async def prepare(self) -> PreparedTransaction:
        """Flush everything, and leave the end to `complete_transaction`."""
        transaction, coordination = self._require_transactional("prepare_transaction")
        if not coordination.is_two_phase:
            raise UserError("prepare_transaction: needs transaction_two_phase_commit_enable=True")
        transaction.check_open("prepare_transaction")
        self._intake.close_open_batches()
        await self._flush()
        transaction.check_open("prepare_transaction")
        transaction.move(TransactionPhase.PREPARED)
        return coordination.prepared

    async def complete(self, prepared: PreparedTransaction) -> bool:
        """Commit the prepared transaction if it is this one, else abort; whether it committed."""
        transaction, coordination = self._require_transactional("complete_transaction")
        transaction.check()
        if transaction.phase is not TransactionPhase.PREPARED:
            raise UserError("complete_transaction: no transaction is prepared")
        own = transaction.kept_prepared or coordination.prepared
        transaction.is_started = True
        commit = PreparedTransaction(*prepared) == own
        await self.end(commit)
        return commit

    async def end(self, commit: bool) -> None:
        """Commit or abort, with everything that was sent."""
        transaction, coordination = self._require_transactional("commit" if commit else "abort")
        transaction.end(commit)
        self._intake.close_open_batches()
        deadline = self._deadline()
        if not commit:
            transaction.to_add.clear()
            aborted = AbortNeeded(ErrorCode.transaction_abortable, ABORTED)
            self._outcomes.abandon(aborted, numbered=False)
        async with asyncio.timeout(deadline.left_ms / 1e3):
            await self._flush()
        if transaction.phase is TransactionPhase.BROKEN:
            raise transaction.abort_needed()
        transaction.check()
        try:
            if transaction.is_started:
                await coordination.end(commit, deadline)
            if self._numbering.needs_new_epoch:
                await coordination.raise_epoch(deadline)
        except KafkaError as error:
            transaction.fail(error)
            raise
        transaction.on_ended()

    def _require_transactional(self, operation: str) -> tuple[Transaction, CoordinatorRequests]:
        transaction, coordination = self._numbering.transaction, self._numbering.coordination
        if transaction is None or coordination is None:
            raise UserError(f"{operation}: this producer has no transactional_id")
        return transaction, coordination
