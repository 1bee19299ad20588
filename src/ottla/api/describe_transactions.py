"""DescribeTransactions (65): the state of the transactions of some transactional ids."""

from __future__ import annotations

from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.coordinator.txn.state import Transaction
from ottla.delay.slices import in_slices
from ottla.model.errors import ErrorCode, KafkaError
from ottla.security.acl import Kind, Operation

KEY: Final = 65


async def describe_transactions(request: Request, ctx: Context) -> Fields:
    states = [await _describe(id, ctx) async for id in in_slices(request.transactional_ids)]
    return {"throttle_time": 0, "transaction_states": states}


async def _describe(id: str, ctx: Context) -> Fields:
    try:
        ctx.require(Operation.DESCRIBE, Kind.TRANSACTIONAL_ID, id)
        return _state(await ctx.services.txns.describe(id), ctx)
    except KafkaError as refusal:
        return _refusal_fields(id, refusal.code)


def _state(txn: Transaction, ctx: Context) -> Fields:
    """Without the topics that the peer may not describe."""
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(txn.partitions):
        topics.setdefault(topic, []).append(index)
    return {
        "error_code": ErrorCode.none,
        "transactional_id": txn.id,
        "transaction_state": txn.state.label,
        "transaction_timeout": txn.timeout_ms,
        "transaction_start_time": txn.started_ms,
        "producer_id": txn.producer_id,
        "producer_epoch": txn.epoch,
        "topics": [
            {"topic": name, "partitions": ids}
            for name, ids in topics.items()
            if ctx.allows(Operation.DESCRIBE, Kind.TOPIC, name, noted=False)
        ],
    }


def _refusal_fields(id: str, code: ErrorCode) -> Fields:
    return {
        "error_code": code,
        "transactional_id": id,
        "transaction_state": "",
        "transaction_timeout": 0,
        "transaction_start_time": 0,
        "producer_id": 0,
        "producer_epoch": 0,
        "topics": [],
    }


def refuse(request: Request, code: ErrorCode, _: str | None) -> Fields:
    states = [_refusal_fields(id, code) for id in request.transactional_ids]
    return {"throttle_time": 0, "transaction_states": states}


API = Api(KEY, "DescribeTransactions", range(0, 1), describe_transactions, refuse)
