"""DescribeTopicPartitions (75): topics with their partitions, in pages.

Topics come in the order of their names. A page ends after `response_partition_limit` partitions,
or the broker's own limit if that is lower, with a cursor at the start of the next page. A topic
that the peer may not describe gets an error if the request names it, and is omitted otherwise.
"""

from __future__ import annotations

from typing import Final

from ottla.api import operations
from ottla.api.api import Api, Context, Fields, Request
from ottla.api.metadata import ALLOWED, hidden_topic, no_such_topic, topic_fields, unknown_topic
from ottla.delay.slices import PLAIN, Slices, in_order, in_slices
from ottla.model.errors import ErrorCode, KafkaError
from ottla.protocol.schema import KioMessage
from ottla.security.acl import Kind, Operation

KEY: Final = 75


async def describe_topic_partitions(request: Request, ctx: Context) -> Fields:
    image = ctx.services.metadata.image
    limit = ctx.services.config.current.max_request_partition_size_limit
    partitions_left = max(1, min(request.response_partition_limit, limit))
    cursor = request.cursor
    _check_cursor(request)
    topics: list[Fields] = []
    names = await _names(request, list(image.topics))
    slices = Slices()
    hidden = {name async for name in slices.of(names) if not _may_see(name, request, ctx)}
    if request.topics:
        topics += [hidden_topic(name) async for name in slices.of(names) if name in hidden]
    async for name in slices.of(names):
        if name in hidden:
            continue
        topic = image.topics.get(name)
        may = {ALLOWED: operations.on_topic(ctx, name)}
        if topic is None:
            topics.append({**no_such_topic(name), **may})
            continue
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        indexes = [index for index in sorted(topic.partitions) if index >= first]
        if partitions_left == 0 and indexes:
            return _page(topics, {"topic_name": name, "partition_index": indexes[0]})
        fields = topic_fields(image, ctx.peer.listener, name, topic, indexes[:partitions_left])
        await slices.took(len(indexes[:partitions_left]))
        topics.append({**fields, **may})
        if len(indexes) > partitions_left:
            return _page(topics, {"topic_name": name, "partition_index": indexes[partitions_left]})
        partitions_left -= len(indexes)
    return _page(topics, None)


def _may_see(name: str, request: KioMessage, ctx: Context) -> bool:
    return ctx.allows(Operation.DESCRIBE, Kind.TOPIC, name, noted=bool(request.topics))


def _check_cursor(request: KioMessage) -> None:
    cursor = request.cursor
    if cursor is None:
        return
    if cursor.partition_index < 0:
        raise KafkaError(
            ErrorCode.invalid_request,
            f"Invalid cursor: partition {cursor.partition_index} is negative.",
        )
    if request.topics and all(cursor.topic_name != topic.name for topic in request.topics):
        raise KafkaError(
            ErrorCode.invalid_request,
            f"Invalid cursor: topic {cursor.topic_name} is not one of the requested topics.",
        )


async def _names(request: KioMessage, existing: list[str]) -> list[str]:
    """In order, each once, from the cursor's topic on."""
    first = "" if request.cursor is None else request.cursor.topic_name
    names = existing
    if request.topics:
        names = [topic.name async for topic in in_slices(request.topics, PLAIN)]
    in_page = [name async for name in in_slices(names, PLAIN) if name >= first]
    return list(dict.fromkeys(await in_order(in_page)))


def _page(topics: list[Fields], cursor: Fields | None) -> Fields:
    return {"throttle_time": 0, "topics": topics, "next_cursor": cursor}


def refuse(request: Request, code: ErrorCode, _: str | None) -> Fields:
    return _page([unknown_topic(topic.name, code) for topic in request.topics], None)


API = Api(KEY, "DescribeTopicPartitions", range(0, 1), describe_topic_partitions, refuse)
