"""FindCoordinator (10): which broker coordinates a group, or a transactional id.

The one that leads the partition of the internal topic the key hashes to. The first question makes
the topic, if it is about a key that who asks may describe.
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


class Found(NamedTuple):
    key: str
    node: Node = NOWHERE
    code: ErrorCode = ErrorCode.none
    message: str | None = None


async def find_coordinator(request: Request, ctx: Context) -> Fields:
    topic = TOPICS.get(request.key_type)
    if topic is None:
        raise KafkaError(ErrorCode.invalid_request, f"key type {request.key_type} is not offered")
    batch = ctx.call.version >= FIRST_WITH_BATCHES
    keys = request.coordinator_keys if batch else (request.key,)
    kind = KINDS[topic]
    allowed = {key async for key in in_slices(keys) if ctx.allows(Operation.DESCRIBE, kind, key)}
    if allowed and topic not in ctx.services.metadata.image.topics:
        await ctx.services.controller.auto_create([topic], CREATION_TIMEOUT_MS)
    refusal = REFUSALS[kind]
    found = [
        _find(topic, key, ctx) if key in allowed else Found(key, code=refusal)
        async for key in in_slices(keys)
    ]
    if batch:
        return _batch([one._replace(message=one.message or "") for one in found])
    none = found[0].code is ErrorCode.none
    return _single(found[0]._replace(message="NONE") if none else found[0])  # as Kafka words it


def _find(topic: str, key: str, ctx: Context) -> Found:
    image = ctx.services.metadata.image
    known = image.topics.get(topic)
    if known is None:
        return Found(key, code=ErrorCode.coordinator_not_available)
    home = TopicPartition(topic, partition_for(key, len(known.partitions)))
    partition = image.partition(home)
    node = None if partition is None else image.node(partition.leader, ctx.peer.listener)
    if node is None:
        return Found(key, code=ErrorCode.coordinator_not_available)
    return Found(key, node)


def _single(found: Found) -> Fields:
    return {
        "throttle_time": 0,
        "error_code": found.code,
        "error_message": found.message,
        "node_id": found.node.id,
        "host": found.node.host,
        "port": found.node.port,
    }


def _batch(found: list[Found]) -> Fields:
    one = ({**_single(each), "key": each.key} for each in found)
    return {"throttle_time": 0, "coordinators": list(one)}


def refuse(request: Request, code: ErrorCode, message: str | None) -> Fields:
    keys = getattr(request, "coordinator_keys", None) or ()
    batch = _batch([Found(key, NOWHERE, code, message) for key in keys])
    return {**_single(Found("", NOWHERE, code, message)), **batch}


API = Api(KEY, "FindCoordinator", range(0, 7), find_coordinator, refuse)
