"""EndTxn (26): commits or aborts a transaction.

Version 5 is transactions v2: the reply has the producer id and epoch of the next transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.authorise import WRITE_TRANSACTIONS
from ottla.api.init_producer_id import as_supported_error
from ottla.coordinator.txn.end_transaction import EPOCH_PER_TRANSACTION, EndRequest
from ottla.coordinator.txn.service import Ended
from ottla.coordinator.txn.state import NOBODY, NeedsProducerId, Producer
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import ProducerId

KEY: Final = 26
FIRST_WITH_FENCED: Final = 2
FIRST_WITH_EPOCH: Final = 5


async def end_txn(request: Request, ctx: Context) -> Fields:
    try:
        client = await ctx.services.txns.end(request.transactional_id, _end_request(request, ctx))
    except KafkaError as refusal:
        raise _error_for_version(refusal, ctx) from None
    return _fields(ErrorCode.none, client)


def end_at_once(request: Request, ctx: Context, answer: Callable[[Fields], None]) -> bool:
    """Every end except one that exhausts the epochs of its producer id and needs a new one."""

    def done(ended: Ended) -> None:
        code, client = ended
        if code is not ErrorCode.none:
            code = _error_for_version(KafkaError(code), ctx).code
        answer(_fields(code, client))

    try:
        ctx.services.txns.start_ending(request.transactional_id, _end_request(request, ctx), done)
    except NeedsProducerId:
        return False
    except KafkaError as refusal:
        raise _error_for_version(refusal, ctx) from None
    return True


def _end_request(request: Request, ctx: Context) -> EndRequest:
    return EndRequest(
        Producer(ProducerId(request.producer_id), request.producer_epoch),
        request.committed,
        EPOCH_PER_TRANSACTION if ctx.call.version >= FIRST_WITH_EPOCH else 0,
    )


def _error_for_version(refusal: KafkaError, ctx: Context) -> KafkaError:
    return as_supported_error(refusal, ctx.call.version >= FIRST_WITH_FENCED)


def _fields(code: ErrorCode, client: Producer) -> Fields:
    return {
        "throttle_time": 0,
        "error_code": code,
        "producer_id": client.id,
        "producer_epoch": client.epoch,
    }


def refuse(_: Request, code: ErrorCode, __: str | None) -> Fields:
    return _fields(code, NOBODY)


API = Api(
    KEY,
    "EndTxn",
    range(0, 6),
    end_txn,
    refuse,
    at_once=end_at_once,
    needs=(WRITE_TRANSACTIONS,),
)
