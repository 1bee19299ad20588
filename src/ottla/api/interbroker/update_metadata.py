"""UpdateMetadata (6): the cluster metadata for this broker's clients."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.config.listeners import PROTOCOLS
from ottla.metadata.image import BrokerMetadata, Endpoint, Image, PartitionMetadata, Update
from ottla.model.errors import ErrorCode
from ottla.model.ids import (
    NO_TOPIC_ID,
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    TopicId,
    TopicPartition,
)
from ottla.protocol.interbroker import UPDATE_METADATA
from ottla.protocol.schema import KioStruct
from ottla.replica.transitions import EpochFence

FIRST_WITH_TOPIC_IDS: Final = 7
FULL: Final = 2
"""The type of an update that names everything; others carry changes."""


async def update_metadata(request: Request, ctx: Context) -> Fields:
    services = ctx.services
    epoch = ControllerEpoch(request.controller_epoch)
    services.replicas.transitions.check(EpochFence(epoch, BrokerEpoch(request.broker_epoch)))
    update = Update(
        BrokerId(request.controller_id),
        epoch,
        tuple(_broker(broker) for broker in request.live_brokers),
        list(_partitions(request)),
        request.requests_left if request.type == FULL else None,
    )
    before = services.metadata.image
    deleted = services.metadata.apply(update)
    for topic in {tp.topic for tp in deleted} - services.metadata.image.topics.keys():
        services.config.set_topic(topic, {})
    services.groups.topics_changed(
        _changed_topics(before, services.metadata.image, update), deleted
    )
    services.controller.metadata_waiter.on_image_changed()
    if update.requests_left == 0:
        is_elsewhere = partial(services.metadata.image.is_elsewhere, services.broker.broker_id)
        await services.replicas.transitions.delete_reassigned(is_elsewhere)
    return {"error_code": ErrorCode.none}


def _changed_topics(before: Image, after: Image, update: Update) -> set[str]:
    """Topics that were created or deleted, or have another number of partitions."""
    named = {tp.topic for tp, _, _ in update.partitions}
    named |= before.topics.keys() - after.topics.keys()
    return {name for name in named if _size(before, name) != _size(after, name)}


def _size(image: Image, name: str) -> tuple[TopicId, int] | None:
    topic = image.topics.get(name)
    return None if topic is None else (topic.id, len(topic.partitions))


def _broker(broker: KioStruct) -> BrokerMetadata:
    endpoints = {
        endpoint.listener: Endpoint(
            endpoint.host, endpoint.port, PROTOCOLS[endpoint.security_protocol]
        )
        for endpoint in broker.endpoints
    }
    return BrokerMetadata(BrokerId(broker.id), endpoints, broker.rack)


def _partitions(request: Request) -> Iterator[tuple[TopicPartition, TopicId, PartitionMetadata]]:
    for topic in request.topic_states:
        topic_id = topic.topic_id or NO_TOPIC_ID
        for state in topic.partition_states:
            partition = PartitionMetadata(
                BrokerId(state.leader),
                LeaderEpoch(state.leader_epoch),
                tuple(map(BrokerId, state.isr)),
                tuple(map(BrokerId, state.replicas)),
                tuple(map(BrokerId, state.offline_replicas)),
                state.zk_version,
                ControllerEpoch(state.controller_epoch),
            )
            yield TopicPartition(topic.topic_name, state.partition_index), topic_id, partition


def refuse(_: Request, code: ErrorCode, __: str | None) -> Fields:
    return {"error_code": code}


API = Api(
    UPDATE_METADATA,
    "UpdateMetadata",
    range(FIRST_WITH_TOPIC_IDS, 9),
    update_metadata,
    refuse,
    between_brokers=True,
)
