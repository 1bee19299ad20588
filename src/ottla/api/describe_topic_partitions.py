"""DescribeTopicPartitions (75): topics with their partitions, in pages.

Topics come in the order of their names. A page ends after `response_partition_limit` partitions,
or the broker's own limit if that is lower, with a cursor that names where the next one begins.
A topic that who asks may not describe is refused where it is named, and otherwise left out.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api import operations
from ottla.api.api import Api, Context, Fields, Request
from ottla.api.metadata import ALLOWED, hidden_topic, no_such_topic, topic_fields, unknown_topic
from ottla.delay.slices import Slices
from ottla.model.errors import ErrorCode, KafkaError
from ottla.security.acl import Kind, Operation

KEY: Final = 75


async def describe_topic_partitions(request: Request, ctx: Context) -> Fields:
    image = ctx.services.metadata.image
    limit = ctx.services.config.current.max_request_partition_size_limit
    left = max(1, min(request.response_partition_limit, limit))
    cursor = request.cursor
    _check_cursor(request)
    shown: list[Fields] = []
    names = _names(request, list(image.topics))
    slices = Slices()
    hidden = {name async for name in slices.of(names) if not _may_see(name, request, ctx)}
    if request.topics:
        shown += [hidden_topic(name) for name in sorted(hidden)]
    async for name in slices.of(names):
        if name in hidden:
            continue
        topic = image.topics.get(name)
        may = {ALLOWED: operations.on_topic(ctx, name)}
        if topic is None:
            shown.append({**no_such_topic(name), **may})
            continue
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        indexes = [index for index in sorted(topic.partitions) if index >= first]
        if left == 0 and indexes:
            return _page(shown, {"topic_name": name, "partition_index": indexes[0]})
        fields = topic_fields(image, ctx.peer.listener, name, topic, indexes[:left])
        await slices.took(len(indexes[:left]))
        shown.append({**fields, **may})
        if len(indexes) > left:
            return _page(shown, {"topic_name": name, "partition_index": indexes[left]})
        left -= len(indexes)
    return _page(shown, None)


def _may_see(name: str, request: Any, ctx: Context) -> bool:
    return ctx.allows(Operation.DESCRIBE, Kind.TOPIC, name, noted=bool(request.topics))


def _check_cursor(request: Any) -> None:
    cursor = request.cursor
    if cursor is None:
        return
    if cursor.partition_index < 0:
        raise KafkaError(ErrorCode.invalid_request, "the cursor's partition must not be negative")
    if request.topics and all(cursor.topic_name != topic.name for topic in request.topics):
        raise KafkaError(ErrorCode.invalid_request, "the cursor's topic is not asked for")


def _names(request: Any, known: list[str]) -> list[str]:
    asked = [topic.name for topic in request.topics] or known
    names = sorted(set(asked))
    if request.cursor is None:
        return names
    return [name for name in names if name >= request.cursor.topic_name]


def _page(shown: list[Fields], cursor: Fields | None) -> Fields:
    return {"throttle_time": 0, "topics": shown, "next_cursor": cursor}


def refuse(request: Request, code: ErrorCode, _: str | None) -> Fields:
    return _page([unknown_topic(topic.name, code) for topic in request.topics], None)


API = Api(KEY, "DescribeTopicPartitions", range(0, 1), describe_topic_partitions, refuse)
