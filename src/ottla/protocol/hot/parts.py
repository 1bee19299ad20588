"""The encoding of parts of Produce and Fetch replies: counts, names, leaders and their endpoints.

Each function appends to a reply, in the plain encoding or in the compact one of flexible versions.
Never encodes a whole reply.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple
from uuid import UUID

from ottla.protocol.encode import uvarint

FRAME: Final = Struct(">ii")
INT16: Final = Struct(">h")
INT32: Final = Struct(">i")


class Endpoint(NamedTuple):
    """The endpoint of a new leader, sent along with `current_leader`."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


def put_count(out: bytearray, count: int, flexible: bool) -> None:
    if not flexible:
        out += INT32.pack(count)
    elif count < 0x7F:
        out.append(count + 1)
    else:
        out += uvarint(count + 1)


def put_string(out: bytearray, text: str | None, flexible: bool) -> None:
    if text is None:
        out += b"\0" if flexible else b"\xff\xff"
        return
    data = text.encode()
    if flexible:
        put_count(out, len(data), True)
    else:
        out += INT16.pack(len(data))
    out += data


@lru_cache(4096)
def topic_bytes(topic: str | UUID, flexible: bool) -> bytes:
    """A topic's name or id; cached, because the same few are used again and again."""
    if isinstance(topic, UUID):
        return topic.bytes
    out = bytearray()
    put_string(out, topic, flexible)
    return bytes(out)


def tagged(tag: int, body: bytes | bytearray) -> bytes:
    return uvarint(tag) + uvarint(len(body)) + body


def put_endpoints(out: bytearray, endpoints: Sequence[Endpoint]) -> None:
    """The tagged field at the end of a reply: the endpoints of the leaders in it."""
    body = bytearray()
    put_count(body, len(endpoints), True)
    for endpoint in endpoints:
        body += INT32.pack(endpoint.node_id)
        put_string(body, endpoint.host, True)
        body += INT32.pack(endpoint.port)
        put_string(body, endpoint.rack, True)
        body += b"\0"
    out += b"\x01" + tagged(0, body)
