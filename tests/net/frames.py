"""Requests and replies as small as the network layer allows."""

from __future__ import annotations

import struct


def request(number: int, *, api: int = 0, size: int = 8) -> bytes:
    """A framed request whose correlation id is `number`; `size` counts all but the prefix."""
    return struct.pack(">ihhi", size, api, 0, number) + bytes(size - 8)


def reply(number: int, body: bytes = b"") -> bytes:
    return struct.pack(">ii", 4 + len(body), number) + body


def number_of(frame: memoryview) -> int:
    """The correlation id of a request's frame."""
    return int(struct.unpack_from(">i", frame, 4)[0])


def numbers_in(replies: bytes | bytearray) -> list[int]:
    """The correlation ids of whole replies, in order."""
    found: list[int] = []
    at = 0
    while at < len(replies):
        size, number = struct.unpack_from(">ii", replies, at)
        found.append(number)
        at += 4 + size
    assert at == len(replies), "the last reply is torn"
    return found
