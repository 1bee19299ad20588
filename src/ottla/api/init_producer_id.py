"""InitProducerId (22): an id for an idempotent producer.

A producer with a transactional id belongs to a transaction coordinator. Until this broker has one
the answer is the one Kafka gives while no coordinator can be found: the client asks again.
"""

from __future__ import annotations

from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_PRODUCER, ProducerId

KEY: Final = 22
NO_EPOCH: Final = -1


async def init_producer_id(request: Request, ctx: Context) -> Fields:
    if (request.producer_id == NO_PRODUCER) != (request.producer_epoch == NO_EPOCH):
        raise KafkaError(ErrorCode.invalid_request)
    if request.transactional_id == "":
        raise KafkaError(ErrorCode.invalid_request)
    if request.transactional_id is not None:
        raise KafkaError(ErrorCode.coordinator_not_available)
    return _fields(ErrorCode.none, await ctx.services.controller.producer_ids.next(), 0)


def _fields(code: ErrorCode, id: ProducerId, epoch: int) -> Fields:
    return {
        "throttle_time": 0,
        "error_code": code,
        "producer_id": id,
        "producer_epoch": epoch,
        "ongoing_txn_producer_id": NO_PRODUCER,
        "ongoing_txn_producer_epoch": NO_EPOCH,
    }


def refuse(_: Request, code: ErrorCode, __: str | None) -> Fields:
    return _fields(code, NO_PRODUCER, NO_EPOCH)


API = Api(KEY, "InitProducerId", range(0, 6), init_producer_id, refuse)
