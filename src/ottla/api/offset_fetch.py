"""OffsetFetch (9): the committed offsets of one group, from version 8 on of several.

Topics are named up to version 9 and have ids from version 10 on. Offsets of topics that the peer
may not describe get an error if the request names the topic, and are omitted otherwise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import islice
from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.coordinator.group.records import Committed
from ottla.coordinator.group.service import NOBODY, FetchedOffsets, Fetcher
from ottla.delay.slices import SLICE, Slices, in_slices
from ottla.metadata.image import Image
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_TOPIC_ID
from ottla.protocol.schema import KioStruct
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
    groups = [await _group(group, request, ctx) async for group in in_slices(request.groups)]
    return {"throttle_time": 0, "groups": groups}


async def _group(group: KioStruct, request: Request, ctx: Context) -> Fields:
    image = ctx.services.metadata.image
    by_id = ctx.call.version >= FIRST_WITH_TOPIC_IDS
    slices = Slices()
    try:
        ctx.require(DESCRIBE, Kind.GROUP, group.group_id)
        names = None if group.topics is None else await _names(group.topics, ctx, slices)
        offsets_by_topic = await _fetch_offsets(group, names, request, ctx)
    except KafkaError as refusal:
        return _refusal_fields(group, refusal.code, ctx)
    if group.topics is None:
        topics = [
            await _topic(image, name, offsets, slices)
            async for name, offsets in slices.of(offsets_by_topic.items())
            if ctx.allows(DESCRIBE, Kind.TOPIC, name, noted=False)
        ]
        if by_id:
            topics = [topic for topic in topics if topic["topic_id"] != NO_TOPIC_ID]
    else:
        topics = [
            await _requested_topic(image, topic, offsets_by_topic, slices, by_id=by_id)
            async for topic in slices.of(group.topics)
        ]
    return {"group_id": group.group_id, "topics": topics, "error_code": ErrorCode.none}


def _fetcher(group: KioStruct, ctx: Context) -> Fetcher:
    """From version 9 on, members of consumer groups send their member id and epoch."""
    if ctx.call.version < FIRST_WITH_BATCHES:
        return NOBODY
    return Fetcher(group.member_id, group.member_epoch)


async def _fetch_offsets(
    group: KioStruct, names: dict[str, list[int]] | None, request: Request, ctx: Context
) -> FetchedOffsets:
    """The committed offsets; many partitions are read in slices, each consistent in itself."""
    stable, fetcher = request.require_stable, _fetcher(group, ctx)
    fetch = ctx.services.groups.fetch
    if names is None:
        return await fetch(group.group_id, None, stable=stable, fetcher=fetcher)
    fetched: FetchedOffsets = {name: {} for name in names}
    pairs = ((name, index) for name, indexes in names.items() for index in indexes)
    part = list(islice(pairs, SLICE))
    while True:
        partitions: dict[str, list[int]] = {}
        for name, index in part:
            partitions.setdefault(name, []).append(index)
        for name, offsets in (
            await fetch(group.group_id, partitions, stable=stable, fetcher=fetcher)
        ).items():
            fetched[name].update(offsets)
        if not (part := list(islice(pairs, SLICE))):
            return fetched
        await asyncio.sleep(0)


async def _names(topics: KioStruct, ctx: Context, slices: Slices) -> dict[str, list[int]]:
    """The requested topics that exist and that the peer may describe."""
    image = ctx.services.metadata.image
    by_id = ctx.call.version >= FIRST_WITH_TOPIC_IDS
    names: dict[str, list[int]] = {}
    async for topic in slices.of(topics):
        name = image.names.get(topic.topic_id) if by_id else topic.name
        if name is not None and ctx.allows(DESCRIBE, Kind.TOPIC, name):
            names.setdefault(name, []).extend(topic.partition_indexes)
    return names


async def _requested_topic(
    image: Image, topic: KioStruct, fetched: FetchedOffsets, slices: Slices, *, by_id: bool
) -> Fields:
    name = image.names.get(topic.topic_id) if by_id else topic.name
    if name not in fetched:
        code = ErrorCode.topic_authorization_failed
        if name is None:
            code = ErrorCode.unknown_topic_id
        codes = {index: code async for index in slices.of(topic.partition_indexes)}
        partitions = [_partition(*item) async for item in slices.of(codes.items())]
        return {"name": name, "topic_id": topic.topic_id, "partitions": partitions}
    of_topic = fetched[name]
    offsets = {index: of_topic[index] async for index in slices.of(topic.partition_indexes)}
    return await _topic(image, name, offsets, slices)


async def _topic(
    image: Image,
    name: str,
    offsets: Mapping[int, Committed | ErrorCode | None],
    slices: Slices,
) -> Fields:
    metadata = image.topics.get(name)
    return {
        "name": name,
        "topic_id": NO_TOPIC_ID if metadata is None else metadata.id,
        "partitions": [_partition(*item) async for item in slices.of(offsets.items())],
    }


def _partitions(offsets: Mapping[int, Committed | ErrorCode | None]) -> list[Fields]:
    return [_partition(index, offset) for index, offset in offsets.items()]


def _partition(index: int, result: Committed | ErrorCode | None) -> Fields:
    offset = result if isinstance(result, Committed) else NO_OFFSET
    return {
        "partition_index": index,
        "committed_offset": offset.offset,
        "committed_leader_epoch": offset.leader_epoch,
        "metadata": offset.metadata,
        "error_code": result if isinstance(result, ErrorCode) else ErrorCode.none,
    }


def _refusal_fields(group: KioStruct, code: ErrorCode, ctx: Context) -> Fields:
    """One error for the group; in versions without that, one error for each partition."""
    topics = []
    if ctx.call.version < FIRST_WITH_GROUP_ERROR:
        topics = [
            {
                "name": topic.name,
                "partitions": _partitions(dict.fromkeys(topic.partition_indexes, code)),
            }
            for topic in group.topics or ()
        ]
    return {"group_id": group.group_id, "topics": topics, "error_code": code}


def refuse(request: Request, code: ErrorCode, _: str | None) -> Fields:
    groups = request.groups or ()
    return {
        "throttle_time": 0,
        "topics": [],
        "error_code": code,
        "groups": [
            {"group_id": group.group_id, "topics": [], "error_code": code} for group in groups
        ],
    }


API = Api(KEY, "OffsetFetch", range(1, 11), offset_fetch, refuse)
