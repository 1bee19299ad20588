"""OffsetFetch (9): the committed offsets of one group, from version 8 on of several.

Topics go by name up to version 9 and by id from version 10 on. What was committed for topics that
who asks may not describe is refused where it is named, and otherwise left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.coordinator.group.records import Committed
from ottla.coordinator.group.service import Fetcher, Found
from ottla.delay.slices import Slices, in_slices, sliced
from ottla.metadata.image import Image
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_TOPIC_ID
from ottla.security.acl import Kind, Operation

KEY: Final = 9
FIRST_WITH_GROUP_ERROR: Final = 2
FIRST_WITH_BATCHES: Final = 8
FIRST_WITH_TOPIC_IDS: Final = 10
NO_OFFSET: Final = Committed(-1)
DESCRIBE: Final = Operation.DESCRIBE


async def offset_fetch(request: Request, ctx: Context) -> Fields:
    if ctx.call.version < FIRST_WITH_BATCHES:
        return {"throttle_time": 0, **await _group(request, request, ctx)}
    groups = [await _group(asked, request, ctx) async for asked in in_slices(request.groups)]
    return {"throttle_time": 0, "groups": groups}


async def _group(asked: Any, request: Request, ctx: Context) -> Fields:
    image = ctx.services.metadata.image
    by_id = ctx.call.version >= FIRST_WITH_TOPIC_IDS
    slices = Slices()
    try:
        ctx.require(DESCRIBE, Kind.GROUP, asked.group_id)
        names = None if asked.topics is None else await _names(asked.topics, ctx, slices)
        found = await _found(asked, names, request, ctx)
    except KafkaError as refusal:
        return _refused(asked, refusal.code, ctx)
    if asked.topics is None:
        topics = [
            await _topic(image, name, offsets, slices)
            async for name, offsets in slices.of(found.items())
            if ctx.allows(DESCRIBE, Kind.TOPIC, name, noted=False)
        ]
        if by_id:
            topics = [topic for topic in topics if topic["topic_id"] != NO_TOPIC_ID]
    else:
        topics = [
            await _asked(image, topic, found, slices, by_id=by_id)
            async for topic in slices.of(asked.topics)
        ]
    return {"group_id": asked.group_id, "topics": topics, "error_code": ErrorCode.none}


def _who(asked: Any) -> Fetcher:
    """Members of consumer groups say who they are, from version 9 on."""
    return Fetcher(getattr(asked, "member_id", None), getattr(asked, "member_epoch", -1))


async def _found(
    asked: Any, names: dict[str, list[int]] | None, request: Request, ctx: Context
) -> Found:
    """What was committed; for many partitions in slices, each of which is true when it is read."""
    stable, who = request.require_stable, _who(asked)
    fetch = ctx.services.groups.fetch
    if names is None:
        return await fetch(asked.group_id, None, stable=stable, who=who)
    found: Found = {name: {} for name in names}
    pairs = [(name, index) for name, indexes in names.items() for index in indexes]
    for some in sliced(pairs) or [()]:
        wanted: dict[str, list[int]] = {}
        for name, index in some:
            wanted.setdefault(name, []).append(index)
        for name, offsets in (await fetch(asked.group_id, wanted, stable=stable, who=who)).items():
            found[name].update(offsets)
        if len(pairs) > len(some):
            await asyncio.sleep(0)
    return found


async def _names(topics: Any, ctx: Context, slices: Slices) -> dict[str, list[int]]:
    """Those that are known and may be described."""
    image = ctx.services.metadata.image
    by_id = ctx.call.version >= FIRST_WITH_TOPIC_IDS
    names: dict[str, list[int]] = {}
    async for topic in slices.of(topics):
        name = image.names.get(topic.topic_id) if by_id else topic.name
        if name is not None and ctx.allows(DESCRIBE, Kind.TOPIC, name):
            names.setdefault(name, []).extend(topic.partition_indexes)
    return names


async def _asked(image: Image, topic: Any, found: Found, slices: Slices, *, by_id: bool) -> Fields:
    name = image.names.get(topic.topic_id) if by_id else topic.name
    if name not in found:
        code = ErrorCode.topic_authorization_failed
        if name is None:
            code = ErrorCode.unknown_topic_id
        partitions = _partitions(dict.fromkeys(topic.partition_indexes, code))
        return {"name": name, "topic_id": topic.topic_id, "partitions": partitions}
    offsets = {index: found[name][index] for index in topic.partition_indexes}
    return await _topic(image, name, offsets, slices)


async def _topic(
    image: Image,
    name: str,
    offsets: Mapping[int, Committed | ErrorCode | None],
    slices: Slices,
) -> Fields:
    known = image.topics.get(name)
    return {
        "name": name,
        "topic_id": NO_TOPIC_ID if known is None else known.id,
        "partitions": [_partition(*one) async for one in slices.of(offsets.items())],
    }


def _partitions(offsets: Mapping[int, Committed | ErrorCode | None]) -> list[Fields]:
    return [_partition(index, offset) for index, offset in offsets.items()]


def _partition(index: int, found: Committed | ErrorCode | None) -> Fields:
    offset = found if isinstance(found, Committed) else NO_OFFSET
    return {
        "partition_index": index,
        "committed_offset": offset.offset,
        "committed_leader_epoch": offset.leader_epoch,
        "metadata": offset.metadata,
        "error_code": found if isinstance(found, ErrorCode) else ErrorCode.none,
    }


def _refused(asked: Any, code: ErrorCode, ctx: Context) -> Fields:
    """As a whole; in the oldest versions, which cannot say that, partition by partition."""
    topics = []
    if ctx.call.version < FIRST_WITH_GROUP_ERROR:
        topics = [
            {
                "name": topic.name,
                "partitions": _partitions(dict.fromkeys(topic.partition_indexes, code)),
            }
            for topic in asked.topics or ()
        ]
    return {"group_id": asked.group_id, "topics": topics, "error_code": code}


def refuse(request: Request, code: ErrorCode, _: str | None) -> Fields:
    groups = getattr(request, "groups", None) or ()
    return {
        "throttle_time": 0,
        "topics": [],
        "error_code": code,
        "groups": [
            {"group_id": asked.group_id, "topics": [], "error_code": code} for asked in groups
        ],
    }


API = Api(KEY, "OffsetFetch", range(1, 11), offset_fetch, refuse)
