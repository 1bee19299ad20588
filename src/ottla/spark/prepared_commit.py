"""Committing a transaction that another process has prepared.

Owns: EndTxn on behalf of somebody else, and what its refusals mean for a transaction that is known
to have been decided. Never: asks whether it should be committed.

A decided transaction is never aborted (`exactly_once`): if it is not open any more, it has been
committed. An attempt that came late may have asked for its name since; the broker then keeps the
prepared transaction, under a new identity that only asking can tell (KIP-939).
"""

from __future__ import annotations

from typing import Final

from ottla.client.admin.session import Answers, Session, result_or_error
from ottla.client.cluster import To
from ottla.client.errors import ErrorCode, KafkaError
from ottla.client.producer.transactions.coordinator_requests import (
    ADDS_ITSELF,
    END_TXN,
    FEATURE,
    INIT_PRODUCER_ID,
    LAST_EXPLICIT_END,
)
from ottla.client.producer.transactions.state import PreparedTransaction
from ottla.protocol.schema import KioMessage

NEVER_MS: Final = 0x7FFF_FFFF
SOMEBODY_ELSES: Final = frozenset(
    {
        ErrorCode.producer_fenced,
        ErrorCode.invalid_producer_epoch,
        ErrorCode.invalid_producer_id_mapping,
    }
)


async def end_prepared(session: Session, prepared: PreparedTransaction) -> None:
    """Commit it, if that has not been done."""
    try:
        await _commit(session, prepared)
    except KafkaError as refused:
        if refused.code not in SOMEBODY_ELSES:
            raise
        now = await _refresh(session, prepared)
        if now is not None:
            await _commit(session, now)


async def _commit(session: Session, transaction: PreparedTransaction) -> None:
    fields = {
        "transactional_id": transaction.transactional_id,
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.epoch,
        "committed": True,
    }
    level = (await session.retry_lookup(session.cluster.features)).get(FEATURE, 0)
    at_most = None if level >= ADDS_ITSELF else LAST_EXPLICIT_END

    async def ask(node: To, ids: list[str]) -> Answers[str, KioMessage]:
        reply = await session.ask(node, END_TXN, fields, at_most=at_most)
        return {transaction.transactional_id: result_or_error(reply, reply)}

    (await session.for_each([transaction.transactional_id], session.transactions, ask)).all()


async def _refresh(session: Session, prepared: PreparedTransaction) -> PreparedTransaction | None:
    """The identity that may end it now; None if it has ended."""
    fields = {
        "transactional_id": prepared.transactional_id,
        "transaction_timeout": NEVER_MS,
        "producer_id": -1,
        "producer_epoch": -1,
        "enable2_pc": True,
        "keep_prepared_txn": True,
    }

    async def ask(node: To, ids: list[str]) -> Answers[str, KioMessage]:
        reply = await session.ask(node, INIT_PRODUCER_ID, fields)
        return {prepared.transactional_id: result_or_error(reply, reply)}

    found = (await session.for_each([prepared.transactional_id], session.transactions, ask)).one()
    if (found.ongoing_txn_producer_id, found.ongoing_txn_producer_epoch) != prepared[1:]:
        return None
    return PreparedTransaction(prepared.transactional_id, found.producer_id, found.producer_epoch)
