"""CRC-32C natively: of bytes that a kernel is about to read, or has just written.

Owns the computation, and whether this processor has an instruction for it (`IS_QUICK`). Where it
has not, the function below works but is slow, and callers use that of the package `crc32c`.

The point is not to be faster than that one, which it is not, but to have a checksum while the bytes
are in the processor's cache, and without taking the interpreter's lock for every batch.
"""

from __future__ import annotations

import platform
from typing import Final

import numpy as np
import numpy.typing as npt
from numba.core import codegen, config
from numba.extending import intrinsic

from ottla.protocol.records.columns.native import (
    Ints,
    Numba,
    Word,
    compiler,
    inlined,
    kinds,
    load_byte,
    load_word,
    native,
)
from ottla.protocol.records.crc import crc32c

ALL_ONES: Final = 0xFFFF_FFFF
LONG_BYTES: Final = 8192
SHORT_BYTES: Final = 256
"""The instruction takes three cycles but another can begin in each, so three lanes are read at
once; long ones, because memory that is not in the cache comes quicker in long runs (10 GB/s, not
7)."""


def _has_instruction() -> bool:
    settings: Numba = config
    processor: Numba = codegen
    if settings.CPU_NAME or settings.CPU_FEATURES:
        return False  # code is compiled for another processor than this one
    features = processor.get_host_cpu_features().split(",")
    return platform.machine() in ("x86_64", "AMD64") and "+sse4.2" in features


IS_QUICK: Final = _has_instruction()


def _after(data: bytes, state: int) -> int:
    """What a state becomes by these bytes, without the inversions at either end."""
    return ALL_ONES ^ crc32c(data, ALL_ONES ^ state)


def _shifts(size: int) -> npt.NDArray[np.uint64]:
    """For each byte of a state, what becomes of it by so many zeros; together they are the state's.

    A checksum is linear: that of two pieces is that of the first, shifted, with the second's.
    """
    table = np.zeros((4, 256), np.uint64)
    for bit in range(32):
        place, low = bit // 8, 1 << bit % 8
        table[place, low : 2 * low] = table[place, :low] ^ np.uint64(_after(bytes(size), 1 << bit))
    return table


BYTES: Final = np.array([_after(bytes([value]), 0) for value in range(256)], np.uint64)
LONG: Final = _shifts(LONG_BYTES)
SHORT: Final = _shifts(SHORT_BYTES)


POLYNOMIAL: Final = 0x82F6_3B78
HIGHEST: Final = 1 << 31


def _times(left: int, right: int) -> int:
    """The product of two states as polynomials, the lowest power in the highest bit."""
    product = 0
    while left:
        if left & HIGHEST:
            product ^= right
        left = (left << 1) & ALL_ONES
        right = (right >> 1) ^ (POLYNOMIAL if right & 1 else 0)
    return product


def _powers() -> Ints:
    """By how many bytes a state is shifted by each bit of a number of them."""
    power = 1 << 23  # the eighth: one byte
    powers = []
    for _ in range(32):
        powers.append(power)
        power = _times(power, power)
    return np.array(powers, np.int64)


POWERS: Final = _powers()


def _instruction(_: Numba, state: Numba, word: Numba) -> Numba:
    """A state after eight more bytes, by the processor's own instruction."""

    def generate(context: Numba, builder: Numba, signature: Numba, arguments: Numba) -> Numba:
        number = compiler.ir.IntType(64)
        kind = compiler.ir.FunctionType(number, [number, number])
        name = "llvm.x86.sse42.crc32.64.64"
        return builder.call(compiler.get_or_insert_function(builder.module, kind, name), arguments)

    return kinds.uint64(kinds.uint64, kinds.uint64), generate


@inlined
def add_byte(state: Word, byte: Word) -> Word:
    return BYTES[(state ^ byte) & np.uint64(0xFF)] ^ (state >> np.uint64(8))


@inlined
def add_slowly(state: Word, word: Word) -> Word:
    for _ in range(8):
        state = add_byte(state, word & np.uint64(0xFF))
        word >>= np.uint64(8)
    return state


add_word: Numba = intrinsic(_instruction) if IS_QUICK else add_slowly


@inlined
def shifted(state: Word, table: npt.NDArray[np.uint64]) -> Word:
    """A state after a lane of zeros."""
    mask = np.uint64(0xFF)
    return (
        table[0, state & mask]
        ^ table[1, (state >> np.uint64(8)) & mask]
        ^ table[2, (state >> np.uint64(16)) & mask]
        ^ table[3, state >> np.uint64(24)]
    )


@inlined
def add_lanes(first: Word, position: int, size: int, table: npt.NDArray[np.uint64]) -> Word:
    """A state after three lanes of this size."""
    second: Word = np.uint64(0)
    third: Word = np.uint64(0)
    end = position + size
    while position < end:
        for step in range(0, 32, 8):
            first = add_word(first, load_word(position + step))
            second = add_word(second, load_word(position + step + size))
            third = add_word(third, load_word(position + step + 2 * size))
        position += 32
    return shifted(shifted(first, table) ^ second, table) ^ third


@native
def extended(checksum: int, position: int, stop: int) -> int:
    """The checksum of bytes and those from `position` to `stop` after them; 0 is that of none."""
    state: Word = np.uint64(checksum ^ ALL_ONES)
    while stop - position >= 3 * LONG_BYTES:
        state = add_lanes(state, position, LONG_BYTES, LONG)
        position += 3 * LONG_BYTES
    while stop - position >= 3 * SHORT_BYTES:
        state = add_lanes(state, position, SHORT_BYTES, SHORT)
        position += 3 * SHORT_BYTES
    while stop - position >= 8:
        state = add_word(state, load_word(position))
        position += 8
    while position < stop:
        state = add_byte(state, np.uint64(load_byte(position)))
        position += 1
    return np.int64(state) ^ ALL_ONES  # type: ignore[return-value]


times: Numba = native(_times)


@native
def joined(first: int, second: int, second_size: int) -> int:
    """The checksum of two pieces one after the other, given those of both."""
    bit = 0
    while second_size:
        if second_size & 1:
            first = times(POWERS[bit], first)
        second_size >>= 1
        bit += 1
    return first ^ second
