"""InitProducerId (22): who a producer is from now on.

An idempotent producer gets an id of its own from any broker. One with a transactional id gets a
larger epoch from its coordinator each time, which fences whoever had an earlier one.
"""

from __future__ import annotations

from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.authorise import WRITE_TRANSACTIONS
from ottla.coordinator.txn.init_producer_id import InitProducerIdRequest
from ottla.coordinator.txn.state import NO_EPOCH, NOBODY, Producer
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_PRODUCER, ProducerId
from ottla.protocol import wire
from ottla.security.acl import CLUSTER_NAME, Kind, Operation

KEY: Final = 22
FIRST_WITH_FENCED: Final = 4
"""The version from which on clients know PRODUCER_FENCED."""


async def init_producer_id(request: Request, ctx: Context) -> Fields:
    _check_allowed(request, ctx)
    if (request.producer_id == NO_PRODUCER) != (request.producer_epoch == NO_EPOCH):
        raise KafkaError(ErrorCode.invalid_request)
    if request.transactional_id is None:
        fresh = await ctx.services.controller.producer_ids.next()
        return _fields(ErrorCode.none, Producer(fresh, 0), NOBODY)
    expected = Producer(ProducerId(request.producer_id), request.producer_epoch)
    asked = InitProducerIdRequest(
        wire.ms(request.transaction_timeout),
        None if expected == NOBODY else expected,
        two_phase=request.enable2_pc,
        keep_prepared=request.keep_prepared_txn,
    )
    try:
        given = await ctx.services.txns.initialise(request.transactional_id, asked)
    except KafkaError as refusal:
        raise as_known(refusal, ctx.call.version >= FIRST_WITH_FENCED) from None
    return _fields(ErrorCode.none, given.producer, given.ongoing)


def _check_allowed(request: Request, ctx: Context) -> None:
    """Besides what is needed for every transactional id.

    Who may write to some topic may do so without gaps and repetitions. Who prepares transactions
    may leave them open for ever.
    """
    if request.transactional_id is not None:
        if request.enable2_pc:
            id = request.transactional_id
            ctx.require(Operation.TWO_PHASE_COMMIT, Kind.TRANSACTIONAL_ID, id)
        return
    if not (
        ctx.allows(Operation.IDEMPOTENT_WRITE, Kind.CLUSTER, CLUSTER_NAME, noted=False)
        or ctx.services.authorizer.allows_some(ctx.peer, Operation.WRITE, Kind.TOPIC)
    ):
        ctx.require(Operation.IDEMPOTENT_WRITE, Kind.CLUSTER, CLUSTER_NAME)


def as_known(refusal: KafkaError, knows_fenced: bool) -> KafkaError:
    """Older clients know a fenced producer only by its invalid epoch."""
    if refusal.code is ErrorCode.producer_fenced and not knows_fenced:
        return KafkaError(ErrorCode.invalid_producer_epoch, refusal.message)
    return refusal


def _fields(code: ErrorCode, producer: Producer, ongoing: Producer) -> Fields:
    return {
        "throttle_time": 0,
        "error_code": code,
        "producer_id": producer.id,
        "producer_epoch": producer.epoch,
        "ongoing_txn_producer_id": ongoing.id,
        "ongoing_txn_producer_epoch": ongoing.epoch,
    }


def refuse(_: Request, code: ErrorCode, __: str | None) -> Fields:
    return _fields(code, NOBODY, NOBODY)


API = Api(
    KEY,
    "InitProducerId",
    range(0, 7),
    init_producer_id,
    refuse,
    needs=(WRITE_TRANSACTIONS,),
)
