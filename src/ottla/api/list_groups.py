"""ListGroups (16): the groups this broker coordinates, by state and type."""

from __future__ import annotations

from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.model.errors import ErrorCode

KEY: Final = 16


async def list_groups(request: Request, ctx: Context) -> Fields:
    shown = ctx.services.groups.overviews(request.states_filter or (), request.types_filter or ())
    return {
        "throttle_time": 0,
        "error_code": ErrorCode.none,
        "groups": [
            {
                "group_id": group.group_id,
                "protocol_type": group.protocol_type,
                "group_state": group.state,
                "group_type": group.type,
            }
            for group in shown
        ],
    }


def refuse(_: Request, code: ErrorCode, __: str | None) -> Fields:
    return {"throttle_time": 0, "error_code": code, "groups": []}


API = Api(KEY, "ListGroups", range(0, 6), list_groups, refuse)
