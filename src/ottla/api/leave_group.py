"""LeaveGroup (13): removes one member at its own request, or several for an administrator."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.authorise import on_group
from ottla.coordinator.group.classic.heartbeat import MemberIdentity
from ottla.delay.slices import in_slices, sliced
from ottla.model.errors import ErrorCode, KafkaError
from ottla.security.acl import Operation

KEY: Final = 13
FIRST_WITH_BATCHES: Final = 3


async def leave_group(request: Request, ctx: Context) -> Fields:
    if ctx.call.version < FIRST_WITH_BATCHES:
        [code] = await ctx.services.groups.leave(
            request.group_id, [MemberIdentity(request.member_id)]
        )
        return {"throttle_time": 0, "error_code": code}
    leavers = [
        MemberIdentity(member.member_id, member.group_instance_id)
        async for member in in_slices(request.members)
    ]
    codes: list[ErrorCode] = []
    for part in sliced(leavers) or [()]:
        try:
            codes += await ctx.services.groups.leave(request.group_id, part)
        except KafkaError as refusal:
            if refusal.code is not ErrorCode.unknown_member_id:
                raise
            codes += [refusal.code] * len(part)  # there is no such group
        if len(leavers) > len(part):
            await asyncio.sleep(0)
    results = [_member(*item) async for item in in_slices(zip(leavers, codes, strict=True))]
    return _fields(ErrorCode.none, results)


def _fields(code: ErrorCode, members: Sequence[Fields]) -> Fields:
    return {"throttle_time": 0, "error_code": code, "members": members}


def _member(leaver: MemberIdentity, code: ErrorCode) -> Fields:
    return {
        "member_id": leaver.member_id,
        "group_instance_id": leaver.instance_id,
        "error_code": code,
    }


def refuse(_: Request, code: ErrorCode, __: str | None) -> Fields:
    return _fields(code, [])


API = Api(KEY, "LeaveGroup", range(0, 6), leave_group, refuse, needs=on_group(Operation.READ))
