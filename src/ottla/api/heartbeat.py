"""Heartbeat (12): keeps a member's session alive; the reply tells whether the group rebalances."""

from __future__ import annotations

from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.authorise import on_group
from ottla.coordinator.group.classic.heartbeat import MemberIdentity
from ottla.model.errors import ErrorCode
from ottla.security.acl import Operation

KEY: Final = 12


async def heartbeat(request: Request, ctx: Context) -> Fields:
    identity = MemberIdentity(request.member_id, request.group_instance_id)
    code = await ctx.services.groups.heartbeat(request.group_id, identity, request.generation_id)
    return {"throttle_time": 0, "error_code": code}


def refuse(_: Request, code: ErrorCode, __: str | None) -> Fields:
    return {"throttle_time": 0, "error_code": code}


API = Api(KEY, "Heartbeat", range(0, 5), heartbeat, refuse, needs=on_group(Operation.READ))
