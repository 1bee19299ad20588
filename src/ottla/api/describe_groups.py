"""DescribeGroups (15): the state of groups and their members.

A group that does not exist is shown as dead, from version 6 on as not found.
"""

from __future__ import annotations

from typing import Final

from ottla.api import operations
from ottla.api.api import Api, Context, Fields, Request
from ottla.coordinator.group.classic.member import GroupPhase
from ottla.coordinator.group.descriptions import GroupSummary
from ottla.delay.slices import in_slices
from ottla.model.errors import ErrorCode, KafkaError
from ottla.security.acl import Kind, Operation

KEY: Final = 15
FIRST_WITH_NOT_FOUND: Final = 6


async def describe_groups(request: Request, ctx: Context) -> Fields:
    groups = [
        await _describe_if_allowed(group_id, request, ctx)
        async for group_id in in_slices(request.groups)
    ]
    return {"throttle_time": 0, "groups": groups}


async def _describe_if_allowed(group_id: str, request: Request, ctx: Context) -> Fields:
    if not ctx.allows(Operation.DESCRIBE, Kind.GROUP, group_id):
        return _fields(GroupSummary(group_id, ""), ErrorCode.group_authorization_failed)
    described = await _describe(group_id, ctx)
    if not request.include_authorized_operations or described["error_code"]:
        return described
    return {**described, "authorized_operations": operations.on_group(ctx, group_id)}


async def _describe(group_id: str, ctx: Context) -> Fields:
    try:
        summary = await ctx.services.groups.describe(group_id)
    except KafkaError as refusal:
        return _fields(GroupSummary(group_id, ""), refusal.code, refusal.message)
    if summary is not None:
        return _fields(summary)
    dead = GroupSummary(group_id, GroupPhase.DEAD.value)
    if ctx.call.version < FIRST_WITH_NOT_FOUND:
        return _fields(dead)
    return _fields(dead, ErrorCode.group_id_not_found, f"Group {group_id} not found.")


def _fields(
    group: GroupSummary, code: ErrorCode = ErrorCode.none, message: str | None = None
) -> Fields:
    return {
        "error_code": code,
        "error_message": message,
        "group_id": group.group_id,
        "group_state": group.state,
        "protocol_type": group.protocol_type,
        "protocol_data": group.protocol,
        "members": [
            {
                "member_id": member.member_id,
                "group_instance_id": member.instance_id,
                "client_id": member.client_id,
                "client_host": member.client_host,
                "member_metadata": member.metadata,
                "member_assignment": member.assignment,
            }
            for member in group.members
        ],
        "authorized_operations": operations.NOT_ASKED,
    }


def refuse(request: Request, code: ErrorCode, message: str | None) -> Fields:
    return {
        "throttle_time": 0,
        "groups": [
            _fields(GroupSummary(group_id, ""), code, message) for group_id in request.groups
        ],
    }


API = Api(KEY, "DescribeGroups", range(0, 7), describe_groups, refuse)
