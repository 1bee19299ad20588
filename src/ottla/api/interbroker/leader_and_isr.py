"""LeaderAndIsr (4): leaders and in-sync replicas of this broker's partitions."""

from __future__ import annotations

from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.delay.slices import Slices
from ottla.model.errors import ErrorCode
from ottla.model.ids import (
    NO_TOPIC_ID,
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    TopicPartition,
)
from ottla.protocol.interbroker import LEADER_AND_ISR
from ottla.protocol.schema import KioStruct
from ottla.replica.leader import LeaderAssignment
from ottla.replica.transitions import EpochFence, PartitionTransition

FIRST_WITH_TOPIC_IDS: Final = 5


async def leader_and_isr(request: Request, ctx: Context) -> Fields:
    transitions, slices = ctx.services.replicas.transitions, Slices()
    states = [
        _state(topic, partition)
        for topic in request.topic_states
        async for partition in slices.of(topic.partition_states)
    ]
    fence = EpochFence(ControllerEpoch(request.controller_epoch), BrokerEpoch(request.broker_epoch))
    transitions.check(fence)
    hosted = ctx.services.replicas.hosted
    new = {state.key.topic for state in states if hosted.find(state.key) is None}
    if new:
        await ctx.services.shared.configs.load_topics(sorted(new))
        transitions.check(fence)  # a newer controller may have sent a request meanwhile
    codes = await transitions.apply_leader_and_isr(states)
    return {
        "error_code": ErrorCode.none,
        "topics": [
            {
                "topic_id": topic.topic_id,
                "partition_errors": [
                    {
                        "partition_index": partition.partition_index,
                        "error_code": codes[
                            TopicPartition(topic.topic_name, partition.partition_index)
                        ],
                    }
                    async for partition in slices.of(topic.partition_states)
                ],
            }
            for topic in request.topic_states
        ],
    }


def _state(topic: KioStruct, partition: KioStruct) -> PartitionTransition:
    return PartitionTransition(
        TopicPartition(topic.topic_name, partition.partition_index),
        topic.topic_id or NO_TOPIC_ID,
        LeaderAssignment(
            BrokerId(partition.leader),
            LeaderEpoch(partition.leader_epoch),
            tuple(map(BrokerId, partition.isr)),
            tuple(map(BrokerId, partition.replicas)),
            partition.partition_epoch,
        ),
        partition.is_new,
    )


def refuse(request: Request, code: ErrorCode, _: str | None) -> Fields:
    return {
        "error_code": code,
        "topics": [
            {
                "topic_id": topic.topic_id,
                "partition_errors": [
                    {"partition_index": partition.partition_index, "error_code": code}
                    for partition in topic.partition_states
                ],
            }
            for topic in request.topic_states
        ],
    }


API = Api(
    LEADER_AND_ISR,
    "LeaderAndIsr",
    range(FIRST_WITH_TOPIC_IDS, 8),
    leader_and_isr,
    refuse,
    between_brokers=True,
)
