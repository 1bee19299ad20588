"""SyncGroup (14): the leader sends the assignment, each member gets its part."""

from __future__ import annotations

from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.authorise import on_group
from ottla.coordinator.group.classic.member import SyncReply
from ottla.coordinator.group.classic.sync import SyncRequest
from ottla.model.errors import ErrorCode, KafkaError
from ottla.security.acl import Operation

KEY: Final = 14
FIRST_WITH_PROTOCOL: Final = 5


async def sync_group(request: Request, ctx: Context) -> Fields:
    named = request.protocol_type is not None and request.protocol_name is not None
    if ctx.call.version >= FIRST_WITH_PROTOCOL and not named:
        raise KafkaError(ErrorCode.inconsistent_group_protocol)
    sync = SyncRequest(
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        request.protocol_type,
        request.protocol_name,
        {assignment.member_id: assignment.assignment for assignment in request.assignments},
    )
    return _fields(await ctx.services.groups.sync(request.group_id, sync))


def _fields(reply: SyncReply) -> Fields:
    return {
        "throttle_time": 0,
        "error_code": reply.error,
        "protocol_type": reply.protocol_type,
        "protocol_name": reply.protocol,
        "assignment": reply.assignment,
    }


def refuse(_: Request, code: ErrorCode, __: str | None) -> Fields:
    return _fields(SyncReply(code))


API = Api(KEY, "SyncGroup", range(0, 6), sync_group, refuse, needs=on_group(Operation.READ))
