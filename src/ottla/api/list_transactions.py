"""ListTransactions (66): the transactional ids coordinated here, filtered.

Those that who asks may not describe are left out.
"""

from __future__ import annotations

from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.coordinator.patterns import compiled
from ottla.coordinator.txn.state import Transaction, TxnState
from ottla.model.errors import ErrorCode
from ottla.security.acl import Kind, Operation

KEY: Final = 66
LABELS: Final = frozenset(state.label for state in TxnState)


async def list_transactions(request: Request, ctx: Context) -> Fields:
    now_ms = ctx.services.clock.wall_ms()
    pattern = request.transactional_id_pattern
    matches = compiled(pattern) if pattern else None
    found = [
        {
            "transactional_id": txn.id,
            "producer_id": txn.producer_id,
            "transaction_state": txn.state.label,
        }
        for txn in ctx.services.txns.list()
        if _wanted(txn, request, now_ms)
        and (matches is None or matches.fullmatch(txn.id))
        and ctx.allows(Operation.DESCRIBE, Kind.TRANSACTIONAL_ID, txn.id, noted=False)
    ]
    return {
        "throttle_time": 0,
        "error_code": ErrorCode.none,
        "unknown_state_filters": [s for s in request.state_filters if s not in LABELS],
        "transaction_states": found,
    }


def _wanted(txn: Transaction, request: Request, now_ms: int) -> bool:
    states, producers = request.state_filters, request.producer_id_filters
    if states and txn.state.label not in states:
        return False
    if producers and txn.producer_id not in producers:
        return False
    longer_ms: int = request.duration_filter
    return longer_ms < 0 or now_ms - txn.started_ms > longer_ms


def refuse(_: Request, code: ErrorCode, __: str | None) -> Fields:
    return {
        "throttle_time": 0,
        "error_code": code,
        "unknown_state_filters": [],
        "transaction_states": [],
    }


API = Api(KEY, "ListTransactions", range(0, 3), list_transactions, refuse)
