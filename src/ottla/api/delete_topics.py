"""DeleteTopics (20): deletes topics, by name or by id; answered once they are deleted.

A peer that may not describe a topic learns neither that it exists nor its name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from ottla.api.api import NOT_HOSTED, Api, Context, Fields, Request
from ottla.api.throttling import MutationQuota
from ottla.delay.slices import Slices, let_go
from ottla.metadata.image import Image
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_TOPIC_ID, TopicId
from ottla.protocol import wire
from ottla.security.acl import CLUSTER_NAME, Kind, Operation

KEY: Final = 20
FIRST_STRICT: Final = 5
"""From this version on clients know THROTTLING_QUOTA_EXCEEDED."""
FIRST_WITH_OWN_CODE: Final = 3
"""Earlier versions do not have TOPIC_DELETION_DISABLED."""
FIRST_BY_ID: Final = 6
"""Before it, topics are named in another field."""


class Named(NamedTuple):
    """A topic by name or by id."""

    name: str | None
    id: TopicId


async def delete_topics(request: Request, ctx: Context) -> Fields:
    if not ctx.services.config.current.delete_topic_enable:
        has_own_code = ctx.call.version >= FIRST_WITH_OWN_CODE
        raise KafkaError(
            ErrorCode.topic_deletion_disabled if has_own_code else ErrorCode.invalid_request,
            "Topic deletion is disabled.",
        )
    slices = Slices()
    times: Counter[Named] = Counter()
    async for reference in slices.of(_requested_topics(request)):
        times[reference] += 1
    image = ctx.services.metadata.image
    deletes_any = ctx.allows(Operation.DELETE, Kind.CLUSTER, CLUSTER_NAME, noted=False)
    outcomes: dict[Named, str | Fields] = {}
    quota = MutationQuota(ctx, FIRST_STRICT)
    async for reference in slices.of(times):
        try:
            if times[reference] > 1:
                what = "id" if reference.name is None else "name"
                raise KafkaError(ErrorCode.invalid_request, f"Duplicate topic {what}.")
            name = _resolve(reference, image)
        except KafkaError as refusal:
            outcomes[reference] = _response(
                reference.name, reference.id, refusal.code, refusal.message
            )
            continue
        refused = None if deletes_any else _refused(reference, name, image, ctx)
        if refused is None and name in image.topics:
            try:
                quota.take(len(image.topics[name].partitions))
            except KafkaError as refusal:
                refused = _response(name, reference.id, refusal.code, refusal.message)
        outcomes[reference] = name if refused is None else refused
    names = {name: None async for name in slices.of(outcomes.values()) if isinstance(name, str)}
    codes = await ctx.services.controller.delete_topics(names, wire.ms(request.timeout))
    responses = [
        _result(reference, outcome, codes, image)
        async for reference, outcome in slices.of(outcomes.items())
    ]
    await let_go(times)
    await let_go(outcomes)
    await let_go(codes)
    return {"throttle_time": quota.delay_ms, "responses": responses}


def _requested_topics(request: Request) -> Iterator[Named]:
    if request.__version__ < FIRST_BY_ID:
        return (Named(name, NO_TOPIC_ID) for name in request.topic_names)
    return (Named(topic.name, topic.topic_id or NO_TOPIC_ID) for topic in request.topics)


def _resolve(reference: Named, image: Image) -> str:
    if reference.name is not None and reference.id != NO_TOPIC_ID:
        raise KafkaError(
            ErrorCode.invalid_request, "You may not specify both topic name and topic id."
        )
    if reference.name is not None:
        return reference.name
    if reference.id == NO_TOPIC_ID:
        raise KafkaError(ErrorCode.invalid_request, "Neither topic name nor id were specified.")
    name = image.names.get(reference.id)
    if name is None:
        raise KafkaError(ErrorCode.unknown_topic_id, "This server does not host this topic ID.")
    return name


def _refused(named: Named, name: str, image: Image, ctx: Context) -> Fields | None:
    """The response if the peer may not delete the topic."""
    describes = ctx.allows(Operation.DESCRIBE, Kind.TOPIC, name, noted=False)
    deletes = ctx.allows(Operation.DELETE, Kind.TOPIC, name)
    code = ErrorCode.topic_authorization_failed
    if named.name is None:
        return None if deletes else _response(name if describes else None, named.id, code, None)
    if describes and deletes:
        return None
    if describes and name not in image.topics:
        code = ErrorCode.unknown_topic_or_partition
    return _response(name, NO_TOPIC_ID, code, None)


def _result(
    named: Named, outcome: str | Fields, codes: dict[str, ErrorCode], image: Image
) -> Fields:
    if not isinstance(outcome, str):
        return outcome
    topic = image.topics.get(outcome)
    code = codes[outcome]
    message = NOT_HOSTED if code is ErrorCode.unknown_topic_or_partition else None
    return _response(outcome, named.id if topic is None else topic.id, code, message)


def _response(name: str | None, id: TopicId, code: ErrorCode, message: str | None) -> Fields:
    return {"name": name, "topic_id": id, "error_code": code, "error_message": message}


def refuse(request: Request, code: ErrorCode, message: str | None) -> Fields:
    requested = dict.fromkeys(_requested_topics(request))
    responses = [_response(named.name, named.id, code, message) for named in requested]
    return {"throttle_time": 0, "responses": responses}


API = Api(KEY, "DeleteTopics", range(1, 7), delete_topics, refuse, needs_controller=True)
