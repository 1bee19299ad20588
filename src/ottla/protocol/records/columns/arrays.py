"""Allocates arrays.

New memory from the system costs more than decoding, because of its page faults: half a millisecond
for a megabyte, against a quarter for decoding it. So large arrays reuse memory.
"""

from __future__ import annotations

import threading
from typing import Any, Final, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from ottla.model.memory import BufferPool

Number = TypeVar("Number", bound=np.generic)


class Room(Protocol):
    """Allocates an array, by purpose, number of elements and type. Its content is undefined."""

    def __call__(self, name: str, count: int, kind: type[Number], /) -> npt.NDArray[Number]: ...


MAX_KEPT_BYTES: Final = 16 << 20
FEW_BYTES: Final = 64 << 10
"""Smaller arrays are allocated: that is fast, and a small column must not keep a large buffer."""
SHELF_BYTES: Final = 128 << 20


def fresh(_: str, count: int, kind: type[Number]) -> npt.NDArray[Number]:
    """A new array: for few rows, which the allocator serves without the system."""
    return np.empty(count, kind)


_shelf: Final = BufferPool(SHELF_BYTES)


def pooled_array(_: str, count: int, kind: type[Number]) -> npt.NDArray[Number]:
    """An array in memory of columns that were freed.

    Arrow's own pool returns memory to the system a few milliseconds after it was freed, and at
    once if an array is large: decoding 8 MB then takes three times as long.
    """
    size = count * np.dtype(kind).itemsize
    return np.empty(count, kind) if size <= FEW_BYTES else np.frombuffer(_shelf.lend(size), kind)


class Scratch(threading.local):
    """Arrays that the next call of the same thread reuses, for data of one call only."""

    def __init__(self) -> None:
        self._arrays: dict[str, npt.NDArray[Any]] = {}

    def room(self, name: str, count: int, kind: type[Number]) -> npt.NDArray[Number]:
        array = self._arrays.get(name)
        if array is None or array.size < count:
            array = np.empty(count, kind)
            if array.nbytes <= MAX_KEPT_BYTES:
                self._arrays[name] = array
        return array[:count]
