"""Frames built by hand, for requests that no client sends."""

from __future__ import annotations

import struct
from collections.abc import Callable

Lines = Callable[[], list[str]]


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def plain(key: int, version: int, body: bytes = b"", client: bytes = b"\0\1c") -> bytes:
    """A request whose header has no tagged fields."""
    return framed(struct.pack(">hhi", key, version, 7) + client + body)


def tagged(key: int, version: int, body: bytes, tags: bytes = b"\0") -> bytes:
    """A request whose header has tagged fields."""
    return plain(key, version, tags + body)
