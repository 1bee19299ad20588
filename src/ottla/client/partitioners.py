"""Which partition a record goes to.

Owns: the choice, where the record names no partition. Without a custom partitioner, producers
hash the key as Java's do, and records without a key stay with one partition until a batch of it is
full (KIP-794), then go on to another, more likely to one where less waits.

A custom partitioner is any callable that takes the topic, the key in bytes or None, all
partitions and those that have a leader, and returns one of them:

    def by_length(topic, key, all_partitions, available):
        return len(key or b"") % len(all_partitions)
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final, Protocol

SEED: Final = 0x9747B28C
FACTOR: Final = 0x5BD1E995
WORD: Final = 0xFFFF_FFFF
POSITIVE: Final = 0x7FFF_FFFF


def murmur2(key: bytes) -> int:
    """The hash as an unsigned number of 32 bits."""
    size = len(key)
    digest = SEED ^ size
    aligned = size & ~3
    for position in range(0, aligned, 4):
        word = int.from_bytes(key[position : position + 4], "little") * FACTOR & WORD
        word = (word ^ word >> 24) * FACTOR & WORD
        digest = (digest * FACTOR & WORD) ^ word
    if aligned != size:
        digest = (digest ^ int.from_bytes(key[aligned:], "little")) * FACTOR & WORD
    digest = (digest ^ digest >> 13) * FACTOR & WORD
    return digest ^ digest >> 15


def partition_of(key: bytes, partitions: int) -> int:
    """The partition of a key, out of `partitions`."""
    return (murmur2(key) & POSITIVE) % partitions


REMEMBERED: Final = 1 << 18


class Partitioner(Protocol):
    """Chooses a partition; called on the thread that calls `send`."""

    def __call__(
        self,
        topic: str,
        key: bytes | None,
        all_partitions: Sequence[int],
        available: Sequence[int],
        /,
    ) -> int: ...


class RoundRobin:
    """Each record to the next partition, whether it has a key or not."""

    def __init__(self) -> None:
        self._turns: dict[str, int] = {}

    def __call__(
        self,
        topic: str,
        key: bytes | None,
        all_partitions: Sequence[int],
        available: Sequence[int],
        /,
    ) -> int:
        turn = self._turns[topic] = self._turns.get(topic, -1) + 1
        choice = available or all_partitions
        return choice[turn % len(choice)]


class KeyHash:
    """The partition of a key by murmur2, cached: the same keys come again and again."""

    __slots__ = ("cache", "partitions")

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self.cache: dict[bytes, int] = {}

    def __call__(self, key: bytes) -> int:
        chosen = self.cache.get(key)
        if chosen is None:
            if len(self.cache) >= REMEMBERED:
                self.cache.clear()
            chosen = self.cache[key] = partition_of(key, self.partitions)
        return chosen


class Sticky:
    """The partition that records of one topic without a key go to at present."""

    __slots__ = ("_bytes_left", "_dice", "partition")

    def __init__(self, dice: Random) -> None:
        self._dice = dice
        self._bytes_left = 0
        self.partition = -1

    def count(self, size: int) -> None:
        """Count the bytes of a closed batch of this partition."""
        self._bytes_left -= size

    def choose(self, choice: Sequence[int], waiting: Sequence[int], batch_bytes: int) -> int:
        """Stay, or switch once a batch's worth was sent there.

        `waiting` is the queue length of each partition of `choice`: the longer, the less likely it
        is chosen. If it is empty, all are equally likely.
        """
        if self._bytes_left <= 0 or self.partition not in choice:
            self._bytes_left = batch_bytes
            most = max(waiting, default=0)
            weights = [most + 1 - length for length in waiting] if most else None
            self.partition = self._dice.choices(choice, weights)[0]
        return self.partition
