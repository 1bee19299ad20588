"""OffsetCommit (8): commits offsets of a group.

Topics are named up to version 9 and have ids from version 10 on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.authorise import on_group
from ottla.coordinator.group.offset_commit import CommitRequest, OffsetToCommit
from ottla.delay.slices import Slices, sliced
from ottla.metadata.image import Image
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_TOPIC_ID, TopicPartition
from ottla.protocol import wire
from ottla.protocol.schema import KioStruct
from ottla.security.acl import Kind, Operation

KEY: Final = 8
FIRST_WITH_MEMBER_EPOCHS: Final = 9
"""From this version on, a group that does not exist has an error code of its own, too."""
FIRST_WITH_TOPIC_IDS: Final = 10
FIRST_WITHOUT_RETENTION: Final = 5
BATCH: Final = 100
"""Offsets committed at a time; each batch is checked against the group as it is then."""


async def offset_commit(request: Request, ctx: Context) -> Fields:
    by_id = ctx.call.version >= FIRST_WITH_TOPIC_IDS
    image = ctx.services.metadata.image
    codes: dict[tuple[int, int], ErrorCode] = {}
    places: list[tuple[int, int]] = []
    offsets: list[OffsetToCommit] = []
    slices = Slices()
    async for topic_index, topic in slices.of(enumerate(request.topics)):
        name = _name(image, topic, by_id=by_id)
        allowed = name is None or ctx.allows(Operation.READ, Kind.TOPIC, name)
        async for index, partition in slices.of(enumerate(topic.partitions)):
            code = ErrorCode.topic_authorization_failed
            if allowed:
                code = _unknown(image, name, partition.partition_index)
            codes[topic_index, index] = code
            if name is not None and code is ErrorCode.none:
                places.append((topic_index, index))
                offsets.append(_offset(name, partition))
    for part, part_places in zip(sliced(offsets, BATCH), sliced(places, BATCH), strict=True):
        stored = await ctx.services.groups.commit(_commit_request(request, ctx, part))
        codes.update(zip(part_places, stored, strict=True))
        await slices.took(len(part))
    topics = [
        _topic(topic, [
            _partition(partition, codes[topic_index, index])
            async for index, partition in slices.of(enumerate(topic.partitions))
        ])
        async for topic_index, topic in slices.of(enumerate(request.topics))
    ]  # fmt: skip
    return _reply(topics)


def _commit_request(
    request: Request, ctx: Context, offsets: Sequence[OffsetToCommit]
) -> CommitRequest:
    version = ctx.call.version
    knows = version >= FIRST_WITH_MEMBER_EPOCHS
    return CommitRequest(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id_or_member_epoch,
        offsets,
        retention_ms=_retention_ms(request) if version < FIRST_WITHOUT_RETENTION else -1,
        unknown_group=ErrorCode.group_id_not_found if knows else ErrorCode.illegal_generation,
        knows_epochs=knows,
    )


def _retention_ms(request: Request) -> int:
    return wire.ms(request.retention_time or -1)


def _name(image: Image, topic: KioStruct, *, by_id: bool) -> str | None:
    if not by_id:
        return str(topic.name)
    return image.names.get(topic.topic_id or NO_TOPIC_ID)


def _unknown(image: Image, name: str | None, partition: int) -> ErrorCode:
    if name is None:
        return ErrorCode.unknown_topic_id
    metadata = image.partition(TopicPartition(name, partition))
    return ErrorCode.unknown_topic_or_partition if metadata is None else ErrorCode.none


def _offset(topic: str, partition: KioStruct) -> OffsetToCommit:
    return OffsetToCommit(
        topic,
        partition.partition_index,
        partition.committed_offset,
        partition.committed_leader_epoch,
        partition.committed_metadata or "",
    )


def _reply(topics: list[Fields]) -> Fields:
    return {"throttle_time": 0, "topics": topics}


def _topic(topic: KioStruct, partitions: list[Fields]) -> Fields:
    return {"name": topic.name, "topic_id": topic.topic_id, "partitions": partitions}


def _partition(partition: KioStruct, code: ErrorCode) -> Fields:
    return {"partition_index": partition.partition_index, "error_code": code}


def refuse(request: Request, code: ErrorCode, _: str | None) -> Fields:
    return _reply(
        [
            _topic(topic, [_partition(partition, code) for partition in topic.partitions])
            for topic in request.topics
        ]
    )


API = Api(KEY, "OffsetCommit", range(2, 11), offset_commit, refuse, needs=on_group(Operation.READ))
