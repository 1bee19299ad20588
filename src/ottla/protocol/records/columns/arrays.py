"""Where arrays come from.

Memory fresh from the system is dearer than everything that is done to a record, because of its page
faults: half a millisecond a megabyte, against a quarter for decoding it. So large arrays come from
where memory can be had that was used before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

from ottla.model.memory import BufferPool

Room: TypeAlias = Callable[[str, int, Any], Any]
"""Gives an array: what it is for, how many elements, of which kind. Its content is anything."""

MAX_KEPT_BYTES: Final = 16 << 20
FEW_BYTES: Final = 64 << 10
"""Up to here the allocator has memory at hand, and half a table is not kept by a small column."""
SHELF_BYTES: Final = 128 << 20


def fresh(_: str, count: int, kind: Any) -> Any:
    """An array of its own: for few rows, which the allocator has at hand."""
    return np.empty(count, kind)


_shelf: Final = BufferPool(SHELF_BYTES)


def shelved(_: str, count: int, kind: Any) -> Any:
    """Memory that columns had which are gone.

    Arrow's own pool gives memory back to the system a few milliseconds after it was freed, and at
    once where an array is large: decoding 8 MB then takes three times as long.
    """
    size = count * np.dtype(kind).itemsize
    return np.empty(count, kind) if size <= FEW_BYTES else np.frombuffer(_shelf.lend(size), kind)


class Scratch(threading.local):
    """Arrays that the next call of the same thread uses again, for what does not outlive a call."""

    def __init__(self) -> None:
        self._arrays: dict[str, Any] = {}

    def room(self, name: str, count: int, kind: Any) -> Any:
        known = self._arrays.get(name)
        if known is None or known.size < count:
            known = np.empty(count, kind)
            if known.nbytes <= MAX_KEPT_BYTES:
                self._arrays[name] = known
        return known[:count]
