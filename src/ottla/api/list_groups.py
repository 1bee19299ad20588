"""ListGroups (16): the groups this broker coordinates, by state and type.

A peer that may describe the cluster sees all of them, any other those that it may describe.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.delay.slices import PLAIN, Slices, in_slices, parts_of
from ottla.model.errors import ErrorCode
from ottla.security.acl import CLUSTER_NAME, Kind, Operation

KEY: Final = 16
DESCRIBE: Final = Operation.DESCRIBE


async def list_groups(request: Request, ctx: Context) -> Fields:
    states = await _lower(request.states_filter or ())
    types = await _lower(request.types_filter or ())
    overviews = ctx.services.groups.overviews(states, types)
    all_of_them = ctx.allows(DESCRIBE, Kind.CLUSTER, CLUSTER_NAME, noted=False)
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
            async for group in in_slices(overviews)
            if all_of_them or ctx.allows(DESCRIBE, Kind.GROUP, group.group_id, noted=False)
        ],
    }


async def _lower(names: Sequence[str]) -> set[str]:
    """The names of a filter, which apply in any case."""
    lower: set[str] = set()
    slices = Slices(PLAIN)
    for some in parts_of(names, PLAIN):
        await slices.took(len(some))
        lower.update(map(str.lower, some))
    return lower


def refuse(_: Request, code: ErrorCode, __: str | None) -> Fields:
    return {"throttle_time": 0, "error_code": code, "groups": []}


API = Api(KEY, "ListGroups", range(0, 6), list_groups, refuse)
