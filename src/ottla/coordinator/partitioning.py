"""Which partition of an internal topic a key belongs to.

Pure. Every broker and every tool must agree on it for ever: it is Java's string hash, made
positive the way Java's `Math.abs` does, except that the one number without an opposite becomes 0.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final

LOWEST: Final = -(2**31)


def java_hash(text: str) -> int:
    """A Java string's hashCode: over UTF-16 units, in 32 bits."""
    data = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for unit in struct.unpack(f">{len(data) // 2}H", data):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


@lru_cache(maxsize=16_384)
def partition_for(key: str, partitions: int) -> int:
    hashed = java_hash(key)
    return 0 if hashed == LOWEST else abs(hashed) % partitions
