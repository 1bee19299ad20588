"""StopReplica (5): stops replicas of this broker, and deletes their files if requested."""

from __future__ import annotations

from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.delay.slices import Slices
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerEpoch, ControllerEpoch, LeaderEpoch, TopicPartition
from ottla.protocol.interbroker import STOP_REPLICA
from ottla.replica.transitions import EpochFence, PartitionStop

FIRST_WITH_EPOCHS: Final = 3
STALE: Final = frozenset({ErrorCode.stale_controller_epoch, ErrorCode.stale_broker_epoch})


async def stop_replica(request: Request, ctx: Context) -> Fields:
    transitions = ctx.services.replicas.transitions
    slices = Slices()
    stops = [
        PartitionStop(
            TopicPartition(topic.topic_name, partition.partition_index),
            LeaderEpoch(partition.leader_epoch),
            partition.delete_partition,
        )
        async for topic in slices.of(request.topic_states)
        async for partition in slices.of(topic.partition_states)
    ]
    transitions.check(
        EpochFence(ControllerEpoch(request.controller_epoch), BrokerEpoch(request.broker_epoch))
    )
    codes = await transitions.stop_replicas(stops)
    return {
        "error_code": ErrorCode.none,
        "partition_errors": [
            {"topic_name": tp.topic, "partition_index": tp.partition, "error_code": code}
            async for tp, code in slices.of(codes.items())
        ],
    }


def refuse(request: Request, code: ErrorCode, _: str | None) -> Fields:
    """As Kafka does: every partition is named, unless an epoch is stale."""
    topics = () if code in STALE else request.topic_states
    return {
        "error_code": code,
        "partition_errors": [
            {
                "topic_name": topic.topic_name,
                "partition_index": partition.partition_index,
                "error_code": code,
            }
            for topic in topics
            for partition in topic.partition_states
        ],
    }


API = Api(
    STOP_REPLICA,
    "StopReplica",
    range(FIRST_WITH_EPOCHS, 5),
    stop_replica,
    refuse,
    between_brokers=True,
)
