"""Compiles and caches kernels, and converts bytes to the form they take.

Compiled code is cached beside its source file and renewed when that file changes, but not when a
function of another file does. So the kernels are in files that do not import from each other,
`read_kernels`, `walk_kernel` and `write_kernels`, with everything native that they need; after a
change of native code here or in `checksum`, change them too, or delete the cached code
(`__pycache__`).
"""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt
from numba.core import cgutils, types
from numba.extending import intrinsic

from ottla.protocol.records.compression import Bytes

F = TypeVar("F")
Numba: TypeAlias = Any
"""A part of numba's compiler, which has no types: a module, a context, a builder, a value."""
Word: TypeAlias = Any
"""A number in compiled code, where its bits count: numpy's uint64, which no Python int is."""
Ints: TypeAlias = npt.NDArray[np.int64]
Numbers: TypeAlias = npt.NDArray[np.integer[Any]]
"""Of a width that only the array knows."""
Int32s: TypeAlias = npt.NDArray[np.int32]
ByteArray: TypeAlias = npt.NDArray[np.uint8]
Flags: TypeAlias = npt.NDArray[np.bool_]

compiler: Numba = cgutils
kinds: Numba = types


def native(function: F) -> F:
    """Compiled once per machine and cached on disk; runs without the interpreter lock."""
    try:
        return cast(F, numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:  # no directory for the cache: compile for this process only
        return cast(F, numba.njit(nogil=True)(function))


def inlined(function: F) -> F:
    """A part of the kernels of its file: calling it once per field would be most of the cost."""
    return cast(F, numba.njit(nogil=True, forceinline=True)(function))


@inlined
def address(array: npt.NDArray[Any]) -> int:
    """The address of an array's elements.

    A signed number: in compiled code the sum of an unsigned and a signed number is a float, and
    every position of a record would be computed in floating point.
    """
    return np.int64(array.ctypes.data)  # type: ignore[return-value]


def as_array(buffer: Bytes) -> ByteArray:
    """The bytes as the kernels take them: read-only, so that each is compiled only once."""
    return np.frombuffer(memoryview(buffer).toreadonly(), dtype=np.uint8)


def _load_byte(_: Numba, address: Numba) -> Numba:
    """The byte at an address."""

    def generate(context: Numba, builder: Numba, signature: Numba, arguments: Numba) -> Numba:
        (address,) = arguments
        place = builder.inttoptr(address, context.get_value_type(kinds.uint8).as_pointer())
        return builder.zext(builder.load(place), context.get_value_type(kinds.int64))

    return kinds.int64(kinds.int64), generate


def _load_int(_: Numba, address: Numba) -> Numba:
    """The int64 at an address."""

    def generate(context: Numba, builder: Numba, signature: Numba, arguments: Numba) -> Numba:
        (address,) = arguments
        kind = context.get_value_type(kinds.int64)
        return builder.load(builder.inttoptr(address, kind.as_pointer()))

    return kinds.int64(kinds.int64), generate


def _load_word(_: Numba, address: Numba) -> Numba:
    """The eight bytes at any address, the first of them the lowest."""

    def generate(context: Numba, builder: Numba, signature: Numba, arguments: Numba) -> Numba:
        (address,) = arguments
        kind = context.get_value_type(kinds.uint64)
        loaded = builder.load(builder.inttoptr(address, kind.as_pointer()))
        loaded.align = 1
        return loaded

    return kinds.uint64(kinds.int64), generate


def _store_byte(_: Numba, address: Numba, value: Numba) -> Numba:
    """The lowest byte of a value to an address."""

    def generate(context: Numba, builder: Numba, signature: Numba, arguments: Numba) -> Numba:
        address, value = arguments
        kind = context.get_value_type(kinds.uint8)
        builder.store(builder.trunc(value, kind), builder.inttoptr(address, kind.as_pointer()))
        return context.get_dummy_value()

    return kinds.void(kinds.int64, kinds.int64), generate


def _copy(_: Numba, target: Numba, source: Numba, size: Numba) -> Numba:
    """So many bytes from one address to another, as one memcpy.

    A loop is not vectorised, and assigning a slice costs more than most records are long.
    """

    def generate(context: Numba, builder: Numba, signature: Numba, arguments: Numba) -> Numba:
        target, source, size = arguments
        pointer = context.get_value_type(kinds.uint8).as_pointer()
        places = builder.inttoptr(target, pointer), builder.inttoptr(source, pointer)
        compiler.raw_memcpy(builder, *places, size, 1)
        return context.get_dummy_value()

    return kinds.void(kinds.int64, kinds.int64, kinds.int64), generate


load_byte: Numba = intrinsic(_load_byte)
load_int: Numba = intrinsic(_load_int)
load_word: Numba = intrinsic(_load_word)
store_byte: Numba = intrinsic(_store_byte)
copy: Numba = intrinsic(_copy)
