"""Metadata (3): the brokers, and for each topic its partitions with leader and replicas.

Any broker answers it, from its own image. A topic that does not exist is created first if the
client and `auto.create.topics.enable` allow it; the reply then already has its leaders. One request
creates at most `AUTO_CREATED_MAX` topics: the others get LEADER_NOT_AVAILABLE, and the client's
next request creates more. A topic that the peer may not describe is not revealed, not even whether
it exists.

The image is taken when the reply's turn has come. Behind a Produce that waits for a dead follower
it would be old on arrival: it would name the dead leader, and the client ask again a second later.

A reply about named topics also lists brokers that left a moment ago. librdkafka, from 2.10 on,
drops a broker that is not listed, and forgets new leaders of its partitions that the same reply
names: it asks again a second later.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple, TypeAlias

from ottla.api import operations
from ottla.api.api import Api, Context, Fields, Request
from ottla.api.operations import NOT_ASKED
from ottla.controller.topic_rules import check_name
from ottla.delay.slices import SLICE, Slices, finished
from ottla.metadata.image import Image, Node, PartitionMetadata, TopicMetadata
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import INTERNAL_TOPICS, NO_TOPIC_ID, TopicId
from ottla.protocol import wire
from ottla.protocol.schema import KioStruct
from ottla.security.acl import CLUSTER_NAME, Kind, Operation

KEY: Final = 3
FIRST_WITH_CREATION_FLAG: Final = 4
WITH_CLUSTER_OPERATIONS: Final = range(8, 11)
FIRST_BY_ID: Final = 12
CREATION_TIMEOUT_MS: Final = 5_000
STARTING_MS: Final = 5_000
"""How long a request may wait for the first metadata of a broker that has just started."""
AUTO_CREATED_MAX: Final = 100
"""Topics that one request creates at most."""
ALLOWED: Final = "topic_authorized_operations"

Shown: TypeAlias = Fields | wire.Encoded


async def metadata(request: Request, ctx: Context) -> Fields:
    topics = request.topics
    slices = Slices()
    if ctx.call.version < FIRST_BY_ID and any(_by_id(requested) for requested in topics or ()):
        raise KafkaError(ErrorCode.invalid_request)
    await ctx.services.controller.metadata_waiter.wait_for_brokers(STARTING_MS)
    if topics is None or (ctx.call.version == 0 and not topics):
        await ctx.wait_for_turn()
        view = _View(request, ctx)
        shown_topics = await view.everything(slices)
    else:
        missing = await _create_missing(request, ctx, slices)
        await ctx.wait_for_turn()
        view = _View(request, ctx)
        once = await _distinct(topics, view.image, slices)
        shown_topics = [
            await view.requested_topic(requested, missing, slices)
            async for requested in slices.of(once)
        ]
    departed = ctx.services.metadata.departed_nodes(ctx.peer.listener) if topics else []
    return {**_cluster(view.image, departed, request, ctx), "topics": shown_topics}


class _View:
    """The topics of one metadata image, as far as the peer may see them.

    The encoding of a topic is cached while the topic does not change; except if authorized
    operations are requested and an authorizer is configured, because they differ by client.
    """

    def __init__(self, request: Request, ctx: Context) -> None:
        self.image = ctx.services.metadata.image
        self._ctx = ctx
        self._tells = request.include_topic_authorized_operations
        self._alike = not (self._tells and ctx.services.authorizer.in_force)
        may = self._may("") if self._alike else NOT_ASKED
        kind = (ctx.call.version, ctx.peer.listener, may)
        self._cache = ctx.services.metadata.derived.kind(self.image, kind)

    async def everything(self, slices: Slices) -> list[Shown]:
        topics: Iterable[tuple[str, TopicMetadata]] = self.image.topics.items()
        if self._ctx.services.authorizer.in_force:
            topics = [
                item
                async for item in slices.of(topics)
                if _describes(item[0], self._ctx, noted=False)
            ]
        shown_topics = []
        async for name, topic in slices.of(topics):
            shown_topics.append(await self._show(name, topic, slices))
        return shown_topics

    async def requested_topic(
        self, requested: KioStruct, missing: _Missing, slices: Slices
    ) -> Shown:
        """One topic, by name or id."""
        topic_id = requested.topic_id or NO_TOPIC_ID
        name = requested.name
        if name is None or topic_id != NO_TOPIC_ID:  # by id; Java then sends an empty name
            name = self.image.names.get(topic_id)
            if name is None:
                return unknown_topic(None, ErrorCode.unknown_topic_id, topic_id)
            if not _describes(name, self._ctx):
                return hidden_topic(None, topic_id)
        elif not _describes(name, self._ctx):
            return hidden_topic(name)
        topic = self.image.topics.get(name)
        if topic is not None:
            return await self._show(name, topic, slices)
        if name in missing.barred:
            return unknown_topic(name, ErrorCode.topic_authorization_failed)
        if name in missing.later:
            return unknown_topic(name, ErrorCode.leader_not_available)
        return {**no_such_topic(name), ALLOWED: self._may(name)}

    async def _show(self, name: str, topic: TopicMetadata, slices: Slices) -> Shown:
        cached = self._cache.find(name, topic) if self._alike else None
        if cached is not None:
            encoded: wire.Encoded = cached
            return encoded
        fields = await self._fields(name, topic, slices)
        if not self._alike:
            return fields
        if len(topic.partitions) > SLICE:
            encoded = await finished(wire.part_in_pieces(self._ctx.call, "topics", fields))
        else:
            encoded = wire.encode_part(self._ctx.call, "topics", fields)
        self._cache.put(name, topic, encoded)
        return encoded

    async def _fields(self, name: str, topic: TopicMetadata, slices: Slices) -> Fields:
        image, listener = self.image, self._ctx.peer.listener
        partitions = [
            _partition_fields(image, listener, index, topic.partitions[index])
            async for index in slices.of(sorted(topic.partitions))
        ]
        fields = topic_fields(image, listener, name, topic, ())
        return {**fields, "partitions": partitions, ALLOWED: self._may(name)}

    def _may(self, name: str) -> int:
        return operations.on_topic(self._ctx, name) if self._tells else NOT_ASKED


def _describes(name: str, ctx: Context, *, noted: bool = True) -> bool:
    return ctx.allows(Operation.DESCRIBE, Kind.TOPIC, name, noted=noted)


async def _distinct(
    topics: Iterable[KioStruct], image: Image, slices: Slices
) -> Iterable[KioStruct]:
    """Without duplicates, by name or by id."""
    distinct: dict[str | TopicId, KioStruct] = {}
    async for requested in slices.of(topics):
        topic_id = requested.topic_id or NO_TOPIC_ID
        by_id = requested.name is None or topic_id != NO_TOPIC_ID
        distinct.setdefault(
            image.names.get(topic_id, topic_id) if by_id else requested.name, requested
        )
    return distinct.values()


def _by_id(requested: KioStruct) -> bool:
    """Versions 10 and 11 have topic ids in the request but do not support them."""
    return requested.name is None or bool(requested.topic_id)


def _cluster(image: Image, departed: list[Node], request: Request, ctx: Context) -> Fields:
    with_operations = (
        ctx.call.version in WITH_CLUSTER_OPERATIONS
        and request.include_cluster_authorized_operations
    )
    return {
        "throttle_time": 0,
        "brokers": [
            {"node_id": node.id, "host": node.host, "port": node.port, "rack": node.rack}
            for node in (*image.nodes(ctx.peer.listener), *departed)
        ],
        "cluster_id": ctx.services.broker.cluster_id,
        "controller_id": -1 if image.controller_id is None else image.controller_id,
        "cluster_authorized_operations": operations.on_cluster(ctx)
        if with_operations
        else NOT_ASKED,
        "error_code": ErrorCode.none,
    }


class _Missing(NamedTuple):
    """Requested topics that do not exist and were not created."""

    barred: Collection[str] = ()
    """The peer may describe them but not create them."""
    later: Collection[str] = ()
    """Created when they are requested again."""


async def _create_missing(request: Request, ctx: Context, slices: Slices) -> _Missing:
    allowed = ctx.call.version < FIRST_WITH_CREATION_FLAG or request.allow_auto_topic_creation
    if not (allowed and ctx.services.config.current.auto_create_topics_enable):
        return _Missing()
    existing = ctx.services.metadata.image.topics
    creates_any = ctx.allows(Operation.CREATE, Kind.CLUSTER, CLUSTER_NAME, noted=False)
    barred: set[str] = set()
    missing: dict[str, None] = {}
    async for requested in slices.of(request.topics):
        name = requested.name
        if not name or name in existing or not _describes(name, ctx, noted=False):
            continue
        if not creates_any and not ctx.allows(Operation.CREATE, Kind.TOPIC, name):
            barred.add(name)
        elif _is_name(name):
            missing[name] = None
    names = list(missing)
    if names:
        await ctx.services.controller.auto_create(names[:AUTO_CREATED_MAX], CREATION_TIMEOUT_MS)
    return _Missing(barred, frozenset(names[AUTO_CREATED_MAX:]))


def _is_name(name: str) -> bool:
    try:
        check_name(name)
    except KafkaError:
        return False
    return True


def no_such_topic(name: str) -> Fields:
    unknown = ErrorCode.unknown_topic_or_partition
    return unknown_topic(name, unknown if _is_name(name) else ErrorCode.invalid_topic_exception)


def unknown_topic(name: str | None, code: ErrorCode, topic_id: TopicId = NO_TOPIC_ID) -> Fields:
    return {
        "error_code": code,
        "name": name,
        "topic_id": topic_id,
        "is_internal": name in INTERNAL_TOPICS,
        "partitions": [],
        ALLOWED: NOT_ASKED,
    }


def hidden_topic(name: str | None, topic_id: TopicId = NO_TOPIC_ID) -> Fields:
    """A topic that the peer may not describe: only the name or id of the request."""
    refused = unknown_topic(name, ErrorCode.topic_authorization_failed, topic_id)
    return {**refused, "is_internal": False}


def topic_fields(
    image: Image,
    listener: str,
    name: str,
    topic: TopicMetadata,
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
        ALLOWED: NOT_ASKED,
    }


def _partition_fields(
    image: Image, listener: str, index: int, partition: PartitionMetadata
) -> Fields:
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
        "cluster_authorized_operations": NOT_ASKED,
        "error_code": code,
        "topics": [
            unknown_topic(requested.name or "", code, requested.topic_id or NO_TOPIC_ID)
            for requested in request.topics or ()
        ],
    }


API = Api(KEY, "Metadata", range(0, 14), metadata, refuse)
