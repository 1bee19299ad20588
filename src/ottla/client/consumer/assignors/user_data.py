"""What sticky members tell their leader, in the Java client's own encoding.

A member of `sticky` gives up its partitions before it joins, so it carries what it had, and in
which generation, in the subscription's user data. A member of `cooperative-sticky` keeps them; the
subscription itself lists those, and the user data holds the generation alone, for leaders that
read an older subscription.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple

from ottla.model.ids import TopicPartition

NO_GENERATION: Final = -1
_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")


class Held(NamedTuple):
    """What a member had, and in which generation it got it."""

    partitions: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION


def encode_held(partitions: Iterable[TopicPartition], generation: int) -> bytes:
    topics = [
        (topic.encode(), [at.partition for at in held])
        for topic, held in groupby(sorted(partitions), key=lambda at: at.topic)
    ]
    out = bytearray(_INT32.pack(len(topics)))
    for name, indexes in topics:
        out += _INT16.pack(len(name)) + name + _INT32.pack(len(indexes))
        out += b"".join(map(_INT32.pack, indexes))
    return bytes(out + _INT32.pack(generation))


def decode_held(data: bytes | None) -> Held:
    """What a member says it had; nothing where it says nothing that can be read.

    The oldest members send no generation.
    """
    if not data:
        return Held()
    try:
        partitions, at = _partitions(data)
        generation = _INT32.unpack_from(data, at)[0] if at < len(data) else NO_GENERATION
    except (StructError, UnicodeDecodeError, ValueError):
        return Held()
    return Held(tuple(partitions), generation)


def encode_generation(generation: int) -> bytes:
    return _INT32.pack(generation)


def decode_generation(data: bytes | None) -> int:
    if data is None or len(data) < _INT32.size:
        return NO_GENERATION
    return int(_INT32.unpack_from(data)[0])


def _partitions(data: bytes) -> tuple[list[TopicPartition], int]:
    (topics,) = _INT32.unpack_from(data)
    at = _INT32.size
    found: list[TopicPartition] = []
    for _ in range(topics):
        (size,) = _INT16.unpack_from(data, at)
        name = data[at + 2 : at + 2 + size].decode()
        (count,) = _INT32.unpack_from(data, at + 2 + size)
        at += 6 + size
        if count < 0 or count > (len(data) - at) // 4:
            raise ValueError(f"{count} partitions")
        found += [
            TopicPartition(name, _INT32.unpack_from(data, at + 4 * nth)[0]) for nth in range(count)
        ]
        at += 4 * count
    return found, at
