"""murmur2, the hash by which keys find their partitions, in plain Python.

The same numbers as Java's producer and `columns.partition` give. One key at a time: a producer
remembers what it got for a key.
"""

from __future__ import annotations

from typing import Final

SEED: Final = 0x9747B28C
FACTOR: Final = 0x5BD1E995
WORD: Final = 0xFFFF_FFFF
POSITIVE: Final = 0x7FFF_FFFF


def murmur2(key: bytes) -> int:
    """The hash as an unsigned number of 32 bits."""
    size = len(key)
    digest = SEED ^ size
    whole = size & ~3
    for at in range(0, whole, 4):
        lane = int.from_bytes(key[at : at + 4], "little") * FACTOR & WORD
        lane = (lane ^ lane >> 24) * FACTOR & WORD
        digest = (digest * FACTOR & WORD) ^ lane
    if whole != size:
        digest = (digest ^ int.from_bytes(key[whole:], "little")) * FACTOR & WORD
    digest = (digest ^ digest >> 13) * FACTOR & WORD
    return digest ^ digest >> 15


def partition_of(key: bytes, partitions: int) -> int:
    """The partition of a key among so many."""
    return (murmur2(key) & POSITIVE) % partitions
