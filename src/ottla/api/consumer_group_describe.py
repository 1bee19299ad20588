"""ConsumerGroupDescribe (69): groups of the consumer protocol, their members and assignments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ottla.api import operations
from ottla.api.api import Api, Context, Fields, Request
from ottla.coordinator.group.consumer.service import MemberView
from ottla.coordinator.group.consumer.topic_partitions import Parts, by_topic
from ottla.delay.slices import in_slices
from ottla.metadata.image import Image
from ottla.model.errors import ErrorCode, KafkaError
from ottla.security.acl import Kind, Operation

KEY: Final = 69
CLASSIC_MEMBER: Final = 0
CONSUMER_MEMBER: Final = 1


async def consumer_group_describe(request: Request, ctx: Context) -> Fields:
    groups = [
        await _describe_if_allowed(group_id, request, ctx)
        async for group_id in in_slices(request.group_ids)
    ]
    return {"throttle_time": 0, "groups": groups}


async def _describe_if_allowed(group_id: str, request: Request, ctx: Context) -> Fields:
    if not ctx.allows(Operation.DESCRIBE, Kind.GROUP, group_id):
        return _refusal_fields(group_id, ErrorCode.group_authorization_failed, None)
    described = await _describe(group_id, ctx)
    if not request.include_authorized_operations or described["error_code"]:
        return described
    return {**described, "authorized_operations": operations.on_group(ctx, group_id)}


async def _describe(group_id: str, ctx: Context) -> Fields:
    try:
        group = await ctx.services.groups.consumer.describe(group_id)
    except KafkaError as refusal:
        return _refusal_fields(group_id, refusal.code, refusal.message)
    image = ctx.services.metadata.image
    if not _may_see(group.members, image, ctx):
        code = ErrorCode.topic_authorization_failed
        return _refusal_fields(
            group_id, code, f"Group {group_id} reads topics that you are not allowed to describe."
        )
    return {
        "error_code": ErrorCode.none,
        "error_message": None,
        "group_id": group_id,
        "group_state": group.state,
        "group_epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "assignor_name": group.assignor,
        "members": [_member(member, image) for member in group.members],
        "authorized_operations": operations.NOT_ASKED,
    }


def _may_see(members: Iterable[MemberView], image: Image, ctx: Context) -> bool:
    """Whether the peer may describe every topic in the members' current and target assignments."""
    if not ctx.services.authorizer.in_force:
        return True
    parts = {part for member, target in members for part in member.standing.assigned | target}
    names = {image.names[topic_id] for topic_id in by_topic(parts) if topic_id in image.names}
    return all(ctx.allows(Operation.DESCRIBE, Kind.TOPIC, name) for name in names)


def _member(view: MemberView, image: Image) -> Fields:
    member, target = view
    profile = member.profile
    return {
        "member_id": member.id,
        "instance_id": profile.instance_id,
        "rack_id": profile.rack_id,
        "member_epoch": member.epoch,
        "client_id": profile.client_id,
        "client_host": profile.client_host,
        "subscribed_topic_names": list(profile.topics),
        "subscribed_topic_regex": profile.pattern or "",
        "assignment": _assignment(member.standing.assigned, image),
        "target_assignment": _assignment(target, image),
        "member_type": CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    }


def _assignment(parts: Parts, image: Image) -> Fields:
    """Without topics that no longer exist."""
    return {
        "topic_partitions": [
            {"topic_id": topic_id, "topic_name": image.names[topic_id], "partitions": partitions}
            for topic_id, partitions in by_topic(parts).items()
            if topic_id in image.names
        ]
    }


def _refusal_fields(group_id: str, code: ErrorCode, message: str | None) -> Fields:
    return {
        "error_code": code,
        "error_message": message,
        "group_id": group_id,
        "group_state": "",
        "group_epoch": 0,
        "assignment_epoch": 0,
        "assignor_name": "",
        "members": [],
        "authorized_operations": operations.NOT_ASKED,
    }


def refuse(request: Request, code: ErrorCode, message: str | None) -> Fields:
    groups = [_refusal_fields(group_id, code, message) for group_id in request.group_ids]
    return {"throttle_time": 0, "groups": groups}


API = Api(KEY, "ConsumerGroupDescribe", range(0, 2), consumer_group_describe, refuse)
