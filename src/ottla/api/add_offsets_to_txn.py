"""AddOffsetsToTxn (25): a transaction is about to commit offsets of a group.

The partition of `__consumer_offsets` that stores the group's offsets is added to the transaction
like any other. This may be the first use of any group: the topic is then created, because a client
that gets an error would only look for its transaction coordinator again.
"""

from __future__ import annotations

from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.authorise import WRITE_TRANSACTIONS, on_group
from ottla.api.find_coordinator import CREATION_TIMEOUT_MS
from ottla.api.init_producer_id import as_supported_error
from ottla.coordinator.txn.state import Producer
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import CONSUMER_OFFSETS, ProducerId, TopicPartition
from ottla.security.acl import Operation

KEY: Final = 25
FIRST_WITH_FENCED: Final = 2


async def add_offsets_to_txn(request: Request, ctx: Context) -> Fields:
    services = ctx.services
    if CONSUMER_OFFSETS not in services.metadata.image.topics:
        await services.controller.auto_create([CONSUMER_OFFSETS], CREATION_TIMEOUT_MS)
    index = services.groups.partition_of(request.group_id)
    producer = Producer(ProducerId(request.producer_id), request.producer_epoch)
    offsets = frozenset({TopicPartition(CONSUMER_OFFSETS, index)})
    try:
        await services.txns.add(request.transactional_id, producer, offsets)
    except KafkaError as refusal:
        raise as_supported_error(refusal, ctx.call.version >= FIRST_WITH_FENCED) from None
    return {"throttle_time": 0, "error_code": ErrorCode.none}


def refuse(_: Request, code: ErrorCode, __: str | None) -> Fields:
    return {"throttle_time": 0, "error_code": code}


API = Api(
    KEY,
    "AddOffsetsToTxn",
    range(0, 5),
    add_offsets_to_txn,
    refuse,
    needs=(WRITE_TRANSACTIONS, *on_group(Operation.READ)),
)
