"""EndTxn (26): commit or abort.

Version 5 is transactions v2: the answer says under which id and epoch the producer goes on.
"""

from __future__ import annotations

from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.init_producer_id import as_known
from ottla.coordinator.txn.ending import EPOCH_PER_TRANSACTION, EndAsked
from ottla.coordinator.txn.state import NOBODY, Producer
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import ProducerId

KEY: Final = 26
FIRST_WITH_FENCED: Final = 2
FIRST_WITH_EPOCH: Final = 5


async def end_txn(request: Request, ctx: Context) -> Fields:
    version = ctx.call.version
    asked = EndAsked(
        Producer(ProducerId(request.producer_id), request.producer_epoch),
        request.committed,
        EPOCH_PER_TRANSACTION if version >= FIRST_WITH_EPOCH else 0,
    )
    try:
        client = await ctx.services.txns.end(request.transactional_id, asked)
    except KafkaError as refusal:
        raise as_known(refusal, version >= FIRST_WITH_FENCED) from None
    return _fields(ErrorCode.none, client)


def _fields(code: ErrorCode, client: Producer) -> Fields:
    return {
        "throttle_time": 0,
        "error_code": code,
        "producer_id": client.id,
        "producer_epoch": client.epoch,
    }


def refuse(_: Request, code: ErrorCode, __: str | None) -> Fields:
    return _fields(code, NOBODY)


API = Api(KEY, "EndTxn", range(0, 6), end_txn, refuse)
