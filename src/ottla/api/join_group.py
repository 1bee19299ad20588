"""JoinGroup (11): become, or stay, a member; answered when the generation is complete."""

from __future__ import annotations

from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.authorise import on_group
from ottla.coordinator.group.classic.join import JoinRequest
from ottla.coordinator.group.classic.member import JoinReply, Protocol
from ottla.delay.slices import in_slices
from ottla.model.errors import ErrorCode
from ottla.protocol import wire
from ottla.security.acl import Operation

KEY: Final = 11
FIRST_WITH_REBALANCE_TIMEOUT: Final = 1
FIRST_WITH_KNOWN_IDS: Final = 4
FIRST_WITH_NULL_PROTOCOL: Final = 7
FIRST_WITH_SKIPPING: Final = 9


async def join_group(request: Request, ctx: Context) -> Fields:
    version = ctx.call.version
    session_ms = wire.ms(request.session_timeout)
    rebalance_ms = wire.ms(request.rebalance_timeout)
    join = JoinRequest(
        request.member_id,
        request.group_instance_id,
        ctx.call.client_id or "",
        f"/{ctx.peer.address}",
        session_ms,
        rebalance_ms if version >= FIRST_WITH_REBALANCE_TIMEOUT else session_ms,
        request.protocol_type,
        tuple([Protocol(each.name, each.metadata) async for each in in_slices(request.protocols)]),
        needs_known_id=version >= FIRST_WITH_KNOWN_IDS and request.group_instance_id is None,
        can_skip_assignment=version >= FIRST_WITH_SKIPPING,
    )
    reply = await ctx.services.groups.join(request.group_id, join)
    return _fields(reply, nullable=version >= FIRST_WITH_NULL_PROTOCOL)


def _fields(reply: JoinReply, *, nullable: bool) -> Fields:
    return {
        "throttle_time": 0,
        "error_code": reply.error,
        "generation_id": reply.generation,
        "protocol_type": reply.protocol_type,
        "protocol_name": reply.protocol if nullable else reply.protocol or "",
        "leader": reply.leader,
        "skip_assignment": reply.skip_assignment,
        "member_id": reply.member_id,
        "members": [
            {
                "member_id": member.member_id,
                "group_instance_id": member.instance_id,
                "metadata": member.metadata,
            }
            for member in reply.members
        ],
    }


def refuse(request: Request, code: ErrorCode, _: str | None) -> Fields:
    member_id = "" if code is ErrorCode.group_max_size_reached else request.member_id
    nullable = request.__version__ >= FIRST_WITH_NULL_PROTOCOL
    return _fields(JoinReply(code, member_id), nullable=nullable)


API = Api(KEY, "JoinGroup", range(0, 10), join_group, refuse, needs=on_group(Operation.READ))
