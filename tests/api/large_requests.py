"""Giving a handler a large request, and counting the turns that the event loop has meanwhile."""

from __future__ import annotations

from typing import Any

from ottla.api.api import Api, Context, Fields
from ottla.api.handling import handle
from ottla.api.services import Services
from ottla.net.request_slot import Peer
from ottla.protocol import wire
from tests.fakes.loop_turns import Turns


async def handled(
    api: Api, services: Services, version: int = -1, *, is_broker: bool = False, **fields: Any
) -> tuple[Fields, int]:
    """The fields of the reply, and the turns of the loop until the handler returned them."""
    version = api.versions[version] if version < 0 else version
    frame = memoryview(wire.encode_request(api.key, version, 5, "test", fields))[4:]
    call = wire.parse_call(frame)
    request = wire.decode(call, frame)
    turns = Turns()
    turns.begin()
    peer = Peer("127.0.0.1", 1, "PLAINTEXT", "PLAINTEXT")
    peer.is_broker = is_broker
    reply = await handle(api, request, Context(call, peer, services))
    return reply, turns.end()
