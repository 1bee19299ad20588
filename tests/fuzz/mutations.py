"""What can happen to a frame between a good client and the broker.

Owns: the ways to damage bytes. Each takes the bytes after the size and gives others; the size is
put in front anew, and is itself sometimes wrong.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random
from typing import Final

NUMBERS: Final = (
    0, 1, -1, -2, 127, 128, 255, 256, 32_767, -32_768, 65_535, 2**20, 2**31 - 1, -(2**31),
)  # fmt: skip
VARINTS: Final = (
    b"\0",
    b"\1",
    b"\x7f",
    b"\x80\x01",
    b"\xff\xff\x7f",
    b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\xff\x01",
    b"\x80\x80\x80\x80\x80\x00",
)
Body = bytearray
Mutate = Callable[[Random, Body], None]


def flip(dice: Random, body: Body) -> None:
    """A few bits."""
    for _ in range(dice.choice((1, 1, 2, 8))):
        if body:
            body[dice.randrange(len(body))] ^= 1 << dice.randrange(8)


def overwrite(dice: Random, body: Body) -> None:
    """A number that lengths, counts and ids dislike, in place of whatever is there."""
    code = dice.choice((">b", ">h", ">i", ">q"))
    size = struct.calcsize(code)
    if len(body) >= size:
        limit = 1 << (8 * size)
        number = dice.choice(NUMBERS) % limit
        at = dice.randrange(len(body) - size + 1)
        body[at : at + size] = number.to_bytes(size, "big")


def varint(dice: Random, body: Body) -> None:
    """A variable-length number, over or between what is there."""
    at = dice.randrange(len(body) + 1)
    body[at : at + dice.choice((0, 1, 1, 2))] = dice.choice(VARINTS)


def cut(dice: Random, body: Body) -> None:
    del body[dice.randrange(len(body) + 1) :]


def drop(dice: Random, body: Body) -> None:
    at = dice.randrange(len(body) + 1)
    del body[at : at + dice.choice((1, 2, 4, 8, 50))]


def repeat(dice: Random, body: Body) -> None:
    at = dice.randrange(len(body) + 1)
    piece = body[at : at + dice.choice((1, 4, 16, 100))]
    body[at:at] = piece * dice.choice((1, 2, 30))


def insert(dice: Random, body: Body) -> None:
    at = dice.randrange(len(body) + 1)
    body[at:at] = dice.randbytes(dice.choice((1, 2, 4, 16, 200)))


def reversion(dice: Random, body: Body) -> None:
    """The same bytes under another API or version."""
    if len(body) >= 4:
        struct.pack_into(">hh", body, 0, dice.randrange(-1, 80), dice.randrange(-1, 20))


MUTATIONS: Final[tuple[Mutate, ...]] = (
    flip, flip, overwrite, overwrite, varint, varint, cut, drop, repeat, insert, reversion,
)  # fmt: skip


def mutated(dice: Random, frame: bytes, other: bytes) -> bytes:
    """A frame with something wrong with it; `other` is a second one to splice in.

    One in three is left as it is: its values are strange enough, and must reach the handlers.
    """
    body = bytearray(frame[4:])
    for _ in range(dice.choice((0, 0, 1, 1, 2, 3))):
        dice.choice(MUTATIONS)(dice, body)
    if dice.random() < 0.1:  # the beginning of one request, the end of another
        body[dice.randrange(len(body) + 1) :] = other[dice.randrange(4, len(other)) :]
    size = len(body)
    if dice.random() < 0.02:
        size = dice.choice((-1, 0, size + 1, size - 1, 2**31 - 1))
    return struct.pack(">i", max(-(2**31), size)) + bytes(body)
