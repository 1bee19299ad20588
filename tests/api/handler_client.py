"""Asking a handler as a client does: encoded request in, decoded reply out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ottla.api.api import Api
from ottla.protocol import wire
from tests.fakes.control_plane import Node


async def ask(node: Node, api: Api, fields: Mapping[str, object], version: int = -1) -> Any:
    """The newest version unless another is named."""
    if version < 0:
        version = api.versions[-1]
    frame = wire.encode_request(api.key, version, 5, "test", fields)
    reply = await node.answer(frame, {api.key: api})
    return wire.decode_reply(api.key, version, memoryview(reply)[4:])
