"""ListTransactions (66): the transactional ids coordinated here, filtered.

Those that the peer may not describe are omitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.coordinator.regular_expressions import compiled
from ottla.coordinator.txn.state import Transaction, TxnState
from ottla.delay.slices import PLAIN, Slices, in_slices, parts_of, set_of
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode
from ottla.security.acl import Kind, Operation

KEY: Final = 66
LABELS: Final = frozenset(state.label for state in TxnState)


async def list_transactions(request: Request, ctx: Context) -> Fields:
    now_ms = ctx.services.broker.clock.wall_ms()
    id_pattern = request.transactional_id_pattern
    matches = compiled(id_pattern) if id_pattern else None
    states = await set_of(request.state_filters)
    producers = await set_of(request.producer_id_filters)
    transactions = [
        {
            "transactional_id": txn.id,
            "producer_id": txn.producer_id,
            "transaction_state": txn.state.label,
        }
        async for txn in in_slices(ctx.services.txns.list())
        if (not states or txn.state.label in states)
        and (not producers or txn.producer_id in producers)
        and _is_old_enough(txn, request.duration_filter, now_ms)
        and (matches is None or matches.fullmatch(txn.id))
        and ctx.allows(Operation.DESCRIBE, Kind.TRANSACTIONAL_ID, txn.id, noted=False)
    ]
    return {
        "throttle_time": 0,
        "error_code": ErrorCode.none,
        "unknown_state_filters": await _unknown(request.state_filters),
        "transaction_states": transactions,
    }


async def _unknown(states: Sequence[str]) -> list[str]:
    unknown: list[str] = []
    slices = Slices(PLAIN)
    for some in parts_of(states, PLAIN):
        await slices.took(len(some))
        unknown += [state for state in some if state not in LABELS]
    return unknown


def _is_old_enough(txn: Transaction, longer_ms: int, now_ms: WallMs) -> bool:
    return longer_ms < 0 or now_ms - txn.started_ms > longer_ms


def refuse(_: Request, code: ErrorCode, __: str | None) -> Fields:
    return {
        "throttle_time": 0,
        "error_code": code,
        "unknown_state_filters": [],
        "transaction_states": [],
    }


API = Api(KEY, "ListTransactions", range(0, 3), list_transactions, refuse)
