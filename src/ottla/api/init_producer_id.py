"""InitProducerId (22): assigns a producer id and epoch.

An idempotent producer gets a new id from any broker. One with a transactional id gets a larger
epoch from its coordinator each time, which fences producers with earlier ones.
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
"""The first version with PRODUCER_FENCED."""


async def init_producer_id(request: Request, ctx: Context) -> Fields:
    _check_allowed(request, ctx)
    if (request.producer_id == NO_PRODUCER) != (request.producer_epoch == NO_EPOCH):
        raise KafkaError(ErrorCode.invalid_request)
    if request.transactional_id is None:
        fresh = await ctx.services.shared.producer_ids.next()
        return _fields(ErrorCode.none, Producer(fresh, 0), NOBODY)
    expected = Producer(ProducerId(request.producer_id), request.producer_epoch)
    init_request = InitProducerIdRequest(
        wire.ms(request.transaction_timeout),
        None if expected == NOBODY else expected,
        two_phase=request.enable2_pc,
        keep_prepared=request.keep_prepared_txn,
    )
    try:
        initialized = await ctx.services.txns.initialise(request.transactional_id, init_request)
    except KafkaError as refusal:
        raise as_supported_error(refusal, ctx.call.version >= FIRST_WITH_FENCED) from None
    return _fields(ErrorCode.none, initialized.producer, initialized.ongoing)


def _check_allowed(request: Request, ctx: Context) -> None:
    """Permissions besides the one for the transactional id.

    A peer that may write to any topic may be idempotent. Two-phase commit needs a permission of its
    own, because such transactions may stay open without a timeout.
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


def as_supported_error(refusal: KafkaError, knows_fenced: bool) -> KafkaError:
    """Earlier versions have INVALID_PRODUCER_EPOCH instead of PRODUCER_FENCED."""
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
