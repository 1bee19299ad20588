"""DeleteGroups (42): empty groups, with all their offsets."""

from __future__ import annotations

from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.delay.slices import in_slices
from ottla.model.errors import ErrorCode, KafkaError
from ottla.security.acl import Kind, Operation

KEY: Final = 42


async def delete_groups(request: Request, ctx: Context) -> Fields:
    codes: dict[str, ErrorCode] = {}
    async for group_id in in_slices(request.groups_names):
        if group_id in codes:
            continue
        try:
            ctx.require(Operation.DELETE, Kind.GROUP, group_id)
            await ctx.services.groups.delete(group_id)
            codes[group_id] = ErrorCode.none
        except KafkaError as refusal:
            codes[group_id] = refusal.code
    results = [_result(*item) async for item in in_slices(codes.items())]
    return {"throttle_time": 0, "results": results}


def _result(group_id: str, code: ErrorCode) -> Fields:
    return {"group_id": group_id, "error_code": code}


def refuse(request: Request, code: ErrorCode, _: str | None) -> Fields:
    results = [_result(group_id, code) for group_id in dict.fromkeys(request.groups_names)]
    return {"throttle_time": 0, "results": results}


API = Api(KEY, "DeleteGroups", range(0, 3), delete_groups, refuse)
