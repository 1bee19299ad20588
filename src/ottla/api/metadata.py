"""Metadata (3): the brokers, and for each topic its partitions with leader and replicas.

Any broker answers it, from its own image. A topic that does not exist is made first where the
client and `auto.create.topics.enable` allow it; the reply then already names its leaders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from ottla.api import operations
from ottla.api.api import Api, Context, Fields, Request
from ottla.controller.topic_rules import check_name
from ottla.metadata.image import Image, Partition, Topic
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import INTERNAL_TOPICS, NO_TOPIC_ID, TopicId
from ottla.protocol import wire

KEY: Final = 3
FIRST_WITH_CREATION_FLAG: Final = 4
FIRST_BY_ID: Final = 12
CREATION_TIMEOUT_MS: Final = 5_000
ALLOWED: Final = "topic_authorized_operations"


async def metadata(request: Request, ctx: Context) -> Fields:
    topics = request.topics
    if ctx.call.version < FIRST_BY_ID and any(_by_id(asked) for asked in topics or ()):
        raise KafkaError(ErrorCode.invalid_request)
    if topics is not None and not (ctx.call.version == 0 and not topics):
        await _create_missing(request, ctx)
    image = ctx.services.metadata.image
    may = operations.NOT_ASKED
    if request.include_topic_authorized_operations:
        may = operations.ON_TOPIC
    show = _show(image, ctx, may)
    shown: list[Fields | wire.Encoded]
    if topics is None or (ctx.call.version == 0 and not topics):
        shown = [show(name, topic) for name, topic in image.topics.items()]
    else:
        shown = [_asked(image, asked, show, may) for asked in topics]
    return {**_cluster(image, request, ctx), "topics": shown}


def _show(image: Image, ctx: Context, may: int) -> Callable[[str, Topic], wire.Encoded]:
    """How this client sees a topic: encoded, and once only while the topic stays the same."""
    listener = ctx.peer.listener
    kept = ctx.services.metadata.derived.kind(image, (ctx.call.version, listener, may))

    def encoded(name: str, topic: Topic) -> wire.Encoded:
        fields = topic_fields(image, listener, name, topic)
        return wire.encode_part(ctx.call, "topics", {**fields, ALLOWED: may})

    return lambda name, topic: kept.of(name, topic, encoded)


def _by_id(asked: Any) -> bool:
    """Two versions have a place for topic ids and do not know what to do with them."""
    return asked.name is None or bool(asked.topic_id)


def _cluster(image: Image, request: Request, ctx: Context) -> Fields:
    asked = request.include_cluster_authorized_operations
    return {
        "throttle_time": 0,
        "brokers": [
            {"node_id": node.id, "host": node.host, "port": node.port, "rack": node.rack}
            for node in image.nodes(ctx.peer.listener)
        ],
        "cluster_id": ctx.services.identity.cluster_id,
        "controller_id": -1 if image.controller_id is None else image.controller_id,
        "cluster_authorized_operations": operations.ON_CLUSTER if asked else operations.NOT_ASKED,
        "error_code": ErrorCode.none,
    }


async def _create_missing(request: Request, ctx: Context) -> None:
    allowed = ctx.call.version < FIRST_WITH_CREATION_FLAG or request.allow_auto_topic_creation
    if not (allowed and ctx.services.config.current.auto_create_topics_enable):
        return
    known = ctx.services.metadata.image.topics
    names = {asked.name for asked in request.topics if asked.name and asked.name not in known}
    missing = sorted(name for name in names if _is_name(name))
    if missing:
        await ctx.services.controller.auto_create(missing, CREATION_TIMEOUT_MS)


def _asked(
    image: Image, asked: Any, show: Callable[[str, Topic], wire.Encoded], may: int
) -> Fields | wire.Encoded:
    topic_id = getattr(asked, "topic_id", None) or NO_TOPIC_ID
    name = asked.name
    if name is None or topic_id != NO_TOPIC_ID:  # by id; Java then sends an empty name
        name = image.names.get(topic_id)
        if name is None:
            unknown = unknown_topic(None, ErrorCode.unknown_topic_id, topic_id)
            return {**unknown, ALLOWED: may}
    topic = image.topics.get(name)
    if topic is not None:
        return show(name, topic)
    return {**no_such_topic(name), ALLOWED: may}


def _is_name(name: str) -> bool:
    try:
        check_name(name)
    except KafkaError:
        return False
    return True


def no_such_topic(name: str) -> Fields:
    known = ErrorCode.unknown_topic_or_partition
    return unknown_topic(name, known if _is_name(name) else ErrorCode.invalid_topic_exception)


def unknown_topic(name: str | None, code: ErrorCode, topic_id: TopicId = NO_TOPIC_ID) -> Fields:
    return {
        "error_code": code,
        "name": name,
        "topic_id": topic_id,
        "is_internal": name in INTERNAL_TOPICS,
        "partitions": [],
        ALLOWED: operations.NOT_ASKED,
    }


def topic_fields(
    image: Image,
    listener: str,
    name: str,
    topic: Topic,
    only: Iterable[int] | None = None,
) -> Fields:
    """A topic as Metadata and DescribeTopicPartitions show it."""
    indexes = sorted(topic.partitions) if only is None else only
    return {
        "error_code": ErrorCode.none,
        "name": name,
        "topic_id": topic.id,
        "is_internal": name in INTERNAL_TOPICS,
        "partitions": [
            _partition_fields(image, listener, index, topic.partitions[index]) for index in indexes
        ],
        ALLOWED: operations.NOT_ASKED,
    }


def _partition_fields(image: Image, listener: str, index: int, partition: Partition) -> Fields:
    code = ErrorCode.none
    leader = int(partition.leader)
    if image.node(partition.leader, listener) is None:
        alive = partition.leader in image.brokers
        code = ErrorCode.listener_not_found if alive else ErrorCode.leader_not_available
        leader = -1
    return {
        "error_code": code,
        "partition_index": index,
        "leader_id": leader,
        "leader_epoch": partition.leader_epoch,
        "replica_nodes": partition.replicas,
        "isr_nodes": partition.isr,
        "offline_replicas": [
            broker
            for broker in partition.replicas
            if broker in partition.offline or broker not in image.brokers
        ],
        "eligible_leader_replicas": (),
        "last_known_elr": (),
    }


def refuse(request: Request, code: ErrorCode, _: str | None) -> Fields:
    return {
        "throttle_time": 0,
        "brokers": [],
        "cluster_id": None,
        "controller_id": -1,
        "cluster_authorized_operations": operations.NOT_ASKED,
        "error_code": code,
        "topics": [unknown_topic(asked.name or "", code) for asked in request.topics or ()],
    }


API = Api(KEY, "Metadata", range(0, 14), metadata, refuse)
