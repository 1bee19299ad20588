"""ControlledShutdown (7): a broker that shuts down asks the controller to move its leaders."""

from __future__ import annotations

from ottla.api.api import Api, Context, Fields, Request
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerEpoch, BrokerId
from ottla.protocol.interbroker import CONTROLLED_SHUTDOWN


async def controlled_shutdown(request: Request, ctx: Context) -> Fields:
    left = await ctx.services.controller.controlled_shutdown(
        BrokerId(request.broker_id), BrokerEpoch(request.broker_epoch)
    )
    return {
        "error_code": ErrorCode.none,
        "remaining_partitions": [
            {"topic_name": tp.topic, "partition_index": tp.partition} for tp in sorted(left)
        ],
    }


def refuse(_: Request, code: ErrorCode, __: str | None) -> Fields:
    return {"error_code": code, "remaining_partitions": []}


API = Api(
    CONTROLLED_SHUTDOWN,
    "ControlledShutdown",
    range(0, 4),
    controlled_shutdown,
    refuse,
    between_brokers=True,
)
