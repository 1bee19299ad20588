"""A member of a classic group that has joined and has its assignment."""

from __future__ import annotations

from ottla.coordinator.group.classic.join import JoinRequest
from ottla.coordinator.group.classic.member import JoinReply
from ottla.coordinator.group.classic.sync import SyncRequest
from tests.coordinator.group.scene import RANGE
from tests.coordinator.group_coordinator import Coordinating

ASK = JoinRequest("", None, "c", "/h", 10_000, 60_000, "consumer", (RANGE,), needs_known_id=False)


async def joined(made: Coordinating, group: str) -> JoinReply:
    """One member with its assignment."""
    reply = await made.groups.join(group, ASK)
    ask = SyncRequest(
        reply.member_id, None, reply.generation, None, None, {reply.member_id: b"all"}
    )
    synced = await made.groups.sync(group, ask)
    assert synced.assignment == b"all"
    return reply
