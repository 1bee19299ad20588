"""CreatePartitions (37): more partitions for topics that exist."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.throttling import MutationQuota
from ottla.controller.events import MorePartitions
from ottla.delay.slices import Slices
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import BrokerId
from ottla.protocol import wire
from ottla.protocol.schema import KioStruct
from ottla.security.acl import Kind, Operation

KEY: Final = 37
FIRST_STRICT: Final = 3
"""From this version on clients know THROTTLING_QUOTA_EXCEEDED."""


async def create_partitions(request: Request, ctx: Context) -> Fields:
    slices = Slices()
    times: Counter[str] = Counter()
    async for topic in slices.of(request.topics):
        times[topic.name] += 1
    refusals: dict[str, KafkaError | None] = {}
    async for name in slices.of(times):
        if times[name] > 1:
            refusals[name] = KafkaError(ErrorCode.invalid_request, "Duplicate topic name.")
        elif not ctx.allows(Operation.ALTER, Kind.TOPIC, name):
            refusals[name] = KafkaError(ErrorCode.topic_authorization_failed)
    quota = MutationQuota(ctx, FIRST_STRICT)
    topics = ctx.services.metadata.image.topics
    added: dict[str, int] = {}
    async for topic in slices.of(request.topics):
        if topic.name not in refusals and topic.name in topics:
            try:
                count = max(topic.count - len(topics[topic.name].partitions), 0)
                quota.take(count)
                added[topic.name] = count
            except KafkaError as refusal:
                refusals[topic.name] = refusal
    more = [_more(topic) async for topic in slices.of(request.topics) if topic.name not in refusals]
    refusals |= await ctx.services.controller.create_partitions(
        more, wire.ms(request.timeout), validate_only=request.validate_only
    )
    for name, count in added.items():
        if refusals[name] is not None:
            quota.give_back(count)
    results = _fields([_result(name, refusals[name]) async for name in slices.of(times)])
    return {**results, "throttle_time": quota.delay_ms}


def _more(topic: KioStruct) -> MorePartitions:
    if topic.assignments is None:
        return MorePartitions(topic.name, topic.count)
    assignment = tuple(tuple(map(BrokerId, item.broker_ids)) for item in topic.assignments)
    return MorePartitions(topic.name, topic.count, assignment)


def _result(name: str, refusal: KafkaError | None) -> Fields:
    if refusal is None:
        return {"name": name, "error_code": ErrorCode.none, "error_message": None}
    return {"name": name, "error_code": refusal.code, "error_message": refusal.message}


def _fields(results: Iterable[Fields]) -> Fields:
    return {"throttle_time": 0, "results": list(results)}


def refuse(request: Request, code: ErrorCode, message: str | None) -> Fields:
    names = dict.fromkeys(topic.name for topic in request.topics)
    return _fields(_result(name, KafkaError(code, message)) for name in names)


API = Api(KEY, "CreatePartitions", range(0, 4), create_partitions, refuse, needs_controller=True)
