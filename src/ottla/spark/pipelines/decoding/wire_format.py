"""What a schema registry's serializers put in front of a value. Pure.

Owns: the zero byte, the number of the schema in four bytes, and the place of a message among those
of a Protobuf file: a count and indexes, each a zigzag number, where a single zero means `[0]`.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

MAGIC: Final = 0
_FRONT: Final = struct.Struct(">bI")
FIRST_MESSAGE: Final = (0,)


class WireError(ValueError):
    """The bytes were not written by a schema registry's serializer."""


class Numbered(NamedTuple):
    """A value, and the number of the schema that it was written with."""

    schema_id: int
    data: bytes


def read(value: bytes) -> Numbered:
    """WireError for bytes without a number in front."""
    if len(value) < _FRONT.size:
        raise WireError(f"{len(value)} bytes: too short for the number of a schema")
    magic, schema_id = _FRONT.unpack_from(value)
    if magic != MAGIC:
        raise WireError(f"begins with {magic & 0xFF:#04x}; expected 0x00 and a schema's number")
    return Numbered(schema_id, value[_FRONT.size :])


def front(schema_id: int) -> bytes:
    return _FRONT.pack(MAGIC, schema_id)


def read_indexes(data: bytes) -> tuple[tuple[int, ...], bytes]:
    """Which message of a Protobuf file it is, and the rest."""
    count, at = _zigzag(data, 0)
    if count == 0:
        return FIRST_MESSAGE, data[at:]
    if count < 0 or count > len(data):
        raise WireError(f"{count} message indexes")
    indexes = []
    for _ in range(count):
        index, at = _zigzag(data, at)
        indexes.append(index)
    return tuple(indexes), data[at:]


def indexes_front(indexes: tuple[int, ...]) -> bytes:
    if indexes == FIRST_MESSAGE:
        return b"\0"
    return b"".join(map(_varint, (len(indexes), *indexes)))


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise WireError("the message indexes are cut off")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return (value >> 1) ^ -(value & 1), at


def _varint(number: int) -> bytes:
    value = (number << 1) ^ (number >> 63)
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)
