"""FindCoordinator (10): the broker that coordinates a group or a transactional id.

It is the leader of the internal topic's partition that the key hashes to. The first request creates
the topic, if the peer may describe one of its keys.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.authorise import REFUSALS
from ottla.coordinator.runtime import partition_for
from ottla.delay.slices import in_slices
from ottla.metadata.image import Node
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import CONSUMER_OFFSETS, NO_BROKER, TRANSACTION_STATE, TopicPartition
from ottla.security.acl import Kind, Operation

KEY: Final = 10
FIRST_WITH_BATCHES: Final = 4
CREATION_TIMEOUT_MS: Final = 5_000
TOPICS: Final = {0: CONSUMER_OFFSETS, 1: TRANSACTION_STATE}
KINDS: Final = {CONSUMER_OFFSETS: Kind.GROUP, TRANSACTION_STATE: Kind.TRANSACTIONAL_ID}
NOWHERE: Final = Node(NO_BROKER, "", -1, None)
MESSAGES: Final = {
    ErrorCode.none: "NONE",
    ErrorCode.coordinator_not_available: "The coordinator is not available.",
    ErrorCode.group_authorization_failed: "Group authorization failed.",
    ErrorCode.transactional_id_authorization_failed: "Transactional Id authorization failed.",
}
"""As Kafka words them in replies without a list; clients show them to their users."""


class CoordinatorLookup(NamedTuple):
    key: str
    node: Node = NOWHERE
    code: ErrorCode = ErrorCode.none
    message: str | None = None


async def find_coordinator(request: Request, ctx: Context) -> Fields:
    topic = TOPICS.get(request.key_type)
    if topic is None:
        raise KafkaError(
            ErrorCode.invalid_request,
            f"Unsupported coordinator key type {request.key_type}: expected 0 (group) or 1 "
            "(transactional id).",
        )
    batch = ctx.call.version >= FIRST_WITH_BATCHES
    keys = request.coordinator_keys if batch else (request.key,)
    kind = KINDS[topic]
    allowed = {key async for key in in_slices(keys) if ctx.allows(Operation.DESCRIBE, kind, key)}
    if allowed and topic not in ctx.services.metadata.image.topics:
        await ctx.services.controller.auto_create([topic], CREATION_TIMEOUT_MS)
    refusal = REFUSALS[kind]
    coordinators = [
        _find(topic, key, ctx) if key in allowed else CoordinatorLookup(key, code=refusal)
        async for key in in_slices(keys)
    ]
    if batch:
        fields = [
            _of_batch(coordinator._replace(message=coordinator.message or ""))
            async for coordinator in in_slices(coordinators)
        ]
        return {"throttle_time": 0, "coordinators": fields}
    [coordinator] = coordinators
    return _single(coordinator._replace(message=MESSAGES[coordinator.code]))


def _find(topic: str, key: str, ctx: Context) -> CoordinatorLookup:
    image = ctx.services.metadata.image
    topic_metadata = image.topics.get(topic)
    if topic_metadata is None:
        return CoordinatorLookup(key, code=ErrorCode.coordinator_not_available)
    offsets_partition = TopicPartition(topic, partition_for(key, len(topic_metadata.partitions)))
    partition = image.partition(offsets_partition)
    node = None if partition is None else image.node(partition.leader, ctx.peer.listener)
    if node is None:
        return CoordinatorLookup(key, code=ErrorCode.coordinator_not_available)
    return CoordinatorLookup(key, node)


def _single(coordinator: CoordinatorLookup) -> Fields:
    return {
        "throttle_time": 0,
        "error_code": coordinator.code,
        "error_message": coordinator.message,
        "node_id": coordinator.node.id,
        "host": coordinator.node.host,
        "port": coordinator.node.port,
    }


def _of_batch(coordinator: CoordinatorLookup) -> Fields:
    return {**_single(coordinator), "key": coordinator.key}


def refuse(request: Request, code: ErrorCode, message: str | None) -> Fields:
    keys = request.coordinator_keys or ()
    batch = [_of_batch(CoordinatorLookup(key, NOWHERE, code, message)) for key in keys]
    return {**_single(CoordinatorLookup("", NOWHERE, code, message)), "coordinators": batch}


API = Api(KEY, "FindCoordinator", range(0, 7), find_coordinator, refuse)
