"""AlterPartition (56): a leader asks the controller to change the in-sync set of its partitions.

Until version 2 the followers come without their broker epochs. `partition_epoch` is the version of
the partition's state node.
"""

from __future__ import annotations

from itertools import groupby
from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.controller.events import IsrMember, IsrProposal
from ottla.controller.state import Leadership
from ottla.model.errors import ErrorCode
from ottla.model.ids import (
    NO_BROKER,
    NO_EPOCH,
    NO_TOPIC_ID,
    BrokerEpoch,
    BrokerId,
    LeaderEpoch,
)
from ottla.protocol.schema import KioStruct

KEY: Final = 56
FIRST_WITH_EPOCHS: Final = 3


async def alter_partition(request: Request, ctx: Context) -> Fields:
    has_epochs = ctx.call.version >= FIRST_WITH_EPOCHS
    proposals = {
        (topic.topic_id or NO_TOPIC_ID, partition.partition_index): IsrProposal(
            tuple(_members(partition, has_epochs=has_epochs)),
            LeaderEpoch(partition.leader_epoch),
            partition.partition_epoch,
        )
        for topic in request.topics
        for partition in topic.partitions
    }
    results = await ctx.services.controller.change_isrs(
        BrokerId(request.broker_id), BrokerEpoch(request.broker_epoch), proposals
    )
    return {
        "error_code": ErrorCode.none,
        "throttle_time": 0,
        "topics": [
            {
                "topic_id": topic_id,
                "partitions": [_result(number, result) for (_, number), result in items],
            }
            for topic_id, items in groupby(results.items(), key=lambda item: item[0][0])
        ],
    }


def _members(partition: KioStruct, *, has_epochs: bool) -> list[IsrMember]:
    if not has_epochs:
        return [IsrMember(BrokerId(id)) for id in partition.new_isr]
    return [
        IsrMember(
            BrokerId(member.broker_id),
            None if member.broker_epoch == NO_EPOCH else BrokerEpoch(member.broker_epoch),
        )
        for member in partition.new_isr_with_epochs
    ]


def _result(number: int, result: Leadership | ErrorCode) -> Fields:
    state = result if isinstance(result, Leadership) else None
    return {
        "partition_index": number,
        "error_code": ErrorCode.none if isinstance(result, Leadership) else result,
        "leader_id": state.leader if state else NO_BROKER,
        "leader_epoch": state.leader_epoch if state else NO_EPOCH,
        "isr": state.isr if state else (),
        "leader_recovery_state": 0,
        "partition_epoch": state.version if state else -1,
    }


def refuse(_: Request, code: ErrorCode, __: str | None) -> Fields:
    return {"error_code": code, "throttle_time": 0, "topics": []}


API = Api(KEY, "AlterPartition", range(2, 4), alter_partition, refuse, between_brokers=True)
