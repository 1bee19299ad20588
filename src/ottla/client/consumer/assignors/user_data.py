"""User data of the sticky strategies, in the Java client's own encoding.

A member of `sticky` revokes its partitions before it joins, so the user data of its subscription
lists them with their generation. A member of `cooperative-sticky` keeps them; the subscription
itself lists those, and the user data has the generation alone, for leaders that read an older
subscription.
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


class OwnedPartitions(NamedTuple):
    """The partitions a member owned, and the generation of that assignment."""

    partitions: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION


def encode_owned(partitions: Iterable[TopicPartition], generation: int) -> bytes:
    topics = [
        (topic.encode(), [tp.partition for tp in group])
        for topic, group in groupby(sorted(partitions), key=lambda tp: tp.topic)
    ]
    out = bytearray(_INT32.pack(len(topics)))
    for name, indexes in topics:
        out += _INT16.pack(len(name)) + name + _INT32.pack(len(indexes))
        out += b"".join(map(_INT32.pack, indexes))
    return bytes(out + _INT32.pack(generation))


def decode_owned(data: bytes | None) -> OwnedPartitions:
    """The partitions a member owned; none if the data cannot be decoded.

    The oldest clients send no generation.
    """
    if not data:
        return OwnedPartitions()
    try:
        partitions, position = _partitions(data)
        generation = (
            _INT32.unpack_from(data, position)[0] if position < len(data) else NO_GENERATION
        )
    except (StructError, UnicodeDecodeError, ValueError):
        return OwnedPartitions()
    return OwnedPartitions(tuple(partitions), generation)


def encode_generation(generation: int) -> bytes:
    return _INT32.pack(generation)


def decode_generation(data: bytes | None) -> int:
    if data is None or len(data) < _INT32.size:
        return NO_GENERATION
    return int(_INT32.unpack_from(data)[0])


def _partitions(data: bytes) -> tuple[list[TopicPartition], int]:
    (topics,) = _INT32.unpack_from(data)
    position = _INT32.size
    partitions: list[TopicPartition] = []
    for _ in range(topics):
        (size,) = _INT16.unpack_from(data, position)
        name = data[position + 2 : position + 2 + size].decode()
        (count,) = _INT32.unpack_from(data, position + 2 + size)
        position += 6 + size
        if count < 0 or count > (len(data) - position) // 4:
            raise ValueError(f"invalid number of partitions of {name}: {count}")
        partitions += [
            TopicPartition(name, _INT32.unpack_from(data, position + 4 * nth)[0])
            for nth in range(count)
        ]
        position += 4 * count
    return partitions, position
