"""The paths below `/consumers`: instances, what they read, and their offsets.

Owns: the handlers, and the JSON of their replies. Never: keeps an instance; `instances` does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from ottla.client.consumer.aio import Consumer
from ottla.gateway import consumer_requests
from ottla.gateway.consumer_requests import NewInstance
from ottla.gateway.errors import ILLEGAL_STATE, HttpError, invalid
from ottla.gateway.http_messages import NO_CONTENT, Response, json_reply
from ottla.gateway.media_types import records_type
from ottla.gateway.services import Call, Services
from ottla.model.ids import TopicPartition

if TYPE_CHECKING:
    import re2

PATTERN_BYTES: Final = 1 << 20
"""Memory for a compiled pattern."""


async def create(call: Call, services: Services) -> Response:
    """POST /consumers/{group}"""
    settings = await call.json_if_any(services, consumer_requests.new_instance) or NewInstance()
    group = call.names.text("group")
    instance = services.consumers.create(group, settings)
    scheme = call.request.headers.get("x-forwarded-proto")
    scheme = scheme if scheme in ("http", "https") else services.scheme
    path = "/".join(quote(part, safe="") for part in (group, "instances", instance.key.name))
    reply = {
        "instance_id": instance.key.name,
        "base_uri": f"{scheme}://{call.request.headers.get('host', '')}/consumers/{path}",
    }
    return json_reply(reply, call.reply_type)


async def delete(call: Call, services: Services) -> Response:
    """DELETE /consumers/{group}/instances/{instance}"""
    await services.consumers.delete(call.names.text("group"), call.names.text("instance"))
    return NO_CONTENT


async def subscribe(call: Call, services: Services) -> Response:
    """POST …/subscription"""
    wanted = await call.json(services, consumer_requests.subscription)
    pattern = None if wanted.pattern is None else compile_pattern(wanted.pattern)
    async with _consumer(call, services) as consumer:
        consumer.subscribe(wanted.topics, pattern=pattern)
    return NO_CONTENT


async def subscription(call: Call, services: Services) -> Response:
    """GET …/subscription"""
    async with _consumer(call, services) as consumer:
        return json_reply({"topics": sorted(consumer.subscription())}, call.reply_type)


async def unsubscribe(call: Call, services: Services) -> Response:
    """DELETE …/subscription"""
    async with _consumer(call, services) as consumer:
        await consumer.unsubscribe()
    return NO_CONTENT


async def assign(call: Call, services: Services) -> Response:
    """POST …/assignments"""
    partitions = await call.json(services, consumer_requests.partitions)
    async with _consumer(call, services) as consumer:
        consumer.assign(partitions)
    return NO_CONTENT


async def assignment(call: Call, services: Services) -> Response:
    """GET …/assignments"""
    async with _consumer(call, services) as consumer:
        rows = [
            {"topic": tp.topic, "partition": tp.partition} for tp in sorted(consumer.assignment())
        ]
    return json_reply({"partitions": rows}, call.reply_type)


async def read(call: Call, services: Services) -> Response:
    """GET …/records"""
    limits = services.limits
    most = consumer_requests.Read(
        limits.request_timeout_ms // 2, limits.max_response_bytes, limits.max_records, 0
    )
    with services.consumers.use(*_names(call)) as instance:
        chosen = consumer_requests.read(call.request.query, instance.settings, most)
        content_type = records_type(call.accept, instance.settings.format)
        return Response(200, await instance.read(chosen), content_type)


async def commit(call: Call, services: Services) -> Response:
    """POST …/offsets: these, or without a body all that was read"""
    offsets = await call.json_if_any(services, consumer_requests.handled_offsets)
    async with _consumer(call, services) as consumer:
        await consumer.commit(offsets)
    return json_reply([], call.reply_type)


async def list_committed(call: Call, services: Services) -> Response:
    """GET …/offsets: of these partitions, or without a body of those that are assigned"""
    partitions = await call.json_if_any(services, consumer_requests.partitions)
    async with _consumer(call, services) as consumer:
        if partitions is None:
            partitions = sorted(consumer.assignment())
        offsets = await consumer.committed(partitions)
    rows = [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "offset": entry.offset,
            "metadata": entry.metadata,
        }
        for tp, entry in offsets.items()
    ]
    return json_reply({"offsets": rows}, call.reply_type)


async def seek(call: Call, services: Services) -> Response:
    """POST …/positions"""
    offsets, times = await call.json(services, consumer_requests.positions)
    async with _consumer(call, services) as consumer:
        require_assigned(consumer, [*offsets, *times])
        for tp, offset in offsets.items():
            consumer.seek(tp, offset)
        for tp, time_ms in times.items():
            consumer.seek_to_time(time_ms, tp)
    return NO_CONTENT


async def seek_to_beginning(call: Call, services: Services) -> Response:
    """POST …/positions/beginning"""
    return await _seek_to_bound(call, services, Consumer.seek_to_beginning)


async def seek_to_end(call: Call, services: Services) -> Response:
    """POST …/positions/end"""
    return await _seek_to_bound(call, services, Consumer.seek_to_end)


async def _seek_to_bound(
    call: Call, services: Services, seek_to_bound: Callable[..., None]
) -> Response:
    partitions = await call.json(services, consumer_requests.partitions)
    async with _consumer(call, services) as consumer:
        require_assigned(consumer, partitions)
        if partitions:  # of none: all that are assigned, which nobody asked for
            seek_to_bound(consumer, *partitions)
    return NO_CONTENT


def require_assigned(consumer: Consumer, partitions: Iterable[TopicPartition]) -> None:
    """Only partitions that the instance reads have a position."""
    for tp in partitions:
        if tp not in consumer.assignment():
            raise HttpError(
                ILLEGAL_STATE,
                f"{tp} is not assigned to this consumer instance: assign it, or subscribe and read "
                "once, so that the group assigns partitions",
            )


def compile_pattern(pattern: str) -> re2.Pattern:
    """A pattern for whole names of topics. RE2 takes linear time: no pattern can block others."""
    import re2  # takes a while to load, and few clients have patterns

    options = re2.Options()
    options.log_errors = False
    options.max_mem = PATTERN_BYTES
    try:
        return re2.compile(rf"\A(?:{pattern})\z", options)
    except re2.error as error:
        reason = error.args[0]
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise invalid("topic_pattern", f"a regular expression: {text}") from None


def _names(call: Call) -> tuple[str, str]:
    return call.names.text("group"), call.names.text("instance")


@asynccontextmanager
async def _consumer(call: Call, services: Services) -> AsyncIterator[Consumer]:
    with services.consumers.use(*_names(call)) as instance:
        async with instance.use() as consumer:
            yield consumer
